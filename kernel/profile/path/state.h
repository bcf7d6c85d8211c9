/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state that an object's path leads to, and the profile that is for a program: the quickest way that there is. */
#ifndef TIDEGATE_PROFILE_PATH_STATE_H
#define TIDEGATE_PROFILE_PATH_STATE_H

#include "core/policy.h"
#include "profile/path/attach.h"
#include "profile/path/cache.h"

static __always_inline bool name_connects(struct tg_name *n)
{
	return n->connected || n->flags & PATH_CONNECT;
}

/* What is found by a path that stays as it is meanwhile; NAME_AGAIN: it did not. */
static __always_inline long name_read(struct tg_name *n, struct tg_scratch *w, bool attach)
{
	u64 before = path_settled();
	long ret;

	if (before & PATH_ODD || policy_seqno() != n->number)
		return NAME_LATER;
	if (!name_seen(n, w))
		return NAME_TOO_LONG;
	if (path_sequence() != before)
		return NAME_AGAIN;
	if (!name_connects(n))
		return NAME_DISCONNECTED;
	ret = name_recall(n);
	if (ret >= 0)
		return ret;
	ret = attach ? name_attach(n, w) : name_walk(n, w);
	/* not found for want of room: not to be remembered */
	if (ret < 0)
		return ret;
	if (path_sequence() != before || policy_seqno() != n->number)
		return NAME_AGAIN;
	name_remember(n, ret);
	return ret;
}

/* The same, tried as often as n->tries says; between two tries others may run. */
static __always_inline long name_look_up(struct tg_name *n, bool attach)
{
	for (; n->tries && MAY_LOOP; n->tries--) {
		struct tg_scratch *w = scratch_get();
		long ret;

		if (!w)
			break;
		ret = name_read(n, w, attach);
		scratch_put(w);
		if (ret != NAME_AGAIN)
			return ret;
	}
	return NAME_LATER;
}

/* The same as name_state(), by the path alone. */
__noinline long name_state_look_up(struct tg_name *n)
{
	return n ? name_look_up(n, false) : NAME_LATER;
}

/* As what a name is looked for by its place. */
static __always_inline u32 name_start(u32 start, u8 end)
{
	return start | (u32)end << 24;
}

static __always_inline long name_recall_placed(struct tg_name *n)
{
	place_begin(n);
	return placed_recall(n, n->dentry, name_start(n->start, n->end));
}

/* The state before the slash that the object's name follows. */
__noinline long name_stem(struct tg_name *n, u64 dir)
{
	u32 start, changes;
	u64 dentry;
	long state;
	u8 end;

	if (!n)
		return NAME_LATER;
	start = name_start(n->start, NAME_STEM);
	state = placed_recall(n, dir, start);
	if (state >= 0)
		return state;
	/* whose own move is counted */
	changes = changes_settled(CAST(struct dentry, dir));
	dentry = n->dentry;
	end = n->end;
	n->dentry = dir;
	n->end = NAME_STEM;
	n->tries = TG_TRIES;
	state = name_state_look_up(n);
	n->dentry = dentry;
	n->end = end;
	if (state >= 0)
		placed_remember(n, dir, start, changes, state);
	return state;
}

/* The state, where the object's place is not known: its directory's, led on. */
__noinline long name_state_led(struct tg_name *n)
{
	u32 try, changes = 0;
	struct dentry *d;
	long state;
	u64 dir;

	if (!n)
		return NAME_LATER;
	if (n->flags & PATH_CHROOT_REL)
		return name_state_look_up(n);
	d = CAST(struct dentry, n->dentry);
	for (try = UNKNOWN_ZERO; try < TG_TRIES && MAY_LOOP; try++) {
		if (!n->locked)
			changes = changes_settled(d);
		if (changes & 1)
			break;
		/* after that: it is in this directory when the counts are read */
		place_begin(n);
		dir = address(d->d_parent);
		/* what is mounted has its path from where that is */
		if (!n->locked && (n->dentry == dir ||
				   n->dentry == address(CAST(struct vfsmount, n->mnt)->mnt_root))) {
			n->tries = TG_TRIES;
			state = name_state_look_up(n);
		} else {
			state = name_stem(n, dir);
			if (state >= 0)
				state = name_feed_component(n->table, state, n->dentry);
			if (state >= 0 && n->end == NAME_DIR)
				state = profile_step(n->table, state, '/');
		}
		if (n->locked)
			return state;
		in_order();
		if (d->d_seq.seqcount.sequence != changes)
			continue;
		if (state >= 0 && d->d_inode)
			placed_remember(n, n->dentry, name_start(n->start, n->end), changes, state);
		return state;
	}
	return NAME_LATER;
}

/* The state that the path leads to, or an enum tg_name_error. */
static __always_inline long name_find(struct tg_name *n)
{
	long state;

	/* nothing is allowed by no rules */
	if (!n->table)
		return 0;
	state = n->locked ? NAME_LATER : name_recall_placed(n);
	return state >= 0 ? state : name_state_led(n);
}

__noinline long name_state(struct tg_name *n)
{
	return n ? name_find(n) : NAME_LATER;
}

/* Of the profiles from n->table on, the one that is for the program, 0: none; or an enum tg_name_error. */
__noinline long name_profile(struct tg_name *n)
{
	u32 changes;
	long found;

	if (!n)
		return NAME_LATER;
	if (!n->table)
		return 0;
	n->by = n->table;
	n->start = NAME_ATTACH;
	n->tries = TG_TRIES;
	/* it depends on the caller, too, where a path may begin elsewhere than at the root */
	if (n->flags & (PATH_CHROOT_REL | PATH_CONNECT))
		return name_look_up(n, true);
	found = name_recall_placed(n);
	if (found >= 0)
		return found;
	changes = changes_settled(CAST(struct dentry, n->dentry));
	found = name_look_up(n, true);
	if (found >= 0)
		placed_remember(n, n->dentry, name_start(n->start, n->end), changes, found);
	return found;
}

#endif
