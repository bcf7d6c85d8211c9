/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shares: how much of a table a user may fill at a level, what is reserved for higher levels, and whose turn at the
 * demotion transaction's lock ends, and comes next. Pure functions, the same source in the kernel and in tests/core
 * (docs/reference/budgets.md).
 */
#ifndef TIDEGATE_LIB_BUDGET_H
#define TIDEGATE_LIB_BUDGET_H

#include "abi/types.h"

/* How a place is asked for. */
#define BUDGET_LAST 1u   /* what cannot be refused any more: a little more than the share */
#define BUDGET_OTHER 2u  /* for somebody else's account: that one's share is not asked about */
#define BUDGET_ALWAYS 4u /* it has been decided before, and is counted only */
#define BUDGET_FILES \
	8u /* for what lasts, of which one user has most: three quarters, and a level seven eighths at least */

/* Places of a table that are taken before a level finds none left: half for the lowest, all for the top. */
static __always_inline u32 budget_of_level(u32 level, u32 top, u32 room)
{
	if (!top || level >= top)
		return room;
	return room / 2 + (u64)(room / 2) * level / top;
}

/* Places that one user may take at one level below the top. */
static __always_inline u32 budget_of_user(u32 room)
{
	return room / 8;
}

/* Are so many more places given, of a table where all have `used`, and the user has `own` at this level? */
static __always_inline bool budget_admits(u32 level, u32 top, u32 room, u32 used, u32 own, u32 more,
					  u32 how)
{
	u64 limit = budget_of_level(level, top, room), share = budget_of_user(room);

	if (how & BUDGET_ALWAYS)
		return true;
	if (how & BUDGET_FILES) {
		limit = room - (room - limit) / 4;
		share = room / 4 * 3;
	}
	if (how & BUDGET_LAST) {
		limit += room / 16;
		share += room / 32;
	}
	if (limit > room)
		limit = room;
	if ((u64)used + more > limit)
		return false;
	return level >= top || how & BUDGET_OTHER || (u64)own + more <= share;
}

/* How long one has the turn, while it waits for others, until another may end it: */
#define TURN_HIGHER_NS 50000000ull    /* one that is higher, */
#define TURN_OTHER_NS 500000000ull    /* another user at its level, */
#define TURN_LONGEST_NS 3000000000ull /* anybody */

/* The holder of the turn, or a task that asks for it. */
struct turn_claim {
	u64 since; /* ns: when the holder's turn began */
	u32 level;
	u32 user;
};

/* May the task that asks end the holder's turn? */
static __always_inline bool turn_ends(const struct turn_claim *has, const struct turn_claim *asks,
				      u64 now)
{
	u64 had = now > has->since ? now - has->since : 0;

	if (asks->level > has->level)
		return had > TURN_HIGHER_NS;
	if (asks->level == has->level && asks->user != has->user)
		return had > TURN_OTHER_NS;
	return had > TURN_LONGEST_NS;
}

/*
 * Of two at one level, does the first come before the second? One whose user has not had the last
 * turn does; of equals the one that has waited longer, as tickets are numbered in their order and
 * begin anew after the last.
 */
static __always_inline bool turn_before(u32 user, u32 ticket, u32 other_user, u32 other_ticket,
					u32 last_user)
{
	if ((user == last_user) != (other_user == last_user))
		return user != last_user;
	return (s32)((ticket - other_ticket) << 2) < 0;
}

#endif
