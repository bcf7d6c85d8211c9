/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests to a small service over Unix sockets, in the form of docs/reference/service-monitor.md: the service, and its client. The
 * same bytes go over the socket whoever authorises them, or nobody.
 *
 * The service is at DIR/packets and DIR/stream. A client goes there too, or to the sockets of the same names in the directory
 * that $LAVA_MONITOR says: somebody who authorises requests and passes them on.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include "count.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the service can do. How each is authorised: systems/files/lava-service. */
enum operation {
	OPEN = 1,  /* a name, and what for: a descriptor */
	PUT = 2,   /* a descriptor */
	CLOSE = 3, /* a descriptor, which stands for nothing any more */
	PING = 4,  /* nothing */
	LOOK = 5,  /* a name, and what for; no descriptor */
};

enum { NUMBER = 1, NAME = 2, DESCRIPTOR = 3 }; /* kinds of operands */
enum { BOUND = 1, DROPPED = 2 };               /* flags of a reply */

#define FOR_WRITING 1

struct request {
	uint32_t length, operation, id;
	uint16_t operands, operands_len;
};

struct operand {
	uint8_t kind, zero;
	uint16_t len;
	uint32_t none;
};

struct reply {
	uint32_t length, id, status, flags;
	uint64_t descriptor;
};

/* What a message carries for the service or from it, beyond what is authorised: as Lava's shortest IPC. */
#define PAYLOAD 8
#define LARGE 4096
#define MESSAGE (sizeof(struct request) + 8 * (sizeof(struct operand) + 256) + LARGE)

/* A message that is made once and sent over and over, and the reply that is expected. */
struct call {
	union {
		struct request head;
		unsigned char bytes[MESSAGE];
	};
	uint32_t reply_length;
};

static inline void add_operand(struct call *c, uint8_t kind, const void *content, uint16_t len)
{
	const struct operand o = { .kind = kind, .len = len };
	unsigned char *at = c->bytes + c->head.length;
	const unsigned padded = (len + 7) / 8 * 8;

	memcpy(at, &o, sizeof(o));
	memset(at + sizeof(o), 0, padded);
	memcpy(at + sizeof(o), content, len);
	c->head.operands++;
	c->head.operands_len += sizeof(o) + padded;
	c->head.length += sizeof(o) + padded;
}

static inline void begin_call(struct call *c, enum operation operation)
{
	memset(c, 0, sizeof(*c));
	c->head.operation = operation;
	c->head.length = sizeof(c->head);
	c->reply_length = sizeof(struct reply) + PAYLOAD;
}

/* Ends a message with a payload of so many bytes. */
static inline void end_call(struct call *c, uint32_t payload)
{
	memset(c->bytes + c->head.length, 'p', payload);
	c->head.length += payload;
}

static inline void of_nothing(struct call *c, enum operation operation, uint32_t payload)
{
	begin_call(c, operation);
	end_call(c, payload);
}

static inline void of_descriptor(struct call *c, enum operation operation, uint64_t descriptor,
				 uint32_t payload)
{
	begin_call(c, operation);
	add_operand(c, DESCRIPTOR, &descriptor, sizeof(descriptor));
	end_call(c, payload);
}

/* A name of so many bytes that begins so. */
static inline void of_name(struct call *c, enum operation operation, const char *begin,
			   unsigned len)
{
	const uint64_t what_for = FOR_WRITING;
	char name[256];

	memset(name, 'n', sizeof(name));
	memcpy(name, begin, strlen(begin));
	begin_call(c, operation);
	add_operand(c, NAME, name, len);
	add_operand(c, NUMBER, &what_for, sizeof(what_for));
	end_call(c, PAYLOAD);
}

/*
 * Makes a request and waits for its reply. The errno of a refusal says which part
 * refused it, as the reply of a monitor that is a process does.
 */
static inline int ask(int fd, struct call *c, struct reply *r)
{
	unsigned char got[sizeof(*r) + PAYLOAD];

	c->head.id++;
	if (send(fd, c->bytes, c->head.length, MSG_NOSIGNAL) != (ssize_t)c->head.length)
		return 0;
	if (recv(fd, got, c->reply_length, MSG_WAITALL) != (ssize_t)c->reply_length)
		return 0;
	memcpy(r, got, sizeof(*r));
	must(r->id == c->head.id, "the reply to another request");
	errno = r->status;
	return !r->status;
}

/* The service's end of a request: the whole of the next one; 0: there are no more. Of a stream no more is asked for than one has
 * to be: its requests are as long as the one before, until one is not. */
static inline size_t next_request(int fd, int is_stream, unsigned char *bytes)
{
	const struct request *head = (const struct request *)bytes;
	static size_t last = sizeof(*head);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t have = 0;
	ssize_t n;

	if (!is_stream) {
		n = recv(fd, bytes, MESSAGE, 0);
		must(n >= 0, "a request");
		return n;
	}
	for (;;) {
		const size_t whole = have < sizeof(*head) ? sizeof(*head) : head->length;
		size_t want = have ? whole - have : last;

		if (have >= sizeof(*head) && have == whole) {
			last = whole;
			return have;
		}
		must(poll(&p, 1, -1) == 1, "poll");
		n = recv(fd, bytes + have, want, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN && !have && last > sizeof(*head)) {
			last = sizeof(*head);
			continue;
		}
		must(n >= 0, "a request");
		if (!n)
			return 0;
		have += n;
	}
}

/* Answers whoever is connected, until he has gone. */
static inline void serve(int fd, int is_stream)
{
	static unsigned char bytes[MESSAGE], out[sizeof(struct reply) + PAYLOAD];
	const struct request *head = (const struct request *)bytes;
	struct reply *r = (struct reply *)out;
	uint64_t descriptor = 1;

	while (next_request(fd, is_stream, bytes)) {
		memset(r, 0, sizeof(*r));
		r->length = sizeof(out);
		r->id = head->id;
		if (head->operation == OPEN || head->operation == CLOSE) {
			r->flags = head->operation == OPEN ? BOUND : DROPPED;
			r->descriptor = head->operation == OPEN ? descriptor : descriptor++;
		}
		must(send(fd, out, sizeof(out), MSG_NOSIGNAL) == sizeof(out), "a reply");
	}
}

static inline struct sockaddr_un at(const char *dir, const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	must(snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", dir, name) < (int)sizeof(a.sun_path),
	     "a socket's name");
	return a;
}

/* A service of one connection, as a process of its own that ends with this one. */
static inline pid_t start_service(const char *dir, int is_stream)
{
	const struct sockaddr_un a = at(dir, is_stream ? "stream" : "packets");
	const int l = socket(AF_UNIX, is_stream ? SOCK_STREAM : SOCK_SEQPACKET, 0);
	pid_t pid;
	int fd;

	must(l >= 0, "socket");
	must(!unlink(a.sun_path) || errno == ENOENT, a.sun_path);
	must(!bind(l, (const struct sockaddr *)&a, sizeof(a)) && !listen(l, 1), a.sun_path);
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = accept(l, NULL, NULL);
		must(fd >= 0 && !close(l), "accept");
		serve(fd, is_stream);
		_exit(0);
	}
	close(l);
	return pid;
}

static inline int connect_to(const char *dir, int is_stream)
{
	const char *monitor = getenv("LAVA_MONITOR");
	const struct sockaddr_un a = at(monitor ? monitor : dir, is_stream ? "stream" : "packets");
	const int fd = socket(AF_UNIX, is_stream ? SOCK_STREAM : SOCK_SEQPACKET, 0);

	must(fd >= 0 && !connect(fd, (const struct sockaddr *)&a, sizeof(a)), a.sun_path);
	return fd;
}

static inline void end_service(const char *dir, int is_stream, pid_t pid, int fd)
{
	const struct sockaddr_un a = at(dir, is_stream ? "stream" : "packets");
	int status;

	close(fd);
	must(waitpid(pid, &status, 0) == pid && !status, "the service");
	must(!unlink(a.sun_path), a.sun_path);
}

/* Client and service take turns, so they share a processor, as Lava's did. */
static inline void share_a_processor(void)
{
	cpu_set_t all, one;

	must(!sched_getaffinity(0, sizeof(all), &all), "affinity");
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &one);
			break;
		}
	must(!sched_setaffinity(0, sizeof(one), &one), "pinning");
}

#endif
