/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drives a fuzzer's target by random input. */
#include <stdio.h>

#include "lib/kernel_types.h"
#include "lib/kernel_net.h"
#include "lib/iterators.h"
#include "lib/uapi.h"
#include "fuzz.h"

#define RUNS 20000
#define LONGEST_INPUT 512

/* xorshift64*: the same cases in every run. */
static u64 random_next(u64 *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717ull;
}

static void random_fill(u64 *state, u8 *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = random_next(state) >> 56;
}

int main(void)
{
	static u8 input[LONGEST_INPUT];
	u64 state = 0x7469646567617465;
	int failed = 0;

	for (int i = 0; i < RUNS; i++) {
		size_t size = random_next(&state) % (LONGEST_INPUT + 1);

		random_fill(&state, input, size);
		LLVMFuzzerTestOneInput(input, size);
	}
	for (int i = 0; fuzz_events[i]; i++) {
		printf("%s: %s, %lu times\n", fuzz_seen[i] ? "pass" : "fail", fuzz_events[i],
		       fuzz_seen[i]);
		failed |= !fuzz_seen[i];
	}
	return failed;
}
