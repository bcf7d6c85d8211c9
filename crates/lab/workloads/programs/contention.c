/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an operation costs on each processor while others do the same: processes that
 * are pinned and start together, each with a directory and files of its own, so that
 * nothing but the kernel is shared.
 */
#define _GNU_SOURCE
#include "count.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 8

struct shared {
	pthread_barrier_t start;
	double figure[MOST];
};

static struct shared *shared;
static int fd, pair[2];

static void open_close(void)
{
	int f = open("file", O_RDONLY);

	must(f >= 0 && !close(f), "open");
}

static void read_one(void)
{
	char byte;

	must(pread(fd, &byte, 1, 0) == 1, "read");
}

static void stat_one(void)
{
	struct stat st;

	must(!stat("file", &st) && st.st_size == 1, "stat");
}

static void fork_one(void)
{
	int status;
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (!pid)
		_exit(0);
	must(waitpid(pid, &status, 0) == pid && !status, "wait");
}

static void unix_one(void)
{
	char block[8] = "";

	must(send(pair[0], block, 8, 0) == 8 && recv(pair[1], block, 8, 0) == 8, "unix");
}

static const struct operation {
	const char *name;
	void (*once)(void);
	int rounds;
} operations[] = {
	{ "open+close", open_close, 110000 }, { "read", read_one, 220000 },
	{ "stat", stat_one, 110000 },         { "fork", fork_one, 2200 },
	{ "unix", unix_one, 110000 },
};

static int processors[MOST];

/* The processors that this process may use, up to the most of interest. */
static int count_processors(void)
{
	cpu_set_t all;
	int n = 0;

	must(!sched_getaffinity(0, sizeof(all), &all), "affinity");
	for (int cpu = 0; cpu < CPU_SETSIZE && n < MOST; cpu++)
		if (CPU_ISSET(cpu, &all))
			processors[n++] = cpu;
	return n;
}

static void prepare(int which)
{
	char name[16];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(processors[which], &one);
	must(!sched_setaffinity(0, sizeof(one), &one), "pinning");
	snprintf(name, sizeof(name), "cpu%d", which);
	must((!mkdir(name, 0755) || errno == EEXIST) && !chdir(name), "directory");
	fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0644);
	must(fd >= 0 && write(fd, "x", 1) == 1, "file");
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
}

/*
 * The batches that count are the middle ones, and as many run before and after: a
 * process that is done must not leave the others undisturbed while they are counted.
 */
static double work(const struct operation *op)
{
	const int batch = op->rounds / BATCHES;
	double figures[3 * BATCHES];

	for (int b = 0; b < 3 * BATCHES; b++) {
		long long start = now();

		for (int i = 0; i < batch; i++)
			op->once();
		figures[b] = (double)(now() - start) / batch;
	}
	return middle(figures + BATCHES);
}

static void measure(const struct operation *op, int n)
{
	pthread_barrierattr_t between;
	double sum = 0;
	char item[64];
	int status;

	must(!pthread_barrierattr_init(&between) &&
		     !pthread_barrierattr_setpshared(&between, PTHREAD_PROCESS_SHARED) &&
		     !pthread_barrier_init(&shared->start, &between, n),
	     "barrier");
	for (int which = 0; which < n; which++) {
		pid_t pid = fork();

		must(pid >= 0, "fork");
		if (!pid) {
			/* or the failure of one would leave the others at the barrier */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prepare(which);
			pthread_barrier_wait(&shared->start);
			shared->figure[which] = work(op);
			_exit(0);
		}
	}
	for (int which = 0; which < n; which++)
		must(wait(&status) > 0 && !status, op->name);
	for (int which = 0; which < n; which++)
		sum += shared->figure[which];
	snprintf(item, sizeof(item), "%s, %d CPUs", op->name, n);
	figure(item, "operation", sum / n);
}

int main(void)
{
	const int online = count_processors();

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	must(shared != MAP_FAILED, "shared memory");
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		for (int n = 1; n <= online; n *= 2)
			measure(&operations[i], n);
	return 0;
}
