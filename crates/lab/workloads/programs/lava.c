/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What Lava's authors measured: requests of 8 bytes to a service and back, and what is added by authorising them, by kind of
 * operation, by lengths of names and messages, by the number of capabilities; and what is like it of files, open and write.
 *
 *   lava packets|stream DIR        requests; the service's socket is in DIR
 *   lava names DIR                 binding, by the length of a name
 *   lava many DIR                  the same, for capabilities of the number $LAB_RULES
 *   lava paced DIR                 30,000 requests a second: the processor's time that they take
 *   lava probe packets|stream DIR  a request that no governed process may make
 */
#define _GNU_SOURCE
#include "request.h"

#include <fcntl.h>

#define ROUNDS 2200
#define SHORT "pub:"
/* Bytes of the shortest name, and the longest of an operand. */
#define SHORTEST 8
#define LONGEST 255

static struct call call, other;
static struct reply reply;
static int fd;

static void round_trips_as(const char *item)
{
	ITEM(item, "round trip", ROUNDS, must(ask(fd, &call, &reply), item));
}

static void requests(void)
{
	uint64_t descriptor;

	of_nothing(&call, PING, PAYLOAD);
	round_trips_as("free");
	of_nothing(&call, PING, LARGE);
	round_trips_as("free, 4 KB");
	of_name(&call, OPEN, SHORT, SHORTEST);
	must(ask(fd, &call, &reply) && reply.flags == BOUND, "opening");
	descriptor = reply.descriptor;
	of_descriptor(&call, PUT, descriptor, PAYLOAD);
	round_trips_as("active");
	of_descriptor(&call, PUT, descriptor, LARGE);
	round_trips_as("active, 4 KB");
	of_descriptor(&call, CLOSE, descriptor, PAYLOAD);
	must(ask(fd, &call, &reply) && reply.flags == DROPPED, "closing");
	of_name(&call, LOOK, SHORT, SHORTEST);
	round_trips_as("bind");
	of_name(&call, OPEN, SHORT, SHORTEST);
	ITEM("bind with a descriptor, and its end", "two round trips", ROUNDS, {
		must(ask(fd, &call, &reply), "opening");
		of_descriptor(&other, CLOSE, reply.descriptor, PAYLOAD);
		must(ask(fd, &other, &reply), "closing");
	});
}

/* A file's path of so many bytes in the directory; it is made. */
static const char *path_of(const char *dir, size_t len)
{
	static char path[512];
	int f;

	must(snprintf(path, sizeof(path), "%s/f", dir) <= (int)len, "so short a path");
	memset(path + strlen(path), 'f', len - strlen(path));
	path[len] = '\0';
	f = open(path, O_RDWR | O_CREAT, 0644);
	must(f >= 0 && !close(f), path);
	return path;
}

static void opens_as(const char *item, const char *path)
{
	ITEM(item, "operation", ROUNDS, {
		const int f = open(path, O_RDONLY);
		must(f >= 0 && !close(f), item);
	});
}

static void names(const char *dir)
{
	static const unsigned lengths[] = { SHORTEST, 16, 32, 64, 128, LONGEST };
	char item[64], content[PAYLOAD] = "";
	const char *path;
	int f;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		of_name(&call, LOOK, SHORT, lengths[i]);
		snprintf(item, sizeof(item), "bind of a name, %u bytes", lengths[i]);
		round_trips_as(item);
	}
	for (size_t i = 1; i < sizeof(lengths) / sizeof(*lengths); i++) {
		path = path_of(dir, lengths[i]);
		snprintf(item, sizeof(item), "open+close of a path, %u bytes", lengths[i]);
		opens_as(item, path);
		must(!unlink(path), path);
	}
	path = path_of(dir, LONGEST);
	f = open(path, O_RDWR);
	must(f >= 0, path);
	ITEM("write 8 B of a file", "operation", 10 * ROUNDS,
	     must(pwrite(f, content, PAYLOAD, 0) == PAYLOAD, "write"));
	ITEM("read 8 B of a file", "operation", 10 * ROUNDS,
	     must(pread(f, content, PAYLOAD, 0) == PAYLOAD, "read"));
	must(!close(f) && !unlink(path), path);
}

static void many(const char *dir)
{
	const char *number = getenv("LAB_RULES"), *path = path_of(dir, 32);
	char item[64];

	must(!!number, "LAB_RULES");
	of_name(&call, LOOK, SHORT, SHORTEST);
	snprintf(item, sizeof(item), "bind of a name, %s capabilities", number);
	round_trips_as(item);
	snprintf(item, sizeof(item), "open+close of a path, %s capabilities", number);
	opens_as(item, path);
	must(!unlink(path), path);
}

/* What the authors' requests come at, in bursts of so many each millisecond, for so long. */
#define BURST 30
#define SECONDS 2

/* Processor time of this process and the service, in nanoseconds. */
static long long spent(pid_t service)
{
	struct timespec own, its;
	clockid_t clock;

	must(!clock_getcpuclockid(service, &clock), "the service's clock");
	must(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) && !clock_gettime(clock, &its),
	     "processor time");
	return (own.tv_sec + its.tv_sec) * 1000000000ll + own.tv_nsec + its.tv_nsec;
}

/* One request of so many is `call`, the rest are `other`. */
static void pace(const char *item, pid_t service, int among)
{
	long long next = now(), before = spent(service);
	int n = 0;

	for (int ms = 0; ms < SECONDS * 1000; ms++) {
		struct timespec t;

		for (int i = 0; i < BURST; i++)
			must(ask(fd, ++n % among ? &other : &call, &reply), item);
		next += 1000000;
		t.tv_sec = next / 1000000000;
		t.tv_nsec = next % 1000000000;
		must(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL), "sleep");
	}
	if (now() - next > 100000000) {
		fprintf(stderr,
			"%s: 30,000 requests a second are more than this machine gets done\n",
			item);
		exit(1);
	}
	figure(item, "second of 30,000 requests", (double)(spent(service) - before) / SECONDS);
}

static void paced(pid_t service)
{
	of_name(&call, OPEN, SHORT, SHORTEST);
	must(ask(fd, &call, &reply), "opening");
	of_descriptor(&call, PUT, reply.descriptor, PAYLOAD);
	of_descriptor(&other, PUT, reply.descriptor, PAYLOAD);
	pace("active", service, 10);
	of_name(&call, LOOK, SHORT, SHORTEST);
	pace("a bind among ten", service, 10);
}

/* A request that is refused, if anybody looks. */
static void probe(void)
{
	of_name(&call, LOOK, "secret:", SHORTEST);
	must(ask(fd, &call, &reply), "a request for a secret");
}

int main(int argc, char **argv)
{
	const int probes = argc > 1 && !strcmp(argv[1], "probe");
	const char *what = argc == 3 + probes ? argv[1 + probes] : "", *dir = argv[argc - 1];
	const int is_stream = !strcmp(what, "stream"), is_packets = !strcmp(what, "packets");
	pid_t service;

	if (!is_stream && !is_packets &&
	    (probes || (strcmp(what, "names") && strcmp(what, "many") && strcmp(what, "paced"))))
		return 2;
	share_a_processor();
	service = start_service(dir, is_stream);
	fd = connect_to(dir, is_stream);
	if (probes)
		probe();
	else if (is_stream || is_packets)
		requests();
	else if (!strcmp(what, "names"))
		names(dir);
	else if (!strcmp(what, "paced"))
		paced(service);
	else
		many(dir);
	end_service(dir, is_stream, service, fd);
	return 0;
}
