/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * UnixBench's items by their definitions, each a fixed number of times instead of for
 * a fixed time. Dhrystone and Whetstone are stand-ins of the same kind: loops that
 * never enter the kernel, so that no MAC can touch them.
 */
#define _GNU_SOURCE
#include "count.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char self[512];

static void wait_for(pid_t pid, const char *what)
{
	int status;

	must(waitpid(pid, &status, 0) == pid && !status, what);
}

#define EXECL_BATCH 20

/*
 * One link of the chain of programs: tells the time into the pipe between batches,
 * and becomes the next one.
 */
static int execl_link(const char *path, int left, const char *pipe_fd)
{
	char next[16];

	if (left % EXECL_BATCH == 0) {
		long long time = now();

		must(write(atoi(pipe_fd), &time, sizeof(time)) == sizeof(time), "time");
	}
	if (!left)
		return 0;
	snprintf(next, sizeof(next), "%d", left - 1);
	execl(path, path, "execl", next, pipe_fd, NULL);
	must(0, "execl");
	return 1;
}

static void item_execl(void)
{
	long long times[2 * BATCHES + 1];
	double figures[BATCHES];
	char left[16], fd[16];
	int pair[2];
	pid_t pid;

	must(!pipe(pair), "pipe");
	snprintf(left, sizeof(left), "%d", 2 * BATCHES * EXECL_BATCH);
	snprintf(fd, sizeof(fd), "%d", pair[1]);
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		execl(self, self, "execl", left, fd, NULL);
		_exit(127);
	}
	wait_for(pid, "execl");
	must(read(pair[0], times, sizeof(times)) == sizeof(times), "times");
	for (int b = 0; b < BATCHES; b++)
		figures[b] = (double)(times[BATCHES + b + 1] - times[BATCHES + b]) / EXECL_BATCH;
	figure("execl", "loop", middle(figures));
	close(pair[0]);
	close(pair[1]);
}

/* A file of so many KB, open for reading and writing. */
static int file_of(const char *name, int size)
{
	char block[1024];
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	must(fd >= 0, name);
	memset(block, 'x', sizeof(block));
	while (size--)
		must(write(fd, block, sizeof(block)) == sizeof(block), "fill");
	return fd;
}

static void item_file_copy(const char *item, int block, int size)
{
	char buffer[4096];
	int from = file_of("from", size), to = file_of("to", 0);
	struct stat st;

	ITEM_OF(item, "KB", BATCHES, size, {
		must(!lseek(from, 0, SEEK_SET) && !lseek(to, 0, SEEK_SET), "rewind");
		for (int n = size * 1024 / block; n; n--)
			must(read(from, buffer, block) == block &&
				     write(to, buffer, block) == block,
			     "copy");
	});
	must(!fstat(to, &st) && st.st_size == size * 1024, "copied size");
	must(!close(from) && !close(to) && !unlink("from") && !unlink("to"), "remove");
}

static void item_pipe(void)
{
	char buffer[512] = "";
	int pair[2];

	must(!pipe(pair), "pipe");
	ITEM("pipe throughput", "round trip", 22000,
	     must(write(pair[1], buffer, sizeof(buffer)) == sizeof(buffer) &&
			  read(pair[0], buffer, sizeof(buffer)) == sizeof(buffer),
		  "pipe"));
	close(pair[0]);
	close(pair[1]);
}

/* The parent's number goes to the child, which sends it back plus one. */
static void item_context_switch(void)
{
	int there[2], back[2];
	unsigned int number, sent = 0;
	pid_t pid;

	must(!pipe(there) && !pipe(back), "pipes");
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		close(there[1]);
		while (read(there[0], &number, sizeof(number)) == sizeof(number)) {
			number++;
			must(write(back[1], &number, sizeof(number)) == sizeof(number), "back");
		}
		_exit(0);
	}
	close(there[0]);
	ITEM("context switch", "round trip", 5500, {
		must(write(there[1], &sent, sizeof(sent)) == sizeof(sent) &&
			     read(back[0], &number, sizeof(number)) == sizeof(number) &&
			     number == sent + 1,
		     "counter");
		sent = number;
	});
	close(there[1]);
	wait_for(pid, "child");
	close(back[0]);
	close(back[1]);
}

static void item_process_creation(void)
{
	ITEM("process creation", "process", 440, {
		pid_t pid = fork();

		must(pid >= 0, "fork");
		if (!pid)
			_exit(0);
		wait_for(pid, "wait");
	});
}

static void item_system_call(void)
{
	const pid_t pid = getpid();
	const uid_t uid = getuid();

	umask(022);
	ITEM("system call overhead", "loop", 22000,
	     must(!close(dup(0)) && syscall(SYS_getpid) == pid && syscall(SYS_getuid) == uid &&
			  umask(022) == 022,
		  "calls"));
}

/* What Dhrystone is made of: records, strings, calls, branches on integers. */
struct record {
	struct record *next;
	int kind, value;
	char text[32];
};

static __attribute__((noinline)) int weigh(const struct record *one, int more)
{
	if (one->kind == 2 && one->text[2] == 'R')
		return one->value + more;
	return one->value * more % 7;
}

static __attribute__((noinline)) int integer_loop(struct record *a, struct record *b, int i)
{
	static int table[50];

	strcpy(a->text, "DHRYSTONE PROGRAM, SOME STRING");
	a->kind = i & 3;
	a->value = i;
	*b = *a;
	b->next = a;
	b->text[2] = 'R';
	table[i % 50] = weigh(b, 10) + weigh(b->next, 3);
	table[(i + 7) % 50] += table[i % 50] / (a->kind + 1);
	return strcmp(a->text, b->text) < 0 ? table[i % 50] : -table[i % 50];
}

/* What Whetstone is made of: array elements, conditional jumps, a series. */
static __attribute__((noinline)) double floating_loop(double *e, double t)
{
	double x = e[0], term = 1, sum = 1;

	for (int i = 0; i < 6; i++) {
		e[0] = (e[0] + e[1] + e[2] - e[3]) * t;
		e[1] = (e[0] + e[1] - e[2] + e[3]) * t;
		e[2] = (e[0] - e[1] + e[2] + e[3]) * t;
		e[3] = (-e[0] + e[1] + e[2] + e[3]) / (2 + t);
	}
	for (int i = 1; i < 10; i++) {
		term *= x / i;
		sum += term;
	}
	return sum;
}

static void items_without_kernel(void)
{
	struct record a = { 0 }, copy;
	double e[4] = { 1, -1, -1, -1 }, sum = 0;
	volatile int kept = 0;

	ITEM("dhrystone", "loop", 55000, kept += integer_loop(&a, &copy, i));
	must(copy.next == &a && !strcmp(copy.text + 3, a.text + 3), "records");
	ITEM("whetstone", "loop", 11000, sum += floating_loop(e, 0.499975));
	must(sum > 0 && sum < 1e9, "sum");
}

int main(int argc, char **argv)
{
	ssize_t n;

	if (argc == 4 && !strcmp(argv[1], "execl"))
		return execl_link(argv[0], atoi(argv[2]), argv[3]);
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	must(n > 0, "/proc/self/exe");
	item_execl();
	item_file_copy("file copy 256", 256, 500);
	item_file_copy("file copy 1024", 1024, 2000);
	item_file_copy("file copy 4096", 4096, 8000);
	item_pipe();
	item_context_switch();
	item_process_creation();
	item_system_call();
	items_without_kernel();
	return 0;
}
