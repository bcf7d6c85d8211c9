/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The items whose cost is compared: one operation each, a fixed number of times,
 * every call checked. Fork and exec run from a small process, before anything large
 * is mapped.
 */
#define _GNU_SOURCE
#include "count.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir;

/* The path of a name in the directory; made once, before anything is counted. */
static const char *in_dir(const char *name)
{
	char path[512];
	const char *kept;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	kept = strdup(path);
	must(!!kept, "strdup");
	return kept;
}

/* A directory eight below, with a file in it: its path. */
static const char *deep_file(void)
{
	char name[64] = "deep";
	int f;

	for (int depth = 0; depth < 8; depth++) {
		must(!mkdir(in_dir(name), 0755), "deep directory");
		strcat(name, "/d");
	}
	f = open(in_dir(name), O_RDWR | O_CREAT | O_EXCL, 0644);
	must(f >= 0 && !close(f), "deep file");
	return in_dir(name);
}

/* Files in each of so many directories, which nobody has opened: for all batches of so many opens of the item. */
#define COLD_DIRS 55
#define COLD_FILES 40
#define COLD_OPENS (COLD_DIRS * COLD_FILES / 2)

static const char *cold[COLD_DIRS * COLD_FILES];

static void make_cold(void)
{
	char name[64];

	for (int i = 0; i < COLD_DIRS; i++) {
		snprintf(name, sizeof(name), "cold%d", i);
		must(!mkdir(in_dir(name), 0755), "cold directory");
		for (int k = 0; k < COLD_FILES; k++) {
			snprintf(name, sizeof(name), "cold%d/file%d", i, k);
			cold[i * COLD_FILES + k] = in_dir(name);
			must(!mknod(cold[i * COLD_FILES + k], S_IFREG | 0644, 0), "cold file");
		}
	}
}

static void vfork_exec(void)
{
	int status;
	pid_t pid = vfork();

	must(pid >= 0, "vfork");
	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	must(waitpid(pid, &status, 0) == pid && !status, "exec");
}

int main(int argc, char **argv)
{
	char byte = 'x', block[64];
	const char *file, *other, *new, *sub, *deep;
	struct stat st;
	int fd, zero, null, pair[2], status, next = 0;
	pid_t pid;

	dir = argc > 1 ? argv[1] : ".";
	file = in_dir("file");
	other = in_dir("other");
	new = in_dir("new");
	sub = in_dir("sub");
	deep = deep_file();
	fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0644);
	must(fd >= 0, "file");
	must(write(fd, block, sizeof(block)) == sizeof(block), "fill");

	ITEM("read 1 B", "operation", 20000, must(pread(fd, &byte, 1, 0) == 1, "read"));
	ITEM("write 1 B", "operation", 20000, must(pwrite(fd, &byte, 1, 0) == 1, "write"));
	zero = open("/dev/zero", O_RDONLY);
	null = open("/dev/null", O_WRONLY);
	must(zero >= 0 && null >= 0, "/dev/zero, /dev/null");
	ITEM("read 1 B of /dev/zero", "operation", 20000, must(read(zero, &byte, 1) == 1, "zero"));
	ITEM("write 1 B to /dev/null", "operation", 20000,
	     must(write(null, &byte, 1) == 1, "null"));
	ITEM("stat", "operation", 20000, must(!stat(file, &st), "stat"));
	ITEM("fstat", "operation", 20000, must(!fstat(fd, &st), "fstat"));
	ITEM("open+close", "operation", 10000, {
		int f = open(file, O_RDONLY);
		must(f >= 0 && !close(f), "open");
	});
	ITEM("open+close for writing", "operation", 10000, {
		int f = open(file, O_WRONLY);
		must(f >= 0 && !close(f), "open for writing");
	});
	ITEM("open+close, 8 directories down", "operation", 10000, {
		int f = open(deep, O_RDONLY);
		must(f >= 0 && !close(f), "open deep");
	});
	make_cold();
	ITEM("open+close for the first time", "operation", COLD_OPENS, {
		int f = open(cold[next++], O_RDONLY);
		must(f >= 0 && !close(f), "open cold");
	});
	ITEM("mmap+munmap", "operation", 5000, {
		void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
		must(p != MAP_FAILED && !munmap(p, 4096), "mmap");
	});
	ITEM("creat+unlink", "operation", 2000, {
		int f = open(new, O_WRONLY | O_CREAT | O_EXCL, 0644);
		must(f >= 0 && !close(f) && !unlink(new), "creat");
	});
	ITEM("rename x2", "operation", 2000,
	     must(!rename(file, other) && !rename(other, file), "rename"));
	ITEM("link+unlink", "operation", 2000, must(!link(file, other) && !unlink(other), "link"));
	ITEM("mkdir+rmdir", "operation", 500, must(!mkdir(sub, 0755) && !rmdir(sub), "mkdir"));
	ITEM("chmod", "operation", 5000, must(!chmod(file, 0644), "chmod"));
	must(!pipe(pair), "pipe");
	ITEM("pipe write+read", "operation", 20000,
	     must(write(pair[1], &byte, 1) == 1 && read(pair[0], &byte, 1) == 1, "pipe"));
	close(pair[0]);
	close(pair[1]);
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	ITEM("unix send+recv", "operation", 20000,
	     must(send(pair[0], block, 8, 0) == 8 && recv(pair[1], block, 8, 0) == 8, "unix"));
	close(pair[0]);
	close(pair[1]);
	ITEM("kill(0)", "operation", 20000, must(!kill(getpid(), 0), "kill"));
	ITEM("socket+close", "operation", 5000, {
		int f = socket(AF_INET, SOCK_STREAM, 0);
		must(f >= 0 && !close(f), "socket");
	});
	ITEM("fork+exit+wait", "operation", 2000, {
		pid = fork();
		must(pid >= 0, "fork");
		if (!pid)
			_exit(0);
		must(waitpid(pid, &status, 0) == pid && !status, "wait");
	});
	ITEM("vfork+exec", "operation", 600, vfork_exec());
	return 0;
}
