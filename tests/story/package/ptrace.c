/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes a process over, and lets it go again: ptrace PID. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? atoi(argv[1]) : 0;

	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) || waitpid(pid, NULL, __WALL) < 0) {
		perror("ptrace");
		return 1;
	}
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) != 0;
}
