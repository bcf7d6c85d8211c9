/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shares of tables that all subjects use: the account that is charged for an entry, and the room that is left.
 * budget_admits() of lib/budget.h decides whether a table is full for a subject. An entry says itself in whose
 * account it is, and gives that back when it goes. Users whose numbers are alike modulo TG_ACCOUNTS have one account,
 * so that there is no table of accounts which could be full.
 */
#ifndef TIDEGATE_LOMAC_BUDGET_H
#define TIDEGATE_LOMAC_BUDGET_H

#include "lib/budget.h"
#include "lib/verifier.h"
#include "core/payer.h"
#include "lomac/maps.h"

#define TG_ACCOUNTS 4096

/* TG_T_SYSTEM_V: of TG_T_OBJECTS those that are no keys, which are counted only */
enum tg_shared_table { TG_T_FLOORS, TG_T_OBJECTS, TG_T_GIVEN, TG_T_SYSTEM_V, TG_T_COUNT };

struct tg_shares {
	u32 all; /* entries of all that are charged */
	u32 pad;
	u32 own[TG_LEVELS * TG_ACCOUNTS];
} shares[TG_T_COUNT];

static __always_inline u32 *share_of(u32 table, u32 level, u32 payer)
{
	u32 at = BOUND(level, TG_LEVELS) * TG_ACCOUNTS + BOUND(payer, TG_ACCOUNTS);

	return &shares[BOUND(table, TG_T_COUNT)].own[BOUND(at, TG_LEVELS * TG_ACCOUNTS)];
}

/* Places that a table has. */
static __always_inline u32 table_room(u32 table)
{
	return table == TG_T_FLOORS ? TG_FLOORS :
	       table == TG_T_GIVEN  ? policy.given_max - policy.given_max / 8 :
				      TG_OBJECTS;
}

/* Would so many more places be given? `how`: BUDGET_LAST, BUDGET_OTHER. */
__noinline bool share_has_room(u32 table, u32 level, u32 payer, u32 more, u32 how)
{
	u32 used = READ_ONCE(shares[BOUND(table, TG_T_COUNT)].all);
	u32 own = READ_ONCE(*share_of(table, level, payer));

	return budget_admits(level, policy.top, table_room(table), used, own, more, how);
}

static __always_inline void share_give(u32 table, u32 level, u32 payer)
{
	__sync_fetch_and_sub(&shares[BOUND(table, TG_T_COUNT)].all, 1);
	__sync_fetch_and_sub(share_of(table, level, payer), 1);
}

/* Takes a place; false: the payer has had its share, or the level its room. */
static __always_inline bool share_take(u32 table, u32 level, u32 payer, u32 how)
{
	u32 used = __sync_fetch_and_add(&shares[BOUND(table, TG_T_COUNT)].all, 1);
	u32 own = __sync_fetch_and_add(share_of(table, level, payer), 1);

	if (budget_admits(level, policy.top, table_room(table), used, own, 1, how))
		return true;
	share_give(table, level, payer);
	return false;
}

#endif
