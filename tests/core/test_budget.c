/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shares of tables and turns (lib/budget.h): which users a flood can and cannot keep out. */
#include "native.h"
#include "lib/budget.h"
#include "checks.h"

#define ROOM (1u << 17)

static void expect(u64 *cases, bool right, const char *what, u32 a, u32 b)
{
	++*cases;
	if (right || failures++ > 8)
		return;
	fprintf(stderr, "%s: %u, %u\n", what, a, b);
}

/* A table that users fill one place at a time, each at one level, until all are refused; what each has then. */
static u32 fill(u32 level, u32 top, u32 users, u32 used, u32 how)
{
	for (u32 user = 0; user < users; user++) {
		u32 own = 0;

		while (budget_admits(level, top, ROOM, used, own, 1, how)) {
			own++;
			used++;
		}
	}
	return used;
}

static u64 check_one_user(void)
{
	u64 cases = 0;

	for (u32 top = 1; top < TG_LEVELS; top++)
		for (u32 level = 0; level < top; level++) {
			u32 used = fill(level, top, 1, 0, 0);

			expect(&cases, used == ROOM / 8, "one user's share", level, used);
			for (u32 other = 0; other <= top; other++)
				expect(&cases, budget_admits(other, top, ROOM, used, 0, 1, 0),
				       "another user is refused", level, other);
			expect(&cases,
			       !budget_admits(level, top, ROOM, used, ROOM / 8, 1, 0) &&
				       budget_admits(level, top, ROOM, used - 1, ROOM / 8 - 1, 1,
						     0),
			       "what is given back can be taken again", level, used);
		}
	return cases;
}

static u64 check_all_users(void)
{
	u64 cases = 0;

	for (u32 top = 1; top < TG_LEVELS; top++)
		for (u32 level = 0; level < top; level++) {
			u32 used = fill(level, top, 32, 0, 0);

			expect(&cases, used < ROOM, "a level has filled the table", level, used);
			for (u32 higher = level + 1; higher <= top; higher++)
				expect(&cases, budget_admits(higher, top, ROOM, used, 0, 1, 0),
				       "no room is left for a higher level", level, higher);
			expect(&cases, budget_admits(level, top, ROOM, used, 0, 1, BUDGET_LAST),
			       "nor for what cannot be refused", level, used);
			used = fill(level, top, 64, used, BUDGET_LAST);
			expect(&cases,
			       budget_admits(top, top, ROOM, used, 0, 1, 0) || level == top - 1,
			       "the top is kept out", level, used);
		}
	return cases;
}

static u64 check_many_at_once(void)
{
	u64 cases = 0;

	for (u32 more = 1; more; more <<= 1)
		for (u32 level = 0; level < 3; level++) {
			bool fits = more <= ROOM / 8;

			expect(&cases, budget_admits(level, 3, ROOM, 0, 0, more, 0) == fits,
			       "many at once", level, more);
			expect(&cases, !budget_admits(level, 3, ROOM, ~0u, 0, more, BUDGET_OTHER),
			       "sums do not begin anew", level, more);
		}
	return cases;
}

/* What one user's files leave to others, and what all users' leave to a higher level. */
static u64 check_files(void)
{
	u64 cases = 0;

	for (u32 top = 1; top < TG_LEVELS; top++)
		for (u32 level = 0; level < top; level++) {
			u32 used = fill(level, top, 1, 0, BUDGET_FILES);

			expect(&cases, used == ROOM / 4 * 3, "one user's files", level, used);
			expect(&cases, budget_admits(level, top, ROOM, used, 0, 1, BUDGET_FILES),
			       "another user is refused", level, used);
			used = fill(level, top, 32, used, BUDGET_FILES);
			for (u32 higher = level + 1; higher <= top; higher++)
				expect(&cases,
				       budget_admits(higher, top, ROOM, used, 0, 1, BUDGET_FILES),
				       "no room is left for a higher level's", level, higher);
		}
	return cases;
}

static u64 check_turns(void)
{
	static const u64 after[] = { 0, TURN_HIGHER_NS, TURN_OTHER_NS, TURN_LONGEST_NS };
	u64 cases = 0;

	for (u32 has = 0; has < 4; has++)
		for (u32 asks = 0; asks < 4; asks++)
			for (u32 same = 0; same < 2; same++) {
				struct turn_claim holder = { 1000, has, 7 };
				struct turn_claim other = { 0, asks, same ? 7 : 8 };
				u32 i = asks > has ? 1 : asks == has && !same ? 2 : 3;

				expect(&cases, !turn_ends(&holder, &other, 1000 + after[i]),
				       "a turn ends too early", has, asks);
				expect(&cases, turn_ends(&holder, &other, 1001 + after[i]),
				       "a turn does not end", has, asks);
				expect(&cases, !turn_ends(&holder, &other, 0),
				       "a turn that has not begun ends", has, asks);
			}
	return cases;
}

static u64 check_order(void)
{
	u64 cases = 0;

	expect(&cases, turn_before(1, 5, 1, 6, 0), "who has waited longer", 5, 6);
	expect(&cases, !turn_before(1, 6, 1, 5, 0), "who has not", 6, 5);
	expect(&cases, turn_before(1, 6, 2, 5, 2), "who has not had the last turn", 6, 5);
	expect(&cases, !turn_before(2, 5, 1, 6, 2), "who has", 5, 6);
	expect(&cases, turn_before(1, 0x3fffffff, 1, 0, 0), "numbers that begin anew", 0, 0);
	for (u32 a = 0; a < 4; a++)
		for (u32 b = 0; b < 4; b++)
			for (u32 last = 0; last < 4; last++)
				expect(&cases,
				       !(turn_before(a, a, b, b, last) &&
					 turn_before(b, b, a, a, last)),
				       "both come before each other", a, b);
	return cases;
}

int main(void)
{
	return RUN_CHECKS("budget", "", { "one_user", check_one_user },
			  { "all_users", check_all_users }, { "many_at_once", check_many_at_once },
			  { "files", check_files }, { "turns", check_turns },
			  { "order", check_order });
}
