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

#include "abi/types.h"

#define SAMPLES_A_PLACE 24u /* e^-24 is below 2^-34 */
#define SAMPLES_BESIDES 64u /* of few places: one look takes a moment, in which it may be moved */

static __always_inline u32 samples_of(u32 n)
{
	return n * SAMPLES_A_PLACE + SAMPLES_BESIDES;
}

/* Looks of one walk over all tables, and those of them that one account's tables get. */
#define SAMPLES_OF_ALL (1u << 16)
#define SAMPLES_OF_ONE (SAMPLES_OF_ALL / 4)

/* Are so many more left of an account's share? Takes them. */
static __always_inline bool samples_take(u32 *used, u32 more)
{
	if (more > SAMPLES_OF_ONE || *used > SAMPLES_OF_ONE - more)
		return false;
	*used += more;
	return true;
}

/* Which of n places, by a number of 32 bits that nobody knows: each by as many of them, but for one. */
static __always_inline u32 sample_at(u32 dice, u32 n)
{
	return (u64)dice * n >> 32;
}

#endif
