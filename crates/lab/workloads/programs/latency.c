/* SPDX-License-Identifier: GPL-2.0-or-later */
/* LMBench's latencies by their definitions, each a fixed number of times. */
#define _GNU_SOURCE
#include "count.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAPPED (8 << 20)
#define TOUCH_EVERY (16 << 10)
/* The kernel maps the pages around a fault as well, of as much as this. */
#define FAULT_AROUND (64 << 10)

static void items_calls(void)
{
	const pid_t parent = getppid();
	int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
	struct stat st;
	char byte = 'x';

	must(zero >= 0 && null >= 0, "/dev/zero, /dev/null");
	ITEM("null call", "call", 22000, must(syscall(SYS_getppid) == parent, "getppid"));
	ITEM_OF("null I/O", "call", 22000, 2,
		must(read(zero, &byte, 1) == 1 && write(null, &byte, 1) == 1, "null I/O"));
	close(zero);
	close(null);
	ITEM("stat", "call", 11000, must(!stat("file", &st), "stat"));
	ITEM("open+close", "pair", 11000, {
		int f = open("file", O_RDONLY);

		must(f >= 0 && !close(f), "open");
	});
}

#define SELECTED 100

static void item_select(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(any);
	int server = socket(AF_INET, SOCK_STREAM, 0), fds[SELECTED], most = 0;
	fd_set all;

	FD_ZERO(&all);
	must(server >= 0 && !bind(server, (void *)&any, sizeof(any)) && !listen(server, SELECTED) &&
		     !getsockname(server, (void *)&any, &length),
	     "listen");
	for (int i = 0; i < SELECTED; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		must(fds[i] >= 0 && !connect(fds[i], (void *)&any, sizeof(any)), "connect");
		FD_SET(fds[i], &all);
		most = fds[i];
	}
	ITEM("select TCP", "call", 2200, {
		fd_set wanted = all;
		struct timeval none = { 0 };

		must(!select(most + 1, &wanted, NULL, NULL, &none), "select");
	});
	for (int i = 0; i < SELECTED; i++)
		close(fds[i]);
	close(server);
}

static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
	(void)sig;
	caught++;
}

static char *page;

/* The write is tried again and again, until it may succeed. */
static void catch_fault(int sig)
{
	(void)sig;
	if (!--caught)
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void items_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct sigaction fault = { .sa_handler = catch_fault };
	double figures[BATCHES];
	const pid_t pid = getpid();
	const int batch = 200;

	ITEM("signal install", "call", 22000,
	     must(!sigaction(SIGUSR1, &action, NULL), "sigaction"));
	ITEM("signal handle", "signal", 11000, {
		caught = 0;
		must(!kill(pid, SIGUSR1) && caught == 1, "signal");
	});

	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(page != MAP_FAILED, "page");
	*page = 'x';
	must(!sigaction(SIGSEGV, &fault, NULL), "sigaction");
	for (int b = 0; b < 2 * BATCHES; b++) {
		long long start;

		must(!mprotect(page, 4096, PROT_READ), "mprotect");
		caught = batch;
		start = now();
		*(volatile char *)page = 'y';
		figures[b % BATCHES] = (double)(now() - start) / batch;
		must(!caught && *page == 'y', "faults");
	}
	signal(SIGSEGV, SIG_DFL);
	figure("protection fault", "fault", middle(figures));
	munmap(page, 4096);
}

/* A child that becomes the program, or ends at once. */
static void child(const char *path, char *const argv[])
{
	int status;
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (!pid) {
		if (path)
			execv(path, argv);
		_exit(path ? 127 : 0);
	}
	must(waitpid(pid, &status, 0) == pid && !status, path ? path : "fork");
}

static void items_processes(void)
{
	char *const hello[] = { "true", NULL };
	char *const sh[] = { "sh", "-c", "/bin/true", NULL };

	ITEM("fork", "process", 440, child(NULL, NULL));
	ITEM("exec", "process", 165, child("/bin/true", hello));
	ITEM("sh", "process", 88, child("/bin/sh", sh));
}

/* Files are made in a row and removed in a row, as many in each batch. */
static void items_files(const char *create, const char *delete, size_t size)
{
	static char content[10240];
	double made[BATCHES], removed[BATCHES];
	const int batch = 40;
	char name[16];

	must(!mkdir("files", 0755) && !chdir("files"), "files");
	for (int b = 0; b < 2 * BATCHES; b++) {
		long long start = now(), between;

		for (int i = 0; i < batch; i++) {
			int f;

			sprintf(name, "%d", i);
			f = open(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
			must(f >= 0, "create");
			must(!size || write(f, content, size) == (ssize_t)size, "write");
			must(!close(f), "close");
		}
		between = now();
		for (int i = 0; i < batch; i++) {
			sprintf(name, "%d", i);
			must(!unlink(name), "delete");
		}
		made[b % BATCHES] = (double)(between - start) / batch;
		removed[b % BATCHES] = (double)(now() - between) / batch;
	}
	must(!chdir("..") && !rmdir("files"), "empty");
	figure(create, "file", middle(made));
	figure(delete, "file", middle(removed));
}

static char *map(int fd, int protection)
{
	char *p = mmap(NULL, MAPPED, protection, MAP_SHARED, fd, 0);

	must(p != MAP_FAILED, "mmap");
	return p;
}

/*
 * `mmap` is mapping 8 MB of a file, touching the first tenth and unmapping; `page
 * fault` the touching alone, of pages that are in memory.
 */
static void items_mappings(void)
{
	static char content[65536];
	const int touched = MAPPED / FAULT_AROUND;
	double figures[BATCHES];
	int fd = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0644);

	must(fd >= 0, "mapped");
	memset(content, 'x', sizeof(content));
	for (int i = 0; i < MAPPED; i += sizeof(content))
		must(write(fd, content, sizeof(content)) == sizeof(content), "fill");
	ITEM("mmap", "mapping", 220, {
		char *p = map(fd, PROT_READ | PROT_WRITE);

		for (int at = 0; at < MAPPED / 10; at += TOUCH_EVERY)
			*(volatile char *)(p + at) = 'y';
		must(!munmap(p, MAPPED), "munmap");
	});
	for (int b = 0; b < 2 * BATCHES; b++) {
		char *p = map(fd, PROT_READ);
		long long start = now();
		int right = 0;

		for (int at = MAPPED / 10; at < MAPPED; at += FAULT_AROUND)
			right += *(volatile char *)(p + at) == 'x';
		figures[b % BATCHES] = (double)(now() - start) / right;
		must(right == touched - touched / 10, "content");
		must(!munmap(p, MAPPED), "munmap");
	}
	figure("page fault", "fault", middle(figures));
	must(!close(fd) && !unlink("mapped"), "mapped");
}

int main(void)
{
	int f = open("file", O_WRONLY | O_CREAT | O_EXCL, 0644);

	must(f >= 0 && !close(f), "file");
	items_calls();
	item_select();
	items_signals();
	items_processes();
	items_files("0K create", "0K delete", 0);
	items_files("10K create", "10K delete", 10240);
	items_mappings();
	return 0;
}
