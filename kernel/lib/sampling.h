/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looks at random at something that is moved about among n places: how many are enough, and where the next one falls. Pure
 * functions, the same source in the kernel and in tests/core.
 *
 * Lemma: whoever moves it knows where all looks before have fallen, and nothing of the next one. So each finds it with a
 * probability of 1/n, wherever it is then, and k looks miss it with (1 - 1/n)^k, which is below e^(-k/n).
 */
#ifndef TIDEGATE_LIB_SAMPLING_H
#define TIDEGATE_LIB_SAMPLING_H

#include "lib/budget.h"

#define SAMPLES_A_PLACE 24u /* e^-24 is below 2^-34 */
#define SAMPLES_BESIDES 64u /* of few places: one look takes a moment, in which it may be moved */

static __always_inline u32 samples_of(u32 n)
{
	return n * SAMPLES_A_PLACE + SAMPLES_BESIDES;
}

/* Looks of one walk over all tables, and those of them that one account's tables get. */
#define SAMPLES_OF_ALL (1u << 16)
#define SAMPLES_OF_ONE (SAMPLES_OF_ALL / 4)

enum samples_left {
	SAMPLES_LEFT,
	SAMPLES_OWN_USED, /* not of the account's share, */
	SAMPLES_OTHERS_USED, /* nor of those that all tables get; lower levels leave some of these to higher ones */
};

/* Are so many more looks left for a table of an account at this level? The account has had `own` of a walk's, and all have had `used`. */
static __always_inline enum samples_left samples_ask(u32 level, u32 top, u32 used, u32 own,
						     u32 more)
{
	if (more > SAMPLES_OF_ONE || own > SAMPLES_OF_ONE - more)
		return SAMPLES_OWN_USED;
	if ((u64)used + more > budget_of_level(level, top, SAMPLES_OF_ALL))
		return SAMPLES_OTHERS_USED;
	return SAMPLES_LEFT;
}

/* Which of n places, by a number of 32 bits that nobody knows: each by as many of them, but for one. */
static __always_inline u32 sample_at(u32 dice, u32 n)
{
	return (u64)dice * n >> 32;
}

#endif
