/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the first sight of a file costs.
 *   sight make N     makes files: 0, 1, and so on
 *   sight open N     opens each once, and once again; with LAB_RULES, the size of the
 *                    policy in force, in the items' names
 */
#define _GNU_SOURCE
#include "count.h"

#include <fcntl.h>
#include <unistd.h>

static const char *name(int i)
{
	static char digits[16];

	snprintf(digits, sizeof(digits), "%d", i);
	return digits;
}

static void make(int n)
{
	for (int i = 0; i < n; i++) {
		int fd = open(name(i), O_WRONLY | O_CREAT | O_EXCL, 0644);

		must(fd >= 0 && !close(fd), "make");
	}
}

static void open_all(const char *what, int n)
{
	const char *rules = getenv("LAB_RULES");
	char item[64];
	const int batch = n / BATCHES;
	double figures[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		long long start = now();

		for (int i = b * batch; i < (b + 1) * batch; i++) {
			int fd = open(name(i), O_RDONLY);

			must(fd >= 0 && !close(fd), "open");
		}
		figures[b] = (double)(now() - start) / batch;
	}
	snprintf(item, sizeof(item), rules ? "%s, %s rules" : "%s", what, rules);
	figure(item, "file", middle(figures));
}

int main(int argc, char **argv)
{
	const int n = argc == 3 ? atoi(argv[2]) : 0;

	if (n < BATCHES)
		return 2;
	if (!strcmp(argv[1], "make")) {
		make(n);
		return 0;
	}
	open_all("first open", n);
	open_all("open again", n);
	return 0;
}
