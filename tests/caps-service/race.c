/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client whose other thread changes a request during the call that sends it: nothing arrives that was not authorised. It is client
 * and service at once, limited by s.caps, by which `pub:…` may be opened and `zzz:…` may not.
 *
 *   race packets|stream SOCKET TRIES
 *
 * The last line is `N passed, N failed`.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* To open `pub:aaaaaaaaaaaa` for reading. */
static struct message {
	uint32_t length, operation, id;
	uint16_t operands, operands_len;
	uint8_t kind, zero;
	uint16_t name_len;
	uint32_t none;
	char name[16];
	uint8_t mode_kind, mode_zero;
	uint16_t mode_len;
	uint32_t mode_none;
	uint64_t mode;
} shared = {
	.length = sizeof(shared),
	.operation = 1,
	.id = 1,
	.operands = 2,
	.operands_len = sizeof(shared) - 16,
	.kind = 2,
	.name_len = 16,
	.name = "pub:aaaaaaaaaaa",
	.mode_kind = 1,
	.mode_len = 8,
};

static const struct reply {
	uint32_t length, id, status, flags;
	uint64_t descriptor;
} reply = { .length = sizeof(reply), .id = 1 };

static volatile int racing = 1;

/* Each state for as long as a call takes, more or less. */
static void *change(void *unused)
{
	volatile char *name = shared.name;
	unsigned int i, many = 1;

	while (racing) {
		many = many * 5 + 1;
		for (i = 0; i < many % 300; i++)
			name[0] = 'p', name[1] = 'u', name[2] = 'b';
		for (i = 0; i < many % 200; i++)
			name[0] = 'z', name[1] = 'z', name[2] = 'z';
	}
	return unused;
}

static struct sockaddr_un at = { .sun_family = AF_UNIX };
static int kind, listener, client, service;

static void connected(void)
{
	client = socket(AF_UNIX, kind, 0);
	if (connect(client, (struct sockaddr *)&at, sizeof(at)) ||
	    (service = accept(listener, NULL, NULL)) < 0) {
		perror("connect");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	long tries = argc == 4 ? atol(argv[3]) : 0, i, sent = 0, refused = 0, ended = 0,
	     arrived = 0, evil = 0, failed;
	struct message got, good = shared;
	pthread_t thread;

	if (!tries)
		return 2;
	kind = strcmp(argv[1], "stream") ? SOCK_SEQPACKET : SOCK_STREAM;
	strncpy(at.sun_path, argv[2], sizeof(at.sun_path) - 1);
	good.name[15] = shared.name[15] = 'a';
	unlink(at.sun_path);
	listener = socket(AF_UNIX, kind, 0);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 8)) {
		perror("bind");
		return 1;
	}
	connected();
	pthread_create(&thread, NULL, change, NULL);
	for (i = 0; i < tries; i++) {
		ssize_t n = send(client, &shared, sizeof(shared), MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += n == sizeof(shared);
		refused += n < 0 && errno == EACCES;
		n = recv(service, &got, sizeof(got), MSG_DONTWAIT);
		if (n == sizeof(got)) {
			arrived++;
			evil += memcmp(&got, &good, sizeof(got)) != 0;
			send(service, &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
			recv(client, &got, sizeof(got), MSG_DONTWAIT);
		} else if (n < 0 && errno == EPROTO) {
			/* it was another one when it was copied */
			ended++;
			close(client);
			close(service);
			connected();
		}
	}
	racing = 0;
	pthread_join(thread, NULL);
	printf("%s: %ld tries: %ld sent, %ld refused beforehand, %ld arrived, %ld lost, %ld connections ended; %ld were not authorised\n",
	       argv[1], tries, sent, refused, arrived, sent - arrived, ended, evil);
	/* where none was refused, or none arrived, nothing was tried */
	failed = !!evil + !refused + !arrived;
	printf("%ld passed, %ld failed\n", 3 - failed, failed);
	return 0;
}
