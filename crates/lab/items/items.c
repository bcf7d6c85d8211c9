/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The items whose cost is compared: one operation each, a fixed number of times,
 * every call checked. Under instruction counting a nanosecond of the guest's clock
 * is one instruction. Prints `item<TAB>figure` per line: clock units per operation.
 * Fork and exec run from a small process, before anything large is mapped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *dir;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "items: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static char *in_dir(const char *name)
{
	static char path[4][512];
	static int next;
	char *p = path[next++ & 3];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

/* Half the rounds warm up caches and labels; the other half counts. */
#define ITEM(name, rounds, body)                                             \
	do {                                                                 \
		long long start = 0;                                         \
		for (int i = 0; i < 2 * (rounds); i++) {                     \
			if (i == (rounds))                                   \
				start = now();                               \
			body;                                                \
		}                                                            \
		printf("%s\t%.1f\n", name, (double)(now() - start) / (rounds)); \
		fflush(stdout);                                              \
	} while (0)

int main(int argc, char **argv)
{
	char byte = 'x', block[64];
	struct stat st;
	int fd, pair[2], status;
	pid_t pid;

	dir = argc > 1 ? argv[1] : ".";
	fd = open(in_dir("file"), O_RDWR | O_CREAT | O_TRUNC, 0644);
	must(fd >= 0, "file");
	must(write(fd, block, sizeof(block)) == sizeof(block), "fill");

	ITEM("read 1 B", 2000, must(pread(fd, &byte, 1, 0) == 1, "read"));
	ITEM("write 1 B", 2000, must(pwrite(fd, &byte, 1, 0) == 1, "write"));
	ITEM("stat", 2000, must(!stat(in_dir("file"), &st), "stat"));
	ITEM("fstat", 2000, must(!fstat(fd, &st), "fstat"));
	ITEM("open+close", 2000, {
		int f = open(in_dir("file"), O_RDONLY);
		must(f >= 0 && !close(f), "open");
	});
	ITEM("open+close for writing", 2000, {
		int f = open(in_dir("file"), O_WRONLY);
		must(f >= 0 && !close(f), "open for writing");
	});
	ITEM("creat+unlink", 500, {
		int f = open(in_dir("new"), O_WRONLY | O_CREAT | O_EXCL, 0644);
		must(f >= 0 && !close(f) && !unlink(in_dir("new")), "creat");
	});
	ITEM("rename x2", 500, must(!rename(in_dir("file"), in_dir("other")) &&
				    !rename(in_dir("other"), in_dir("file")), "rename"));
	ITEM("link+unlink", 500, must(!link(in_dir("file"), in_dir("other")) && !unlink(in_dir("other")), "link"));
	ITEM("mkdir+rmdir", 300, must(!mkdir(in_dir("d"), 0755) && !rmdir(in_dir("d")), "mkdir"));
	ITEM("chmod", 1000, must(!chmod(in_dir("file"), 0644), "chmod"));
	must(!pipe(pair), "pipe");
	ITEM("pipe write+read", 2000, must(write(pair[1], &byte, 1) == 1 && read(pair[0], &byte, 1) == 1, "pipe"));
	close(pair[0]);
	close(pair[1]);
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	ITEM("unix send+recv", 2000, must(send(pair[0], block, 8, 0) == 8 && recv(pair[1], block, 8, 0) == 8, "unix"));
	close(pair[0]);
	close(pair[1]);
	ITEM("kill(0)", 2000, must(!kill(getpid(), 0), "kill"));
	ITEM("socket+close", 1000, {
		int f = socket(AF_INET, SOCK_STREAM, 0);
		must(f >= 0 && !close(f), "socket");
	});
	ITEM("fork+exit+wait", 200, {
		pid = fork();
		must(pid >= 0, "fork");
		if (!pid)
			_exit(0);
		must(waitpid(pid, &status, 0) == pid && !status, "wait");
	});
	ITEM("vfork+exec", 100, {
		pid = vfork();
		must(pid >= 0, "vfork");
		if (!pid) {
			execl("/bin/true", "true", NULL);
			_exit(127);
		}
		must(waitpid(pid, &status, 0) == pid && !status, "exec");
	});
	unlink(in_dir("file"));
	return 0;
}
