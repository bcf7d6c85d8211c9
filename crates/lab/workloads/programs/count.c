/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a command so many times, after once that does not count, and prints the middle
 * one: count [-c] [-p PER] [-n UNITS] [-b SHELL] ITEM ROUNDS COMMAND...
 * The figure is for one PER (`run`), of which a round has UNITS (1). What stands after
 * -b runs before each round and is not counted; with -c the first round counts. Any
 * exit status but 0 is a failure.
 */
#define _GNU_SOURCE
#include "count.h"

#include <sys/wait.h>
#include <unistd.h>

/* The command's output goes to standard error: standard output is for figures. */
static void run(char **command)
{
	int status;
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (!pid) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(command[0], command);
		fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
		_exit(127);
	}
	must(waitpid(pid, &status, 0) == pid, "wait");
	if (!status)
		return;
	fprintf(stderr, "count: %s: %s %d\n", command[0],
		WIFEXITED(status) ? "exit status" : "signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	exit(1);
}

int main(int argc, char **argv)
{
	char *before[] = { "sh", "-euc", NULL, NULL };
	const char *per = "run", *item;
	double units = 1, *figures;
	int rounds, option, first = -1;

	while ((option = getopt(argc, argv, "+cp:n:b:")) != -1) {
		if (option == 'c')
			first = 0;
		else if (option == 'p')
			per = optarg;
		else if (option == 'n')
			units = atof(optarg);
		else if (option == 'b')
			before[2] = optarg;
		else
			return 2;
	}
	if (argc - optind < 3)
		return 2;
	item = argv[optind++];
	rounds = atoi(argv[optind++]);
	if (rounds < 1 || units <= 0)
		return 2;
	figures = calloc(rounds, sizeof(*figures));
	must(!!figures, "memory");
	for (int i = first; i < rounds; i++) {
		long long start;

		if (before[2])
			run(before);
		start = now();
		run(argv + optind);
		if (i >= 0)
			figures[i] = (now() - start) / units;
	}
	figure(item, per, middle_of(figures, rounds));
	free(figures);
	return 0;
}
