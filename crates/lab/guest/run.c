// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs the one command of this boot and relays its two output streams. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static char *const environment[] = {
	"PATH=/payload:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"HOME=/root",
	"USER=root",
	"LOGNAME=root",
	"SHELL=/bin/bash",
	"LANG=C.UTF-8",
	"TERM=dumb",
	NULL,
};

static _Noreturn void child(char **argv, int out, int err)
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(null);
	environ = (char **)environment;
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Relays what is there; false at end of file. */
static int relay(int fd, enum frame type)
{
	char buf[4096];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n > 0)
		report(type, buf, n);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Takes every dead child, orphans included; true when `pid` was among them. */
static int reap(pid_t pid, int *status)
{
	int found = 0, s;
	pid_t p;

	while ((p = waitpid(-1, &s, WNOHANG)) > 0) {
		if (p == pid) {
			*status = s;
			found = 1;
		}
	}
	return found;
}

int run_command(char **argv)
{
	struct signalfd_siginfo info;
	int out[2], err[2], status = 0, done = 0;
	sigset_t chld;
	pid_t pid;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0)
		child(argv, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);

	struct pollfd fds[] = {
		{ .fd = out[0], .events = POLLIN },
		{ .fd = err[0], .events = POLLIN },
		{ .fd = signalfd(-1, &chld, SFD_CLOEXEC), .events = POLLIN },
	};

	/*
	 * After the command's death what it left in the pipes is relayed, but
	 * nobody waits for daemons that still hold the other ends open.
	 */
	for (;;) {
		int ready = poll(fds, 3, done ? 0 : -1);

		if (ready == 0 && done)
			return status;
		for (int i = 0; i < 2; i++)
			if (fds[i].revents && !relay(fds[i].fd, i ? FRAME_STDERR : FRAME_STDOUT))
				fds[i].fd = -1;
		if (fds[2].revents) {
			if (read(fds[2].fd, &info, sizeof(info)) < 0 && errno != EINTR)
				die("signalfd");
			done |= reap(pid, &status);
		}
	}
}
