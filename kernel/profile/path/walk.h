/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where an automaton gets to by an object's path, as the profile model sees paths: through
 * the mounts by which it was reached, to the root of the task's mount namespace
 * (d_namespace_path() of security/apparmor/path.c).
 *
 * An object's state is its directory's, led on by the object's name. A directory's state is
 * remembered by its path. A walk up hashes it, from the last component
 * to the first, twice, with secret multipliers and different shifts: two paths can be made to
 * agree in one of the hashes without its secret, but by bits that the other one tells apart. The
 * automaton is walked from its beginning only if that path has not been seen under this automaton and
 * policy. So nothing has to be forgotten when something is renamed, mounted or linked: what
 * has another path then is looked up by that. Each walk is thrown away if a rename or a mount ran
 * meanwhile.
 *
 * As long as no directory is moved and nothing mounted, what is there keeps its path, and its state is
 * remembered by where the kernel has it, too, which no walk has to find out (cache.h).
 */
#ifndef TIDEGATE_PROFILE_PATH_WALK_H
#define TIDEGATE_PROFILE_PATH_WALK_H

#include "lib/arena.h"
#include "lib/memory.h"
#include "core/maps.h"
#include "core/secrets.h"
#include "profile/rules.h"

/* A path to walk, and by what. */
struct tg_name {
	u64 dentry;
	u64 mnt; /* struct vfsmount */
	u64 one; /* the path's hashes */
	u64 two;
	u64 moves;  /* of directories, when its place was looked for, */
	u32 mounts; /* and mounts */
	u32 number; /* of the policy */
	/* the struct tg_profile that asks, or the first of those among which one is looked for */
	u32 by;
	u32 table;
	u32 start;
	u32 flags;        /* PATH_* of the profile */
	u32 disconnected; /* text, and its length */
	u16 disconnected_len;
	u8 end;       /* enum tg_name_end */
	u8 connected; /* found: it leads to the root */
	u8 root;      /* and is it */
	u8 raw;       /* its mount is nowhere: from the filesystem's root */
	/* it is being made or goes: its directory is locked, and it keeps its name meanwhile */
	u8 locked;
	u8 pad;
	u16 steps; /* up the path, and over mounts */
	u16 tries;
};

/* How a path ends. */
enum tg_name_end {
	NAME_FILE,
	NAME_DIR,  /* in a slash */
	NAME_STEM, /* before the slash that a name follows: the root's is empty */
};

/* A state by its path's hashes. Each hash is kept with the state, so that of two writers at once
 * nothing is read but what one of them wrote. */
struct tg_remembered {
	u64 one;
	u64 two;
	u64 state;
};

#define TG_REMEMBERED_BITS 15
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << TG_REMEMBERED_BITS);
	__type(key, u32);
	__type(value, struct tg_remembered);
} profile_remembered SEC(".maps");

/* In place of a first state: not a state is remembered, but the profile that is for the program. */
#define NAME_ATTACH 0x80000000u

enum tg_name_error {
	NAME_DISCONNECTED = -1, /* no path to the root */
	NAME_LATER = -2,        /* renames or mounts do not end */
	NAME_TOO_LONG = -3,
	NAME_AGAIN = -5, /* the path did not stay as it was: never the answer */
};

/* path_flags: security/apparmor/include/path.h */
#define PATH_CONNECT 0x4
#define PATH_CHROOT_REL 0x8
#define PATH_MEDIATE_DELETED 0x10000

static __always_inline void name_mix(struct tg_name *n, u64 word)
{
	u64 one = (n->one ^ word) * secrets[0], two = (n->two + word) * secrets[1];

	n->one = one ^ one >> 32;
	n->two = two ^ two >> 29;
}

/* False: it was not hashed to its end. */
static __always_inline bool name_mix_component(struct tg_name *n, struct dentry *d)
{
	u64 at = (u64)d->d_name.name, len = d->d_name.len & 255, end = at + (len & ~7ull), word;

	while (at != end) {
		if (!MAY_LOOP)
			return false;
		name_mix(n, read_kernel_u64(at));
		at += 8;
	}
	/* the length above the bytes that are left, so that a hash's words can be told apart from its end */
	word = len << 56;
	if (len & 7)
		word |= read_kernel_u64(at) & ((1ull << (len & 7) * 8) - 1);
	name_mix(n, word);
	return true;
}

static __always_inline bool mount_is_anonymous(struct mount *m)
{
	u64 ns = (u64)m->mnt_ns;

	return !mount_ns_is_one(ns) || mount_ns_is_anonymous(ns);
}

static __always_inline bool mount_is_ours(struct mount *m)
{
	struct task_struct *me = bpf_get_current_task_btf();
	u64 ns = (u64)m->mnt_ns;

	return ns && ns == (u64)UNTRUSTED(me)->nsproxy->mnt_ns;
}

/* The clone of a mount that an overlay reads its layers by: what is opened there was asked about above. */
static __always_inline bool mount_is_private(u64 mnt)
{
	struct mount *m = real_mount(mnt);

	return (u64)m->mnt_ns >= (u64)-4095 && !(m->mnt.mnt_flags & MNT_INTERNAL);
}

/* Hashes the path, from its end up, and notes the dentries on the way. False: it is too deep. */
static __always_inline bool name_climb(struct tg_name *n, struct tg_scratch *w)
{
	struct dentry *d = CAST(struct dentry, n->dentry), *up;
	struct mount *m = real_mount(n->mnt), *parent;
	u64 top = n->raw ? 0 : (u64)m->mnt.mnt_root, root = 0, root_mnt = 0;

	if (n->flags & PATH_CHROOT_REL && !n->raw) {
		struct task_struct *me = bpf_get_current_task_btf();
		struct fs_struct *fs = UNTRUSTED(me)->fs;

		root = (u64)fs->root.dentry;
		root_mnt = (u64)fs->root.mnt;
	}
	n->one = secrets[2] ^ ((u64)n->number << 32 | n->table);
	n->two = secrets[3] + ((u64)n->end << 32 | n->start);
	n->root = 1;
	n->connected = 0;
	n->steps = 0;
	w->n = 0;
	while (MAY_LOOP) {
		if (n->steps >= 2 * TG_DEPTH)
			return false;
		n->steps++;
		if (root && (u64)d == root &&
		    (u64)m + bpf_core_field_offset(struct mount, mnt) == root_mnt) {
			n->connected = mount_is_ours(m);
			return true;
		}
		if ((u64)d == top) {
			parent = CAST(struct mount, m->mnt_parent);
			if ((u64)parent == (u64)m) {
				n->connected = !root && mount_is_ours(m);
				/* seen from where no root is: by the filesystem alone */
				n->raw = !n->connected && (root || mount_is_anonymous(m));
				return true;
			}
			d = CAST(struct dentry, m->mnt_mountpoint);
			m = parent;
			top = (u64)m->mnt.mnt_root;
			continue;
		}
		up = CAST(struct dentry, d->d_parent);
		if ((u64)up == (u64)d)
			return true;
		if (!name_mix_component(n, d))
			return false;
		n->root = 0;
		if (w->n >= TG_DEPTH)
			return false;
		w->up[BOUND(w->n, TG_DEPTH)] = (u64)d;
		w->n++;
		d = up;
	}
	return false;
}

/*
 * The same, again from the filesystem's root where that is what there is; and ends the hashes.
 * Of functions with a body of their own the verifier looks at each once.
 */
__noinline bool name_seen(struct tg_name *n, struct tg_scratch *w)
{
	if (!n || !w)
		return false;
	n->raw = 0;
	for (u32 pass = UNKNOWN_ZERO; pass < 2; pass++) {
		if (!name_climb(n, w))
			return false;
		if (!n->raw)
			break;
	}
	name_mix(n, n->connected ? 1 : (u64)n->disconnected << 1);
	return true;
}

/* The automaton of a table, as a walk through it needs it. */
struct tg_feed {
	u32 table;
	u32 width;
	u32 next;
};

static __always_inline struct tg_feed feed_of(u32 table)
{
	ARENA(struct tg_table) *t = ARENA_PTR(struct tg_table, table);
	struct tg_feed f = { .table = table, .width = t->width, .next = t->next };

	return f;
}

static __always_inline u32 feed_byte(struct tg_feed f, u32 state, u8 byte)
{
	return ARENA_PTR(
		u16, f.next)[state * f.width + ARENA_PTR(struct tg_table, f.table)->classes[byte]];
}

/* The state after a text of the kernel's. */
static __always_inline u32 feed_text(struct tg_feed f, u32 state, u64 text, u32 len)
{
	u64 word;

	for (; len >= 8; len -= 8, text += 8) {
		if (!MAY_LOOP)
			return 0;
		word = read_kernel_u64(text);
#pragma unroll
		for (u32 k = 0; k < 8; k++) {
			state = feed_byte(f, state, word);
			word >>= 8;
			/* one after the other: what is read ahead would need room */
			barrier_var(word);
		}
	}
	if (!len)
		return state;
	word = read_kernel_u64(text);
#pragma unroll
	for (u32 k = 0; k < 7; k++) {
		state = feed_byte(f, state, word);
		word >>= 8;
		barrier_var(word);
		if (k + 1 == len)
			break;
	}
	return state;
}

__noinline u32 name_feed(u32 table, u32 state, u64 text, u32 len)
{
	USES_ARENA();
	return feed_text(feed_of(table), state, text, len);
}

/* The state after a slash and a dentry's name. */
static __always_inline u32 feed_component(struct tg_feed f, u32 state, struct dentry *d)
{
	return feed_text(f, feed_byte(f, state, '/'), address(d->d_name.name), d->d_name.len & 255);
}

__noinline u32 name_feed_component(u32 table, u32 state, u64 dentry)
{
	USES_ARENA();
	return feed_component(feed_of(table), state, CAST(struct dentry, dentry));
}

/* Walks the automaton by the path that a climb has noted. */
static __always_inline u32 name_walk(struct tg_name *n, struct tg_scratch *w)
{
	u32 state = n->start, i;

	if (!n->connected && n->disconnected_len) {
		bpf_for(i, 0, n->disconnected_len)
			state = profile_step(n->table, state, ARENA_PTR(u8, n->disconnected)[i]);
	}
	if (!w->n)
		return n->root && n->connected && n->end != NAME_STEM ?
			       profile_step(n->table, state, '/') :
			       state;
	bpf_for(i, 0, w->n)
		state = name_feed_component(n->table, state, w->up[BOUND(w->n - 1 - i, TG_DEPTH)]);
	if (n->end == NAME_DIR)
		state = profile_step(n->table, state, '/');
	return state;
}

/* One of the two entries that a state may be in. */
static __always_inline struct tg_remembered *name_place(struct tg_name *n, u32 second)
{
	u32 at = n->one >> (64 - TG_REMEMBERED_BITS) ^ second;

	return bpf_map_lookup_elem(&profile_remembered, &at);
}

static __always_inline long name_recall_at(struct tg_name *n, u32 second)
{
	struct tg_remembered *r = name_place(n, second);
	u64 state;

	if (!r)
		return NAME_LATER;
	state = READ_ONCE(r->state);
	if ((READ_ONCE(r->one) ^ state) != n->one || (READ_ONCE(r->two) ^ state) != n->two)
		return NAME_LATER;
	return state;
}

/* The state that this path has led to; NAME_LATER: none is remembered. */
static __always_inline long name_recall(struct tg_name *n)
{
	long state = name_recall_at(n, 0);

	return state >= 0 ? state : name_recall_at(n, 1);
}

/* What was in the first entry goes to the second: two that meet there do not put each other out. */
static __always_inline void name_remember(struct tg_name *n, u64 state)
{
	struct tg_remembered *first = name_place(n, 0), *second = name_place(n, 1);

	if (!first || !second)
		return;
	second->one = first->one;
	second->two = first->two;
	second->state = first->state;
	first->one = n->one ^ state;
	first->two = n->two ^ state;
	first->state = state;
}

#endif
