/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A service that keeps notes by their names, and its client. notes.caps describes the service for
 * capability files; a client that one limits is held to it by the kernel, so the service asks
 * nobody.
 *
 *   notes serve [--stream] SOCKET
 *   notes get SOCKET NAME
 *   notes put SOCKET NAME TEXT
 *
 * The client ends with 0: done; 1: refused; 2: anything else, such as no service.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <tidegate/service.h>

enum operation {
	OPEN = 1, /* operand 1: the name; operand 2: enum mode */
	GET = 2,  /* operand 1: the descriptor; the reply's payload is the text */
	PUT = 3,  /* operand 1: the descriptor; the payload is the text */
	PING = 4,
};

enum mode { TO_READ, TO_WRITE, TO_READ_AND_WRITE };

enum status { DONE, NO_ROOM, WRONG };

#define NOTES 64
#define TEXT 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A note's number is its descriptor, on every connection. */
static struct note {
	char name[256];
	char text[TEXT];
	size_t len;
} notes[NOTES];

static int fail(const char *what)
{
	int refused = errno == EACCES;

	fprintf(stderr, "notes: %s: %s\n", what, tg_service_error());
	return refused ? 1 : 2;
}

/* The note of a name, which is made if there is none; NULL: no room. */
static struct note *note_of(const struct tg_operand *name)
{
	size_t i;

	for (i = 0; i < NOTES && notes[i].name[0]; i++)
		if (strlen(notes[i].name) == name->name_len &&
		    !memcmp(notes[i].name, name->name, name->name_len))
			return &notes[i];
	if (i == NOTES)
		return NULL;
	memcpy(notes[i].name, name->name, name->name_len);
	return &notes[i];
}

static void answer(const struct tg_request *request, struct tg_reply *reply)
{
	const struct tg_operand *first = request->operands;
	struct note *note;

	reply->status = WRONG;
	if (request->operation == PING) {
		reply->status = DONE;
	} else if (request->operation == OPEN && request->operands_count &&
		   first->kind == TG_NAME) {
		note = note_of(first);
		reply->status = note ? DONE : NO_ROOM;
		reply->change = note ? TG_BOUND : TG_NO_CHANGE;
		reply->descriptor = note ? note - notes : 0;
	} else if (request->operands_count && first->kind == TG_DESCRIPTOR &&
		   first->value < NOTES) {
		note = &notes[first->value];
		if (request->operation == GET) {
			reply->payload = note->text;
			reply->payload_len = note->len;
			reply->status = DONE;
		} else if (request->operation == PUT && request->payload_len <= TEXT) {
			memcpy(note->text, request->payload, request->payload_len);
			note->len = request->payload_len;
			reply->status = DONE;
		}
	}
}

/* A client's requests; notes are everybody's. */
static void *serve_one(void *accepted)
{
	struct tg_connection *connection = accepted;
	struct tg_request request;
	int got;

	while ((got = tg_connection_receive(connection, &request)) == 1) {
		struct tg_reply reply = { .id = request.id };

		pthread_mutex_lock(&lock);
		answer(&request, &reply);
		got = tg_connection_reply(connection, &reply);
		pthread_mutex_unlock(&lock);
		if (got)
			break;
	}
	if (got)
		fail("a client");
	tg_connection_close(connection);
	return NULL;
}

static int serve(const char *path, int type)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, type | SOCK_CLOEXEC, 0), fd;
	struct tg_connection *connection;
	pthread_t thread;

	strncpy(at.sun_path, path, sizeof(at.sun_path) - 1);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 8)) {
		perror(path);
		return 2;
	}
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		connection = tg_connection_of(fd);
		if (!connection)
			fail("accept");
		else if (pthread_create(&thread, NULL, serve_one, connection))
			tg_connection_close(connection);
		else
			pthread_detach(thread);
	}
	perror("accept");
	return 2;
}

/* Opens a note, and reads it, or writes a text into it. */
static int use(const char *path, const char *name, const char *text)
{
	struct tg_client *client = tg_client_connect(path);
	struct tg_operand by_name[] = {
		{ .kind = TG_NAME, .name = name, .name_len = strlen(name) },
		{ .kind = TG_NUMBER, .value = text ? TO_WRITE : TO_READ },
	};
	struct tg_request request = { .operation = OPEN, .operands = by_name, .operands_count = 2 };
	struct tg_operand opened = { .kind = TG_DESCRIPTOR };
	struct tg_reply reply;
	int status = 2;

	if (!client)
		return fail(path);
	if (tg_client_call(client, &request, &reply)) {
		status = fail("open");
		goto out;
	}
	opened.value = reply.descriptor;
	request = (struct tg_request){ .operation = text ? PUT : GET,
				       .operands = &opened,
				       .operands_count = 1 };
	request.payload = text;
	request.payload_len = text ? strlen(text) : 0;
	if (reply.status != DONE)
		fprintf(stderr, "notes: status %u\n", reply.status);
	else if (tg_client_call(client, &request, &reply))
		status = fail(text ? "put" : "get");
	else
		status =
			printf("%.*s\n", (int)reply.payload_len, (const char *)reply.payload) < 0 ||
					reply.status != DONE ?
				2 :
				0;
out:
	tg_client_close(client);
	return status;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2], SOCK_SEQPACKET);
	if (argc == 4 && !strcmp(argv[1], "serve") && !strcmp(argv[2], "--stream"))
		return serve(argv[3], SOCK_STREAM);
	if (argc == 4 && !strcmp(argv[1], "get"))
		return use(argv[2], argv[3], NULL);
	if (argc == 5 && !strcmp(argv[1], "put"))
		return use(argv[2], argv[3], argv[4]);
	fprintf(stderr, "usage: notes serve [--stream] SOCKET\n"
			"       notes get SOCKET NAME\n"
			"       notes put SOCKET NAME TEXT\n");
	return 2;
}
