// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What Python does not reach: attack map|trace|seize|limit|write PID. Exits with the
 * errno, 0 if it came through. Descriptor 7 is a kept file, open for reading and writing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rlimit few = { 5, 5 };
	char byte = 'x';
	struct iovec mine = { &byte, 1 }, theirs = { &byte, 1 };
	pid_t pid = argc > 2 ? atoi(argv[2]) : 0;
	const char *what = argc > 1 ? argv[1] : "";
	long ret;

	if (!strcmp(what, "map"))
		ret = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, 7, 0) == MAP_FAILED ? -1 :
											      0;
	else if (!strcmp(what, "trace"))
		ret = ptrace(PTRACE_ATTACH, pid, 0, 0);
	else if (!strcmp(what, "seize"))
		ret = ptrace(PTRACE_SEIZE, pid, 0, 0);
	else if (!strcmp(what, "limit"))
		ret = prlimit(pid, RLIMIT_NOFILE, &few, NULL);
	else if (!strcmp(what, "write"))
		ret = process_vm_writev(pid, &mine, 1, &theirs, 1, 0);
	else
		return 255;
	return ret < 0 ? errno : 0;
}
