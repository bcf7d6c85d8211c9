/* SPDX-License-Identifier: GPL-2.0-only */
/* The state that an object's path leads to, and the profile that is for a program: the quickest way that there is. */
#ifndef TIDEGATE_STATE_H
#define TIDEGATE_STATE_H

static __always_inline bool name_connects(struct tg_name *n)
{
	return n->connected || n->flags & PATH_CONNECT;
}

/* What is found by a path that stays as it is meanwhile; so often it is tried as n->tries says. */
static __always_inline long name_read(struct tg_name *n, struct tg_scratch *w, bool attach)
{
	u64 before;
	long ret;

	for (; n->tries && MAY_LOOP; n->tries--) {
		before = path_settled();
		if (before & PATH_ODD || policy_number() != n->number)
			break;
		if (!name_seen(n, w))
			return NAME_TOO_LONG;
		if (path_sequence() != before)
			continue;
		if (!name_connects(n))
			return NAME_DISCONNECTED;
		ret = name_recall(n);
		if (ret >= 0)
			return ret;
		ret = attach ? name_attach(n, w) : name_walk(n, w);
		/* not found for want of room: not to be remembered */
		if (ret < 0)
			return ret;
		if (path_sequence() == before && policy_number() == n->number) {
			name_remember(n, ret);
			return ret;
		}
	}
	return NAME_LATER;
}

static __always_inline long name_look_up(struct tg_name *n, bool attach)
{
	struct tg_scratch *w = scratch_get();
	long ret;

	if (!w)
		return NAME_LATER;
	ret = name_read(n, w, attach);
	scratch_put(w);
	return ret;
}

/* The same as name_state(), by the path alone. */
__noinline long name_state_look_up(struct tg_name *n)
{
	return n ? name_look_up(n, false) : NAME_LATER;
}

/* Is where the object is all that its path depends on? */
static __always_inline bool name_is_placed(struct tg_name *n)
{
	return !(n->flags & PATH_CHROOT_REL) && CAST(struct dentry, n->dentry)->d_inode;
}

/* The state that is remembered by the object's place; NAME_LATER: none is. */
static __always_inline long name_state_placed(struct tg_name *n)
{
	u64 now = path_sequence();

	if (now & PATH_ODD || !name_is_placed(n))
		return NAME_LATER;
	return placed_recall(place_of(n, CAST(struct dentry, n->dentry), n->end, now));
}

/* The state before the slash that the object's name follows. */
__noinline long name_stem(struct tg_name *n, u64 dir, u64 sequence)
{
	u64 dentry;
	long state;
	u8 end;

	if (!n)
		return NAME_LATER;
	dentry = n->dentry;
	end = n->end;
	state = placed_recall(place_of(n, CAST(struct dentry, dir), NAME_STEM, sequence));
	if (state >= 0)
		return state;
	n->dentry = dir;
	n->end = NAME_STEM;
	n->tries = 1;
	state = name_state_look_up(n);
	n->dentry = dentry;
	n->end = end;
	if (state >= 0 && path_sequence() == sequence && policy_number() == n->number)
		placed_remember(place_of(n, CAST(struct dentry, dir), NAME_STEM, sequence), state);
	return state;
}

/* The state, where the object's place is not known: its directory's, led on. */
__noinline long name_state_led(struct tg_name *n)
{
	struct dentry *d;
	u64 before, dir;
	long state;
	u32 try;

	if (!n)
		return NAME_LATER;
	if (n->flags & PATH_CHROOT_REL)
		return name_state_look_up(n);
	d = CAST(struct dentry, n->dentry);
	for (try = UNKNOWN_ZERO; try < TG_TRIES && MAY_LOOP; try++) {
		before = path_settled();
		if (before & PATH_ODD)
			break;
		dir = address(d->d_parent);
		/* what is mounted has its path from where that is */
		if (n->dentry == dir || n->dentry == address(CAST(struct vfsmount, n->mnt)->mnt_root)) {
			n->tries = 1;
			state = name_state_look_up(n);
		} else {
			state = name_stem(n, dir, before);
			if (state >= 0)
				state = name_feed_component(n->table, state, d);
			if (state >= 0 && n->end == NAME_DIR)
				state = profile_step(n->table, state, '/');
		}
		if (path_sequence() != before)
			continue;
		if (state >= 0 && name_is_placed(n) && policy_number() == n->number) {
			placed_remember(place_of(n, d, n->end, before), state);
		}
		return state;
	}
	return NAME_LATER;
}

/* The state that the path leads to, or an enum tg_name_error. */
__noinline long name_state(struct tg_name *n)
{
	long state;

	if (!n)
		return NAME_LATER;
	/* nothing is allowed by no rules */
	if (!n->table)
		return 0;
	state = name_state_placed(n);
	return state >= 0 ? state : name_state_led(n);
}

/* Of the profiles from n->table on, the one that is for the program, 0: none; or an enum tg_name_error. */
__noinline long name_profile(struct tg_name *n)
{
	long found;
	u64 before;

	if (!n)
		return NAME_LATER;
	if (!n->table)
		return 0;
	n->start = NAME_ATTACH;
	n->tries = TG_TRIES;
	before = path_sequence();
	if (before & PATH_ODD || !name_is_placed(n))
		return name_look_up(n, true);
	found = placed_recall(place_of(n, CAST(struct dentry, n->dentry), n->end, before));
	if (found >= 0)
		return found;
	found = name_look_up(n, true);
	if (found >= 0 && path_sequence() == before && policy_number() == n->number)
		placed_remember(place_of(n, CAST(struct dentry, n->dentry), n->end, before), found);
	return found;
}

#endif
