/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counting: under instruction counting a nanosecond of the guest's clock is one
 * instruction. A figure is the middle one of several batches, so that what the
 * kernel does now and then (a journal's commit, writing back) does not count for the
 * operation that it happens to meet.
 */
#ifndef COUNT_H
#define COUNT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCHES 11

static inline void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static inline int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline double middle_of(double *figures, int n)
{
	qsort(figures, n, sizeof(*figures), by_size);
	return figures[n / 2];
}

static inline double middle(double *batches)
{
	return middle_of(batches, BATCHES);
}

/* A line of the result: what one PER of the item took. */
static inline void figure(const char *item, const char *per, double value)
{
	printf("%s\t%.1f\t%s\n", item, value, per);
	fflush(stdout);
}

/*
 * The middle batch of `rounds` rounds of a statement, each of them so many PER. As
 * many batches before those warm up caches and labels.
 */
#define ITEM_OF(item, per, rounds, units, ...)                                    \
	do {                                                                      \
		const int batch = (rounds) / BATCHES;                             \
		double figures[BATCHES];                                          \
		for (int nth = 0; nth < 2 * BATCHES; nth++) {                     \
			long long start = now();                                  \
			for (int i = 0; i < batch; i++)                           \
				__VA_ARGS__;                                      \
			figures[nth % BATCHES] = (double)(now() - start) / batch; \
		}                                                                 \
		figure(item, per, middle(figures) / (units));                     \
	} while (0)

#define ITEM(item, per, rounds, ...) ITEM_OF(item, per, rounds, 1, __VA_ARGS__)

#endif
