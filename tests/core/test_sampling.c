/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks at random (lib/sampling.h): what is moved about is not missed, whatever its owner makes of the looks before. */
#include "native.h"
#include "lib/sampling.h"
#include "checks.h"

#define PLACES (1u << 14) /* 64 descriptors each: as many as a table has that is looked at */

static void expect(u64 *cases, bool right, const char *what, double a, double b)
{
	++*cases;
	if (right || failures++ > 8)
		return;
	fprintf(stderr, "%s: %g, %g\n", what, a, b);
}

/* (1 - 1/n)^k, by squares */
static double missed(u32 n, u32 k)
{
	double p = 1, by = 1 - 1.0 / n;

	for (; k; k >>= 1, by *= by)
		if (k & 1)
			p *= by;
	return p;
}

/* Less often than once in 2^34 times, in a table of any length. */
static u64 check_enough(void)
{
	u64 cases = 0;

	for (u32 n = 1; n <= PLACES; n++)
		expect(&cases, missed(n, samples_of(n)) < 1.0 / (1ull << 34), "too few looks", n,
		       samples_of(n));
	return cases;
}

/* Each place by as many numbers as each other one, but for one; and no other place. */
static u64 check_even(void)
{
	u64 cases = 0;

	for (u32 n = 1; n <= PLACES; n = n < 40 ? n + 1 : n * 3 / 2) {
		u64 share = (1ull << 32) / n;

		expect(&cases, sample_at(0, n) == 0 && sample_at(~0u, n) == n - 1, "the ends", n,
		       0);
		for (u32 place = 0; place < n; place++) {
			/* the first number of this place, and of the next one */
			u64 from = ((u64)place * (1ull << 32) + n - 1) / n;
			u64 to = ((u64)(place + 1) * (1ull << 32) + n - 1) / n;

			expect(&cases,
			       sample_at(from, n) == place && sample_at(to - 1, n) == place &&
				       (to - from == share || to - from == share + 1),
			       "a place's share", n, place);
		}
	}
	return cases;
}

/* A table of 43,000 places has its looks, and one of 44,000 has not. */
static u64 check_share(void)
{
	u64 cases = 0;

	for (u32 n = 1; n <= PLACES; n++) {
		enum samples_left left = samples_ask(1, 2, 0, 0, samples_of(n));

		expect(&cases, left == (n * 64 <= 43520 ? SAMPLES_LEFT : SAMPLES_OWN_USED),
		       "a table's looks", n, left);
	}
	return cases;
}

static u64 state = 88172645463325252ull;

static u32 dice(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x9e3779b97f4a7c15ull >> 32;
}

/*
 * Where an owner puts it that knows where the last look fell, and how often each place was looked
 * at.
 */
static u32 stays(u32 at, u32 last, const u32 *looked, u32 n)
{
	return at;
}

static u32 flees(u32 at, u32 last, const u32 *looked, u32 n)
{
	return last;
}

static u32 runs(u32 at, u32 last, const u32 *looked, u32 n)
{
	return (at + 1) % n;
}

static u32 often(u32 at, u32 last, const u32 *looked, u32 n)
{
	u32 best = 0;

	for (u32 i = 1; i < n; i++)
		if (looked[i] > looked[best])
			best = i;
	return best;
}

static u32 seldom(u32 at, u32 last, const u32 *looked, u32 n)
{
	u32 best = 0;

	for (u32 i = 1; i < n; i++)
		if (looked[i] < looked[best])
			best = i;
	return best;
}

/* By no such way is it missed more often than the lemma says: three looks a place, where that is often enough to be counted. */
static u64 check_owners(void)
{
	static u32 (*const ways[])(u32, u32, const u32 *, u32) = { stays, flees, runs, often,
								   seldom };
	u64 cases = 0;

	for (u32 n = 2; n <= 16; n *= 2)
		for (u32 way = 0; way < 5; way++) {
			const u32 times = 100000;
			double said = missed(n, 3 * n) * times;
			u32 count = 0;

			for (u32 i = 0; i < times; i++) {
				u32 looked[16] = {}, at = 0, last = 0, k;

				for (k = 0; k < 3 * n; k++) {
					at = ways[way](at, last, looked, n);
					last = sample_at(dice(), n);
					looked[last]++;
					if (last == at)
						break;
				}
				count += k == 3 * n;
			}
			/* six times the square root is more than chance */
			expect(&cases, (count - said) * (count - said) < 36 * said,
			       "missed as often as", count, said);
		}
	return cases;
}

/* Whatever accounts ask for, no one has more than its share, and each at the top has it whatever those of lower levels have had. */
static u64 check_accounts(void)
{
	u64 cases = 0;

	for (u32 round = 0; round < 2000; round++) {
		u32 top = 1 + dice() % 3, own[4][8] = {}, used = 0, i;

		for (i = 0; i < 200; i++) {
			u32 level = dice() % top, who = dice() % 8, more = dice() >> dice() % 32;
			enum samples_left left =
				samples_ask(level, top, used, own[level][who], more);

			if (left == SAMPLES_LEFT) {
				own[level][who] += more;
				used += more;
			}
			expect(&cases,
			       own[level][who] <= SAMPLES_OF_ONE &&
				       used <= budget_of_level(top - 1, top, SAMPLES_OF_ALL),
			       "taken of a share", own[level][who], more);
		}
		/* the highest level below the top leaves so much at least */
		u32 rest = SAMPLES_OF_ALL - budget_of_level(top - 1, top, SAMPLES_OF_ALL);

		if (rest > SAMPLES_OF_ONE)
			rest = SAMPLES_OF_ONE;
		expect(&cases, samples_ask(top, top, used, 0, rest) == SAMPLES_LEFT,
		       "the top's share", round, used);
	}
	return cases;
}

int main(void)
{
	return RUN_CHECKS("sampling", "", { "enough", check_enough }, { "even", check_even },
			  { "share", check_share }, { "accounts", check_accounts },
			  { "owners", check_owners });
}
