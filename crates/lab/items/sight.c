/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the first sight of a file costs, and what it leaves in memory.
 *   sight make DIR PREFIX N     makes files, before anything labels them
 *   sight open DIR PREFIX N     opens each once, and once again: instructions per
 *                               open+close, and kernel memory that stays, in bytes
 *   sight fork N                so many processes: kernel memory each, in bytes
 *   sight mount DIR N           so many mounts, all on one directory
 */
#define _GNU_SOURCE
#include "count.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel's own memory, but page tables and stacks: KiB. */
static long slab(void)
{
	char line[128];
	long kib, sum = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	must(!!f, "/proc/meminfo");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Slab: %ld", &kib) == 1 || sscanf(line, "Percpu: %ld", &kib) == 1)
			sum += kib;
	fclose(f);
	return sum;
}

static const char *name(char **argv, int i)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s%d", argv[2], argv[3], i);
	return path;
}

static void make(char **argv, int n)
{
	for (int i = 0; i < n; i++) {
		int fd = open(name(argv, i), O_WRONLY | O_CREAT | O_EXCL, 0644);

		must(fd >= 0 && !close(fd), "make");
	}
}

static void open_all(char **argv, int n)
{
	struct stat st;
	long before;

	/* the inodes are in memory, whatever else is found out about them */
	for (int i = 0; i < n; i++)
		must(!stat(name(argv, i), &st), "stat");
	before = slab();
	for (int round = 1; round <= 2; round++) {
		const int batch = n / BATCHES;
		double figures[BATCHES];

		for (int b = 0; b < BATCHES; b++) {
			long long start = now();

			for (int i = b * batch; i < (b + 1) * batch; i++) {
				int fd = open(name(argv, i), O_RDONLY);

				must(fd >= 0 && !close(fd), "open");
			}
			figures[b] = (double)(now() - start) / batch;
		}
		printf("open %d\t%.1f\n", round, middle(figures));
	}
	printf("bytes\t%.1f\n", (slab() - before) * 1024.0 / (n / BATCHES * BATCHES));
}

static void fork_all(int n)
{
	pid_t *pids = calloc(n, sizeof(*pids));
	long before = slab();

	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		must(pids[i] >= 0, "fork");
		if (!pids[i])
			for (;;)
				pause();
	}
	printf("bytes\t%.1f\n", (slab() - before) * 1024.0 / n);
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
}

/* Mounts, all on one directory. */
static void mount_all(const char *place, int n)
{
	must(!mkdir(place, 0755), place);
	while (n--)
		must(!mount("/run", place, NULL, MS_BIND, NULL), "mount");
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "make"))
		make(argv, atoi(argv[4]));
	else if (argc == 5 && !strcmp(argv[1], "open"))
		open_all(argv, atoi(argv[4]));
	else if (argc == 3 && !strcmp(argv[1], "fork"))
		fork_all(atoi(argv[2]));
	else if (argc == 4 && !strcmp(argv[1], "mount"))
		mount_all(argv[2], atoi(argv[3]));
	else
		return 2;
	return 0;
}
