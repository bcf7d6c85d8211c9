/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entries of caches that several tasks may write at once. */
#ifndef TIDEGATE_LIB_SEQCACHE_H
#define TIDEGATE_LIB_SEQCACHE_H

#include "lib/arch.h"

/*
 * An entry that several may write at once, each in place of what another remembered: its version is
 * odd while one task writes, and a task that comes then does not.
 */
static __always_inline bool entry_begin(u32 *version)
{
	u32 now = READ_ONCE(*version);

	return !(now & 1) && __sync_val_compare_and_swap(version, now, now + 1) == now;
}

static __always_inline void entry_end(u32 *version)
{
	__sync_fetch_and_add(version, 1);
}

/* Its version before it is read; */
static __always_inline u32 entry_version(u32 *version)
{
	u32 now = READ_ONCE(*version);

	in_order();
	return now;
}

/* and afterwards, whether nobody has written it meanwhile. */
static __always_inline bool entry_is_whole(u32 *version, u32 before)
{
	in_order();
	return !(before & 1) && READ_ONCE(*version) == before;
}

#endif
