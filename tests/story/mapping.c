/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that maps a file, to write it, and then loads a plug-in of leftpad's in
 * a child: mapping FILE ADDRESS PORT RESULT. The child connects to the network and
 * goes on to write through the mapping; it writes `done` to RESULT if both came off.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int plug_in(char *file, char **argv)
{
	struct sockaddr_in registry = { .sin_family = AF_INET };
	int network = socket(AF_INET, SOCK_STREAM, 0);
	FILE *result;

	inet_pton(AF_INET, argv[2], &registry.sin_addr);
	registry.sin_port = htons(atoi(argv[3]));
	if (connect(network, (struct sockaddr *)&registry, sizeof(registry))) {
		perror("plug-in: connect");
		return 1;
	}
	memcpy(file, "#!", 2);
	result = fopen(argv[4], "w");
	return !result || fputs("done\n", result) < 0 || fclose(result);
}

int main(int argc, char **argv)
{
	int fd = argc == 5 ? open(argv[1], O_RDWR) : -1;
	int status;
	char *file;

	if (fd < 0) {
		perror("mapping FILE ADDRESS PORT RESULT");
		return 2;
	}
	file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED) {
		perror("mapping: mmap");
		return 2;
	}
	if (fork() == 0)
		_exit(plug_in(file, argv));
	wait(&status);
	return status != 0;
}
