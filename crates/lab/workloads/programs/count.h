/* SPDX-License-Identifier: GPL-2.0-only */
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

static inline double middle(double *batches)
{
	qsort(batches, BATCHES, sizeof(*batches), by_size);
	return batches[BATCHES / 2];
}

#endif
