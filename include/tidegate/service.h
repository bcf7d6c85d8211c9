/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests to services over Unix sockets, in the form that Tidegate's service monitor authorises (docs/reference/service-monitor.md): the
 * client's end, tg_client_*, and the service's, tg_connection_*. Both work without a monitor, too: then everything arrives.
 *
 * Functions that return int return 0 if nothing else is said, or -1 with errno set; those that return a handle NULL. errno is
 *   EACCES      the request is not authorised: `tidegate why` has its record. Others can be made
 *   EPROTO      the monitor has ended the connection, or what was sent is no request: close it
 *   EBADMSG     what came, or was to be sent, is no message, or a reply to another request: close it
 *   EMSGSIZE    a message is longer than is accepted: of a stream, close it
 *   ECONNRESET  the other end has closed the connection within a message
 *   EAGAIN      others were sending by the same stream all the time
 *   EPROTOTYPE  the socket is neither SOCK_SEQPACKET nor SOCK_STREAM
 *   EINVAL      an argument is none: NULL, a negative descriptor, an operand of no kind, a name of more than 255 bytes
 *   EFAULT      a fault of this library's
 * or what a system call said. tg_service_error() has it in words, for the calling thread.
 *
 * A handle is used by one thread at a time. No function installs a signal handler, starts a thread, or writes to standard error;
 * none raises SIGPIPE.
 */
#ifndef TIDEGATE_SERVICE_H
#define TIDEGATE_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A client's connection to a service, and a connection that a service has accepted. */
struct tg_client;
struct tg_connection;

enum tg_operand_kind {
	TG_NUMBER = 1, /* `value` */
	/* `name`, of an object of the service's: 1 to 255 bytes, none of them 0 */
	TG_NAME = 2,
	TG_DESCRIPTOR = 3, /* `value`, which a reply has given on this connection */
};

struct tg_operand {
	uint32_t kind;     /* enum tg_operand_kind */
	uint32_t name_len; /* bytes of `name`, which need not end with a NUL */
	const char *name;
	uint64_t value;
};

struct tg_request {
	uint32_t operation; /* its number, as the capability file has it */
	uint32_t id;        /* by which it is answered; the library's choice where a client sends */
	const struct tg_operand *operands;
	size_t operands_count; /* 8 at most */
	const void *payload;   /* what the service knows the meaning of; nobody authorises it */
	size_t payload_len;
};

enum tg_change {
	TG_NO_CHANGE = 0,
	TG_BOUND = 1,   /* `descriptor` stands for the object that the request named first */
	TG_DROPPED = 2, /* `descriptor` stands for nothing any more */
};

struct tg_reply {
	uint32_t id;     /* the request's */
	uint32_t status; /* the service's own */
	uint32_t change; /* enum tg_change */
	uint64_t descriptor;
	const void *payload;
	size_t payload_len;
};

/* Connects to the service at a path: by packets, or by a stream, as it has it. */
struct tg_client *tg_client_connect(const char *path);

/* The same of a socket that is connected already. The handle closes it; so does a call that fails, if it is open. */
struct tg_client *tg_client_of(int fd);

/* Closes the connection. NULL is nothing. */
void tg_client_close(struct tg_client *client);

/* Accepts replies of so many bytes at most; else 1 MiB. */
int tg_client_accept_up_to(struct tg_client *client, size_t bytes);

/* Makes a request, and waits for its reply, whose payload is good until the handle is used again. */
int tg_client_call(struct tg_client *client, const struct tg_request *request,
		   struct tg_reply *reply);

/* Makes a request without waiting; `id` tells which reply is to it. */
int tg_client_send(struct tg_client *client, const struct tg_request *request, uint32_t *id);

/* The next reply, which is waited for. Its payload is good until the handle is used again. */
int tg_client_receive(struct tg_client *client, struct tg_reply *reply);

/* A connection that accept(2) gave. The handle closes it; so does a call that fails, if it is open. */
struct tg_connection *tg_connection_of(int fd);

/* Closes the connection. NULL is nothing. */
void tg_connection_close(struct tg_connection *connection);

/* Accepts requests of so many bytes at most; else 1 MiB. */
int tg_connection_accept_up_to(struct tg_connection *connection, size_t bytes);

/*
 * The next request, which is waited for: 1; 0: the client has closed the connection. What it points to is good until the handle
 * is used to receive again.
 */
int tg_connection_receive(struct tg_connection *connection, struct tg_request *request);

/* Answers a request. */
int tg_connection_reply(struct tg_connection *connection, const struct tg_reply *reply);

/* What the last call of this thread that failed says, in words; "" if none did. Good until the thread's next call. */
const char *tg_service_error(void);

#ifdef __cplusplus
}
#endif
#endif
