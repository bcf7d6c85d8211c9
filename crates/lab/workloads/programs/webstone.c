/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * WebStone's static mix: so many clients fetch files from a web server on this machine,
 * a connection for each and no time to think. All of them take the next request from
 * one sequence, a thousand long, in which every size has exactly its weight.
 *	webstone files DIR        makes the files
 *	webstone fetch PORT       waits for the server, and measures
 */
#define _GNU_SOURCE
#include "count.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUESTS 1000
#define SIZES 5
/* Uncounted requests at first. */
#define WARM_UP 100
#define MOST 32

static const struct {
	long size;
	int weight;
} mix[SIZES] = {
	{ 500, 350 }, { 5125, 500 }, { 51250, 140 }, { 512500, 9 }, { 5248000, 1 },
};

struct shared {
	atomic_int next;
	long long latency[MOST];
};

static struct shared *shared;
static struct sockaddr_in server = { .sin_family = AF_INET };
static unsigned char sequence[REQUESTS];

static void make_files(const char *dir)
{
	static char block[500];

	memset(block, 'x', sizeof(block));
	must(!chdir(dir), dir);
	for (int i = 0; i < SIZES; i++) {
		char name[16];
		long left = mix[i].size;
		int fd;

		snprintf(name, sizeof(name), "%ld", mix[i].size);
		fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		must(fd >= 0, name);
		while (left) {
			size_t n = left < (long)sizeof(block) ? left : (long)sizeof(block);

			must(write(fd, block, n) == (ssize_t)n, "write");
			left -= n;
		}
		must(!close(fd), "close");
	}
}

/* A fixed shuffle. */
static void make_sequence(void)
{
	unsigned int seed = 1, at = 0;

	for (int i = 0; i < SIZES; i++)
		for (int n = 0; n < mix[i].weight; n++)
			sequence[at++] = i;
	must(at == REQUESTS, "weights");
	for (at = REQUESTS - 1; at; at--) {
		unsigned char kept = sequence[at];
		unsigned int other;

		seed = seed * 1103515245 + 12345;
		other = (seed >> 8) % (at + 1);
		sequence[at] = sequence[other];
		sequence[other] = kept;
	}
}

static int reach(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(fd >= 0, "socket");
	if (!connect(fd, (void *)&server, sizeof(server)))
		return fd;
	close(fd);
	return -1;
}

/* Half a minute at most. */
static void wait_for_server(void)
{
	for (int left = 300; left; left--) {
		int fd = reach();

		if (fd >= 0) {
			close(fd);
			return;
		}
		usleep(100000);
	}
	must(0, "the server does not come up");
}

/* The status has to be 200, and the length what was asked for. */
static void fetch(long size)
{
	static char reply[65536];
	char request[64], *body = NULL;
	long got = 0, length = -1;
	ssize_t n;
	int fd = reach();

	must(fd >= 0, "connect");
	n = snprintf(request, sizeof(request), "GET /%ld HTTP/1.0\r\n\r\n", size);
	must(send(fd, request, n, 0) == n, "send");
	while (!body) {
		n = recv(fd, reply + got, sizeof(reply) - 1 - got, 0);
		must(n > 0, "head");
		got += n;
		reply[got] = '\0';
		body = strstr(reply, "\r\n\r\n");
	}
	must(!strncmp(reply, "HTTP/1.", 7) && !strncmp(reply + 8, " 200 ", 5), "status 200");
	length = body + 4 - reply + size;
	while ((n = recv(fd, reply, sizeof(reply), 0)) > 0)
		got += n;
	must(!n && got == length, "length of the reply");
	close(fd);
}

static void client(int which, int requests)
{
	long long latency = 0;
	int i;

	while ((i = atomic_fetch_add(&shared->next, 1)) < requests) {
		long long start = now();

		fetch(mix[sequence[i]].size);
		latency += now() - start;
	}
	shared->latency[which] = latency;
}

/* Returns the time from the first request to the end of the last one. */
static long long run(int clients, int requests)
{
	long long start = now();
	int status;

	shared->next = 0;
	for (int which = 0; which < clients; which++) {
		pid_t pid = fork();

		must(pid >= 0, "fork");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			client(which, requests);
			_exit(0);
		}
	}
	for (int which = 0; which < clients; which++)
		must(wait(&status) > 0 && !status, "client");
	return now() - start;
}

static void measure(int clients)
{
	long long elapsed = run(clients, REQUESTS), latency = 0;
	double bytes = 0;
	char item[64];

	for (int i = 0; i < SIZES; i++)
		bytes += (double)mix[i].size * mix[i].weight;
	for (int which = 0; which < clients; which++)
		latency += shared->latency[which];
	snprintf(item, sizeof(item), "connection, %d clients", clients);
	figure(item, "connection", (double)elapsed / REQUESTS);
	snprintf(item, sizeof(item), "latency, %d clients", clients);
	figure(item, "connection", (double)latency / REQUESTS);
	snprintf(item, sizeof(item), "KB, %d clients", clients);
	figure(item, "KB", elapsed / (bytes / 1024));
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (!strcmp(argv[1], "files")) {
		make_files(argv[2]);
		return 0;
	}
	server.sin_port = htons(atoi(argv[2]));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	make_sequence();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	must(shared != MAP_FAILED, "shared memory");
	wait_for_server();
	run(8, WARM_UP);
	for (int clients = 8; clients <= MOST; clients += 8)
		measure(clients);
	return 0;
}
