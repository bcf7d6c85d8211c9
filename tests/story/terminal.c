/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A person at a terminal: terminal KEYS CMD ARG… runs a command on a terminal of
 * its own and does what the file KEYS says, a line at a time:
 *   wait TEXT   until that has appeared
 *   send TEXT   types it, and Return
 *   key ^X      types that one key
 * Shows what the terminal shows. Exit status: the command's; 124 if a text did
 * not appear in time.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define LINE 512

static int master;
static char seen[1 << 16]; /* what has appeared since the last match */
static size_t len;

/* Takes what has appeared; false when the terminal is gone or nothing came. */
static int listen_to(int ms)
{
	struct pollfd fd = { .fd = master, .events = POLLIN };
	char buf[4096];
	ssize_t n;

	if (poll(&fd, 1, ms) <= 0)
		return 0;
	n = read(master, buf, sizeof(buf));
	if (n <= 0)
		return 0;
	(void)!write(STDOUT_FILENO, buf, n);
	if (len + n >= sizeof(seen))
		len = 0;
	memcpy(seen + len, buf, n);
	len += n;
	seen[len] = 0;
	return 1;
}

static int wait_for(const char *text)
{
	char *at;

	while (!(at = memmem(seen, len, text, strlen(text))))
		if (!listen_to(PATIENCE_MS))
			return 0;
	at += strlen(text);
	len -= at - seen;
	memmove(seen, at, len + 1);
	return 1;
}

static void type(const char *text, size_t n)
{
	(void)!write(master, text, n);
}

static void play(FILE *keys)
{
	char line[LINE], *text;

	while (fgets(line, sizeof(line), keys)) {
		line[strcspn(line, "\n")] = 0;
		text = strchr(line, ' ');
		if (!text)
			continue;
		*text++ = 0;
		if (!strcmp(line, "wait") && !wait_for(text)) {
			fprintf(stderr, "terminal: `%s` did not appear\n", text);
			return;
		} else if (!strcmp(line, "send")) {
			type(text, strlen(text));
			type("\r", 1);
		} else if (!strcmp(line, "key")) {
			char control = text[1] & 0x1f;

			type(&control, 1);
		}
	}
}

int main(int argc, char **argv)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	FILE *keys = argc > 2 ? fopen(argv[1], "r") : NULL;
	int status;
	pid_t pid;

	if (!keys) {
		fprintf(stderr, "usage: terminal KEYS CMD ARG…\n");
		return 2;
	}
	pid = forkpty(&master, NULL, NULL, &size);
	if (pid == 0) {
		setenv("TERM", "xterm", 1);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	play(keys);
	while (listen_to(2000))
		;
	/* hangs up whoever is still there */
	close(master);
	for (int i = 0; i < 50; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		usleep(100000);
	}
	kill(pid, SIGKILL);
	return 124;
}
