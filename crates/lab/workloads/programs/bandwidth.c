/* SPDX-License-Identifier: GPL-2.0-or-later */
/* LMBench's bandwidths by their definitions, a fixed number of MB each. */
#define _GNU_SOURCE
#include "count.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MB (1 << 20)
#define CHUNK (64 << 10)
/* In every batch. */
#define MOVED 4
#define ROUNDS (MOVED * BATCHES)
#define FILE_MB 8

static char buffer[CHUNK];

/* A child writes what is asked for and no more; this process reads it. */
static void item_stream(const char *item, int from, int to)
{
	int status;
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (!pid) {
		close(from);
		for (long left = 2l * ROUNDS * MB; left; left -= CHUNK)
			must(write(to, buffer, CHUNK) == CHUNK, "write");
		_exit(0);
	}
	close(to);
	ITEM(item, "MB", ROUNDS, {
		for (long left = MB; left;) {
			ssize_t n = read(from, buffer, left < CHUNK ? left : CHUNK);

			must(n > 0, "read");
			left -= n;
		}
	});
	must(!read(from, buffer, 1), "end");
	must(waitpid(pid, &status, 0) == pid && !status, "writer");
	close(from);
}

static void items_streams(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(any);
	const int kept = 2 * CHUNK;
	int pair[2], server;

	must(!pipe(pair), "pipe");
	item_stream("pipe bandwidth", pair[0], pair[1]);
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	item_stream("unix bandwidth", pair[0], pair[1]);

	/* fixed sizes: the kernel would find out about its own as time goes by */
	server = socket(AF_INET, SOCK_STREAM, 0);
	pair[1] = socket(AF_INET, SOCK_STREAM, 0);
	must(!setsockopt(server, SOL_SOCKET, SO_RCVBUF, &kept, sizeof(kept)) &&
		     !setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &kept, sizeof(kept)),
	     "buffers");
	must(server >= 0 && !bind(server, (void *)&any, sizeof(any)) && !listen(server, 1) &&
		     !getsockname(server, (void *)&any, &length),
	     "listen");
	must(pair[1] >= 0 && !connect(pair[1], (void *)&any, sizeof(any)), "connect");
	pair[0] = accept(server, NULL, NULL);
	must(pair[0] >= 0 && !close(server), "accept");
	item_stream("tcp bandwidth", pair[0], pair[1]);
}

/* The compiler shall not make calls of memcpy and memset of these. */
#define BY_HAND __attribute__((noinline, optimize("no-tree-loop-distribute-patterns")))

static BY_HAND void copy(long *to, const long *from)
{
	for (size_t i = 0; i < MB / sizeof(*to); i++)
		to[i] = from[i];
}

static BY_HAND void fill(long *to, long with)
{
	for (size_t i = 0; i < MB / sizeof(*to); i++)
		to[i] = with;
}

static __attribute__((noinline)) long sum(const long *from)
{
	long all = 0;

	for (size_t i = 0; i < MB / sizeof(*from); i++)
		all += from[i];
	return all;
}

#define WORDS (MB / (long)sizeof(long))

static void items_file(void)
{
	int fd = open("file", O_RDWR | O_CREAT | O_EXCL, 0644);
	long *mapped;

	must(fd >= 0, "file");
	for (size_t i = 0; i < sizeof(buffer) / sizeof(long); i++)
		((long *)buffer)[i] = 3;
	for (long left = FILE_MB * MB; left; left -= CHUNK)
		must(write(fd, buffer, CHUNK) == CHUNK, "fill");
	ITEM("file reread", "MB", ROUNDS, {
		must(lseek(fd, i % FILE_MB * MB, SEEK_SET) >= 0, "lseek");
		for (long left = MB; left; left -= CHUNK)
			must(read(fd, buffer, CHUNK) == CHUNK && buffer[CHUNK - 8] == 3, "reread");
	});
	mapped = mmap(NULL, FILE_MB * MB, PROT_READ, MAP_SHARED, fd, 0);
	must(mapped != MAP_FAILED, "mmap");
	ITEM("mmap reread", "MB", ROUNDS,
	     must(sum(mapped + i % FILE_MB * WORDS) == 3 * WORDS, "mapped"));
	must(!munmap(mapped, FILE_MB * MB) && !close(fd) && !unlink("file"), "remove");
}

static void items_memory(void)
{
	static long from[MB / sizeof(long)], to[MB / sizeof(long)];
	void *(*volatile libc)(void *, const void *, size_t) = memcpy;

	fill(from, 5);
	fill(to, 7);
	ITEM("bcopy libc", "MB", ROUNDS, libc(to, from, MB));
	must(sum(to) == 5 * WORDS, "libc's copy");
	fill(to, 7);
	ITEM("bcopy hand", "MB", ROUNDS, copy(to, from));
	must(sum(to) == 5 * WORDS, "copy by hand");
	ITEM("mem read", "MB", ROUNDS, must(sum(from) == 5 * WORDS, "sum"));
	ITEM("mem write", "MB", ROUNDS, fill(to, i));
	must(sum(to) == (MOVED - 1) * WORDS, "written");
}

int main(void)
{
	items_streams();
	items_file();
	items_memory();
	return 0;
}
