/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Narrows itself by libtidegate-restrict, in some situation, and says in a line what came of that and of opening PATH then:
 * errors by their names. SUBJECT does not give PATH, unless the situation is that it does.
 *
 *   ops SITUATION FILE.caps SUBJECT PATH
 *   ops sessions|crowd|files FILE.caps COUNT UID
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidegate/restrict.h>

#define THREADS 4
#define STACK (64 << 10)

static const char *file, *subject, *path;

static const char *name(int failed)
{
	return failed ? strerrorname_np(errno) : "ok";
}

static int narrow(void)
{
	int failed = tg_restrict_self(file, subject);

	printf("%s ", name(failed));
	if (failed)
		printf("(%s) ", tg_restrict_error());
	return failed;
}

static const char *try_open(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *said = name(fd < 0);

	if (fd >= 0)
		close(fd);
	return said;
}

/* What is open and mapped, and a connection. */
static void held(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), ends[2];
	char *memory = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0), byte;

	if (fd < 0 || memory == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		exit(2);
	narrow();
	printf("read %s ", name(pread(fd, &byte, 1, 0) != 1));
	printf("write %s ", name(pwrite(fd, &byte, 1, 0) != 1));
	printf("mapped %s ", memory[0] == byte ? "ok" : "differs");
	printf("sent %s ", name(send(ends[0], &byte, 1, 0) != 1));
	printf("anew %s", try_open());
}

/* Waits until all other threads of this process sleep in a call. */
static void others_sleep(void)
{
	char at[64], line[256], *state;
	int awake, fd, length;
	struct dirent *entry;
	DIR *tasks;

	do {
		awake = 0;
		tasks = opendir("/proc/self/task");
		if (!tasks)
			exit(2);
		while ((entry = readdir(tasks))) {
			if (entry->d_name[0] == '.' || atoi(entry->d_name) == gettid())
				continue;
			snprintf(at, sizeof(at), "/proc/self/task/%.20s/stat", entry->d_name);
			fd = open(at, O_RDONLY | O_CLOEXEC);
			length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
			if (fd >= 0)
				close(fd);
			line[length < 0 ? 0 : length] = 0;
			/* after the name */
			state = strrchr(line, ')');
			awake += !state || state[2] != 'S';
		}
		closedir(tasks);
	} while (awake && !usleep(1000));
}

static pthread_barrier_t barrier, second;

static void *waiting(void *waits)
{
	char byte;

	pthread_barrier_wait(&barrier);
	/* one of them in a call that does not end by itself */
	if (waits && read(*(int *)waits, &byte, 1) != 1)
		return "no byte";
	if (!waits)
		pthread_barrier_wait(&second);
	return (void *)try_open();
}

static void *narrowing(void *unused)
{
	(void)unused;
	narrow();
	return NULL;
}

/* Threads of before, in various states; narrowed by the first one or by another. */
static void threads(int by_another)
{
	pthread_t all[THREADS], other;
	int ends[2], i;
	void *said;

	if (pipe(ends) || pthread_barrier_init(&barrier, NULL, THREADS + 1) ||
	    pthread_barrier_init(&second, NULL, THREADS))
		exit(2);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&all[i], NULL, waiting, i ? NULL : &ends[0]))
			exit(2);
	pthread_barrier_wait(&barrier);
	others_sleep();
	if (by_another) {
		pthread_create(&other, NULL, narrowing, NULL);
		pthread_join(other, NULL);
	} else {
		narrow();
	}
	pthread_barrier_wait(&second);
	if (write(ends[1], "x", 1) != 1)
		exit(2);
	printf("first %s threads", try_open());
	for (i = 0; i < THREADS; i++) {
		pthread_join(all[i], &said);
		printf(" %s", (char *)said);
	}
}

static atomic_int narrowed, over, opened_then, born, living;

/* Makes the next one, and opens what it can. */
static void *chain(void *unused)
{
	pthread_t next;
	int i, then, fd;

	(void)unused;
	pthread_detach(pthread_self());
	for (i = 0; i < 20; i++) {
		then = narrowed;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			opened_then += then;
			close(fd);
		}
	}
	born++;
	if (over || pthread_create(&next, NULL, chain, NULL))
		living--;
	return NULL;
}

/* Waits until so many have been born since, or nobody is left. */
static void births_since(int count, int number)
{
	while (living && born < count + number)
		usleep(1000);
}

/* Threads that come and go all the time: none opens anything once the call has returned. */
static void births(void)
{
	pthread_t one;
	int i;

	living = THREADS;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&one, NULL, chain, NULL))
			exit(2);
	births_since(0, 50);
	narrow();
	narrowed = 1;
	births_since(born, 50);
	over = 1;
	while (living)
		usleep(1000);
	printf("opened since: %d, threads %s", opened_then, born > 50 ? "many" : "few");
}

/* A child of before is not narrowed; one of since is, and what that executes. */
static void children(void)
{
	int ends[2], status[2] = { 1, 1 };
	pid_t before, since;
	char byte;

	if (pipe(ends))
		exit(2);
	fflush(stdout);
	before = fork();
	if (!before) {
		if (read(ends[0], &byte, 1) != 1)
			_exit(2);
		_exit(strcmp(try_open(), "ok") != 0);
	}
	narrow();
	if (write(ends[1], "x", 1) != 1)
		exit(2);
	fflush(stdout);
	since = fork();
	if (!since)
		_exit(strcmp(try_open(), "EACCES") != 0);
	waitpid(before, &status[0], 0);
	waitpid(since, &status[1], 0);
	printf("of before %s, since %s", status[0] ? "wrong" : "ok",
	       status[1] ? "wrong" : "EACCES");
}

static int sleeper(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return 0;
}

/* While another process shares what the flag says, and after its end. */
static void shared(int flags)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t other = clone(sleeper, stack + STACK, flags | SIGCHLD, NULL);

	if (other < 0)
		exit(2);
	narrow();
	printf("%s then ", try_open());
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	narrow();
	printf("%s", try_open());
}

/* One layer after the other: each is another text's. */
static void layers(void)
{
	char text[200];
	int i, failed = 0;

	for (i = 1; i <= 20 && !failed; i++) {
		snprintf(text, sizeof(text), "subject s%d {\n file /** read\n}\n", i);
		failed = tg_restrict_self_text("many.caps", text, NULL);
	}
	printf("%d: %s (%s) ", i - 1, name(failed), tg_restrict_error());
	/* one that is there already is no other */
	snprintf(text, sizeof(text), "subject s1 {\n file /** read\n}\n");
	printf("again %s ", name(tg_restrict_self_text("many.caps", text, NULL)));
	printf("%s", try_open());
}

/* By what gives everything, after something that does not. */
static void wider(void)
{
	const char *all =
		"subject all {\n file /** read write create\n dir /** read\n program /** execute\n library /** load\n"
		" connect unix /**\n connect tcp any\n}\n";

	narrow();
	printf("all %s ", name(tg_restrict_self_text("all.caps", all, NULL)));
	printf("%s", try_open());
}

/* A thread that could still get new privileges, while this one could not. */
static void privileges(void)
{
	pthread_t one;
	int ends[2];
	void *said;

	if (pipe(ends) || pthread_barrier_init(&barrier, NULL, 2) ||
	    pthread_create(&one, NULL, waiting, &ends[0]))
		exit(2);
	pthread_barrier_wait(&barrier);
	narrow();
	if (write(ends[1], "x", 1) != 1)
		exit(2);
	pthread_join(one, &said);
	printf("first %s thread %s ", try_open(), (char *)said);
	/* alone it may */
	narrow();
	printf("%s nnp %d", try_open(), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

/* A child of another user limits itself, by the file or a text; why it could not be is said. */
static int child_of(uid_t uid, const char *text, int stays)
{
	int ends[2], failed;
	char byte = 1;
	pid_t child;

	fflush(stdout);
	if (pipe(ends))
		exit(2);
	child = fork();
	if (child) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) != 1)
			exit(2);
		close(ends[0]);
		/* its session is there as long as anything of it is */
		if (byte || !stays)
			waitpid(child, NULL, 0);
		return byte;
	}
	if (setresuid(uid, uid, uid))
		_exit(2);
	failed =
		text ? tg_restrict_self_text("one.caps", text, NULL) : tg_restrict_self(file, NULL);
	byte = !!failed;
	if (failed)
		printf("%s (%s) ", name(failed), tg_restrict_error());
	fflush(stdout);
	if (write(ends[1], &byte, 1) != 1 || byte || !stays)
		_exit(2);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(ends[0]);
	for (;;)
		pause();
}

/* Sessions, as many as that, so many a user; and then one more of another user's, and one of root's. */
static void sessions(unsigned count, uid_t first, unsigned each)
{
	unsigned i;

	for (i = 0; i < count && !child_of(first + i / each, NULL, 1); i++)
		;
	printf("%u began, ", i);
	printf("the next user's %s, ", child_of(first + i / each + 1, NULL, 1) ? "not" : "too");
	printf("root's %s", child_of(0, NULL, 1) ? "not" : "too");
}

/* Files of one user's, each another. */
static void files(unsigned count, uid_t uid)
{
	char text[100];
	unsigned i;

	for (i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "subject s%u {\n}\n", i);
		if (child_of(uid, text, 0))
			break;
	}
	printf("%u files, ", i);
	printf("another user's %s, root's %s",
	       child_of(uid + 1, "subject t {\n}\n", 0) ? "not" : "too",
	       child_of(0, "subject u {\n}\n", 0) ? "not" : "too");
}

int main(int argc, char **argv)
{
	const char *how = argv[1];

	if (argc < 5)
		return 2;
	file = argv[2];
	subject = strcmp(argv[3], "-") ? argv[3] : NULL;
	path = argv[4];
	if (!strcmp(how, "held"))
		held();
	else if (!strcmp(how, "threads"))
		threads(0);
	else if (!strcmp(how, "by-thread"))
		threads(1);
	else if (!strcmp(how, "births"))
		births();
	else if (!strcmp(how, "children"))
		children();
	else if (!strcmp(how, "shared-memory"))
		shared(CLONE_VM);
	else if (!strcmp(how, "shared-files"))
		shared(CLONE_FILES);
	else if (!strcmp(how, "layers"))
		layers();
	else if (!strcmp(how, "wider"))
		wider();
	else if (!strcmp(how, "privileges"))
		privileges();
	else if (!strcmp(how, "sessions"))
		sessions(atoi(argv[3]), atoi(argv[4]), UINT_MAX);
	else if (!strcmp(how, "crowd"))
		sessions(atoi(argv[3]), atoi(argv[4]), 64);
	else if (!strcmp(how, "files"))
		files(atoi(argv[3]), atoi(argv[4]));
	else if (!strcmp(how, "wait"))
		pause();
	else if (!strcmp(how, "plain"))
		printf("%s", narrow() ? "" : try_open());
	else
		return 2;
	printf("\n");
	return 0;
}
