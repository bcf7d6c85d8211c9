/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a path leads to, remembered by where the kernel has the object. It holds as long as
 * the object keeps its name, no directory at all is moved, and nothing mounted; and does not depend on how deep
 * the object lies.
 */
#ifndef TIDEGATE_PROFILE_PATH_CACHE_H
#define TIDEGATE_PROFILE_PATH_CACHE_H

#include "core/mounts.h"
#include "lib/seqcache.h"
#include "profile/path/walk.h"

/*
 * A place, whole: addresses are used again, but not while all of this stays as it is. The inode's
 * address, number and generation tell what is there. What is left is another name of the same file,
 * at the address of one that was removed, with the same hash: a task that may open that file by a
 * name that it had may keep it open as well.
 */
struct tg_place {
	u64 dentry;
	u64 parent;
	u64 name; /* its hash and length */
	u64 mnt;
	u64 ns;      /* the mount namespace that it is seen from */
	u64 moves;   /* of directories, all there are */
	u32 mounts;  /* the same of mounts */
	u32 changes; /* of the name itself, and of what it leads to */
	u64 inode;   /* its address */
	u64 ino;
	u32 generation;
	u32 number; /* of the policy */
	u32 by;     /* of tg_name */
	u32 start;  /* and above it how the path ends */
};

/* Odd while it is written. */
struct tg_placed {
	u32 version;
	u32 state;
	struct tg_place at;
};

#define TG_PLACED_BITS 15
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << TG_PLACED_BITS);
	__type(key, u32);
	__type(value, struct tg_placed);
} profile_placed SEC(".maps");

/*
 * How often a directory, or what something is mounted on, was moved; whether that is counted, as user space says
 * once it is. Where it cannot be (a kernel that has no such function) all renames there are count in its place.
 */
u32 moves_counted GLOBAL_OF(profile);
u64 directory_moves GLOBAL_OF(profile);

/*
 * Has something else a path by way of it? A file may be a mountpoint in another mount namespace
 * than the mover's.
 */
static __always_inline bool leads_on(struct dentry *d)
{
	struct inode *inode = d->d_inode;

	return inode && ((inode->i_mode & S_IFMT) == S_IFDIR || d->d_flags & DENTRY_IS_MOUNTED);
}

/*
 * Every move of a name goes through here, with rename_lock taken: it is counted before anything is changed, and
 * by one processor at a time, so that none is missed.
 */
SEC("?fentry/__d_move")
int BPF_PROG(profile_d_move, struct dentry *dentry, struct dentry *target)
{
	if (leads_on(dentry) || leads_on(target))
		__sync_fetch_and_add(&directory_moves, 1);
	return 0;
}

#define MOVES_COUNTED (1ull << 63)

static __always_inline u64 moves_now(void)
{
	if (READ_ONCE(moves_counted))
		return READ_ONCE(directory_moves) | MOVES_COUNTED;
	return CAST(struct seqcount, symbols.rename_lock)->sequence;
}

static __always_inline u32 mounts_now(void)
{
	return CAST(struct seqcount, symbols.mount_lock)->sequence;
}

/* One of the two entries that a place may be in. */
static __always_inline struct tg_placed *placed_entry(u64 dentry, u64 by, u32 second)
{
	u64 hash = (dentry ^ by) * 0x9e3779b97f4a7c15ull;
	u32 at = hash >> (64 - TG_PLACED_BITS) ^ second;

	return bpf_map_lookup_elem(&profile_placed, &at);
}

static __always_inline bool place_by(struct tg_place *p, u64 dentry, u32 number, u32 by, u32 start)
{
	return p->dentry == dentry && p->number == number && p->by == by && p->start == start;
}

static __always_inline u64 namespace_now(void)
{
	struct task_struct *me = bpf_get_current_task_btf();

	return address(UNTRUSTED(me)->nsproxy->mnt_ns);
}

/* The state that is remembered of a dentry of n's mount, where it is now; NAME_LATER: none is. */
static __always_inline long placed_recall(struct tg_name *n, u64 dentry, u32 start)
{
	u64 by = (u64)n->by << 32 | start;
	struct tg_placed *entry = placed_entry(dentry, by, 0);
	struct inode *inode;
	struct tg_place *p;
	struct dentry *d;
	u32 version;
	long state;

	if (!entry)
		return NAME_LATER;
	version = entry_version(&entry->version);
	if (!place_by(&entry->at, dentry, n->number, n->by, start)) {
		entry = placed_entry(dentry, by, 1);
		if (!entry)
			return NAME_LATER;
		version = entry_version(&entry->version);
		if (!place_by(&entry->at, dentry, n->number, n->by, start))
			return NAME_LATER;
	}
	p = &entry->at;
	/* while a move or a mount is under way that is odd, and what is remembered even */
	if (p->moves != n->moves || p->mounts != n->mounts)
		return NAME_LATER;
	d = CAST(struct dentry, dentry);
	if (p->changes != d->d_seq.seqcount.sequence)
		return NAME_LATER;
	in_order();
	inode = CAST(struct inode, d->d_inode);
	if (p->parent != (u64)d->d_parent || p->name != d->d_name.hash_len || p->mnt != n->mnt ||
	    p->ns != namespace_now() || p->inode != (u64)inode || p->ino != inode->i_ino ||
	    p->generation != inode->i_generation)
		return NAME_LATER;
	state = entry->state;
	return entry_is_whole(&entry->version, version) ? state : NAME_LATER;
}

/* Does it hold no more, whatever is asked of it? */
static __always_inline bool placed_is_over(struct tg_placed *e, struct tg_name *n)
{
	return e->at.number != n->number || e->at.moves != n->moves || e->at.mounts != n->mounts;
}

/*
 * Remembers a dentry's state, which was found out since its sequence was `changes` and n->moves and n->mounts were
 * as they are there. In an entry that holds no more, if one of the two is such.
 */
__noinline int placed_remember(struct tg_name *n, u64 dentry, u32 start, u32 changes, u32 state)
{
	struct tg_placed *entry, *second;
	struct dentry *d = CAST(struct dentry, dentry);
	struct inode *inode;
	u64 by;

	if (!n || (changes | n->mounts) & 1 || (!(n->moves & MOVES_COUNTED) && n->moves & 1))
		return 0;
	by = (u64)n->by << 32 | start;
	entry = placed_entry(dentry, by, 0);
	second = placed_entry(dentry, by, 1);
	if (!entry || !second)
		return 0;
	if (place_by(&second->at, dentry, n->number, n->by, start) ||
	    (!place_by(&entry->at, dentry, n->number, n->by, start) && !placed_is_over(entry, n) &&
	     placed_is_over(second, n)))
		entry = second;
	if (!entry_begin(&entry->version))
		return 0;
	inode = CAST(struct inode, d->d_inode);
	entry->at.parent = (u64)d->d_parent;
	entry->at.name = d->d_name.hash_len;
	entry->at.mnt = n->mnt;
	entry->at.ns = namespace_now();
	entry->at.moves = n->moves;
	entry->at.mounts = n->mounts;
	entry->at.changes = changes;
	entry->at.inode = (u64)inode;
	entry->at.ino = inode->i_ino;
	entry->at.generation = inode->i_generation;
	entry->at.number = n->number;
	entry->at.by = n->by;
	entry->at.start = start;
	entry->state = state;
	in_order();
	/* all of that is of what it was found out of */
	entry->at.dentry = d->d_seq.seqcount.sequence == changes ? dentry : 0;
	entry_end(&entry->version);
	return 0;
}

/* The sequence of a dentry's changes, once none is under way; it takes a few instructions. */
static __always_inline u32 changes_settled(struct dentry *d)
{
	u32 i, now = 1;

	for (i = UNKNOWN_ZERO; i < TG_SPINS && MAY_LOOP; i++) {
		now = d->d_seq.seqcount.sequence;
		if (!(now & 1))
			break;
	}
	in_order();
	return now;
}

/* From here on n's place is looked for. */
static __always_inline void place_begin(struct tg_name *n)
{
	n->moves = moves_now();
	n->mounts = mounts_now();
	in_order();
}

#endif
