/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An object's canonical path, as the monitor and the recorder walk it. An including file has
 * `scratches`, rooms to walk in, and `policy.mnt_ns`.
 *
 * The path runs from the dentry up to its filesystem's root and on through the
 * oldest mount of that filesystem in the initial mount namespace. What a
 * process has chrooted to, bound or cloned does not enter into it, so it cannot
 * be forged. The walk reads the kernel's structures under RCU, and is thrown
 * away if a rename or a mount ran meanwhile.
 */
#ifndef TIDEGATE_LIB_PATH_WALK_H
#define TIDEGATE_LIB_PATH_WALK_H

#include "abi/policy.h"
#include "lib/arch.h"
#include "lib/ksyms.h"
#include "lib/preempt.h"
#include "lib/verifier.h"

/* A seqlock's first word is its sequence; odd while a writer is in. */
static __always_inline u64 path_sequence(void)
{
	u32 r, m;

	in_order();
	r = CAST(struct seqcount, symbols.rename_lock)->sequence;
	m = CAST(struct seqcount, symbols.mount_lock)->sequence;
	in_order();
	return (u64)r << 32 | m;
}

/*
 * How often a writer is asked whether it has left. It stays for a microsecond, but for
 * milliseconds where a hypervisor takes its processor away meanwhile.
 */
#define TG_SPINS (1 << 20)
#define PATH_ODD 0x100000001ull

/* The sequences once no writer is in; PATH_ODD is among them if one does not leave. */
static __noinline u64 path_settled(void)
{
	u64 now = path_sequence();
	u32 i;

	if (!(now & PATH_ODD))
		return now;
	bpf_for(i, 0, TG_SPINS) {
		now = path_sequence();
		if (!(now & PATH_ODD))
			break;
	}
	return now;
}

/* Walks begun before a storm of renames, or of mounts, is taken for one that does not end now. */
#define TG_TRIES 1024

/* Mounts of one filesystem looked at: containers copy the host's by the hundred. */
#define TG_MOUNTS (1 << 17)

static __always_inline struct tg_scratch *scratch_try(u32 slot)
{
	struct tg_scratch *w = bpf_map_lookup_elem(&scratches, &slot);

	return w && !__sync_val_compare_and_swap(&w->busy, 0, 1) ? w : NULL;
}

/*
 * A room, until it is put back; NULL: none is free. A task that has one is not preempted: else threads of
 * the lowest priority would have all of them.
 */
static __always_inline struct tg_scratch *scratch_get(void)
{
	struct tg_scratch *w;
	u32 first, i;

	work_begin();
	first = bpf_get_smp_processor_id() * 16;
	w = scratch_try(first % TG_SCRATCHES);
	if (w)
		return w;
	bpf_for(i, 1, TG_SCRATCHES) {
		w = scratch_try((first + i) % TG_SCRATCHES);
		if (w)
			return w;
	}
	work_end();
	return NULL;
}

static __always_inline void scratch_put(struct tg_scratch *w)
{
	__sync_lock_test_and_set(&w->busy, 0);
	work_end();
}

/* Between two tries of a walk others may run. NULL: none is free any more. */
static __always_inline struct tg_scratch *scratch_again(struct tg_scratch *w)
{
	scratch_put(w);
	return scratch_get();
}

static __always_inline struct mount *real_mount(u64 mnt)
{
	return CAST(struct mount, mnt - bpf_core_field_offset(struct mount, mnt));
}

/* Is a mount in a namespace at all? What has been taken away is in none, nor is what the kernel has for itself. */
static __always_inline bool mount_ns_is_one(u64 ns)
{
	return ns && ns < (u64)-4095;
}

/* Namespaces have numbers from here on; trees of mounts that are nowhere attached have others, or none. */
#define NS_NUMBERS 0xf0000000u
#define NS_INITIAL 0xeffffff8u

static __always_inline bool mount_ns_is_anonymous(u64 ns)
{
	u32 number = CAST(struct mnt_namespace, ns)->ns.inum;

	return number < NS_NUMBERS && number != NS_INITIAL;
}

static __always_inline bool mount_is_initial(struct mount *m)
{
	struct mnt_namespace *ns = m->mnt_ns;

	return ns && ns->ns.inum == policy.mnt_ns;
}

/* Is this mount's root the object itself, or above it on the way just walked? */
static __always_inline bool mount_covers(struct mount *m, struct tg_scratch *w)
{
	u64 root = (u64)m->mnt.mnt_root;
	u32 i;

	/* mostly it is the filesystem's own root, at which the way ends */
	if (w->n && w->up[BOUND(w->n - 1, TG_DEPTH)] == root)
		return true;
	bpf_for(i, 0, w->n)
		if (w->up[BOUND(i, TG_DEPTH)] == root)
			return true;
	return false;
}

/* The order of a filesystem's list of mounts. */
static __always_inline bool mounts_newest_first(void)
{
	return bpf_core_field_exists(((struct mount___6_18 *)0)->mnt_next_for_sb);
}

/*
 * The oldest mount in the initial namespace through which the walked object can be reached, be it of its whole filesystem
 * or of a part (a bind mount, a subvolume of btrfs): what is mounted later moves nothing that had a path before.
 * MOUNT_LATER: there are too many. Where the newest come first `w->oldest` has the last ones that were met, by turns, which
 * are the oldest of all that there are.
 */
#define MOUNT_LATER 1
__noinline u64 canonical_mount(u64 super, struct tg_scratch *w)
{
	struct super_block *sb = CAST(struct super_block, super);
	bool all = false;
	struct mount *m;
	u64 found = 0;
	u32 i;

	if (!w)
		return 0;
	if (mounts_newest_first()) {
		/* the last that fits is the oldest */
		w->met = 0;
		m = ((struct super_block___6_18 *)sb)->s_mounts;
		bpf_for(i, 0, TG_MOUNTS) {
			if (!m) {
				all = true;
				break;
			}
			m = CAST(struct mount, m);
			if (mount_is_initial(m)) {
				w->oldest[w->met++ % TG_OLDEST] = address(m);
				if (mount_covers(m, w))
					found = address(m);
			}
			m = ((struct mount___6_18 *)m)->mnt_next_for_sb;
		}
	} else {
		u64 off = bpf_core_field_offset(struct mount, mnt_instance);
		u64 head = (u64)sb + bpf_core_field_offset(struct super_block, s_mounts);
		struct list_head *p = sb->s_mounts.next;

		bpf_for(i, 0, TG_MOUNTS) {
			if (!p || (u64)p == head) {
				all = true;
				break;
			}
			m = CAST(struct mount, (u64)p - off);
			if (mount_is_initial(m) && mount_covers(m, w)) {
				found = address(m);
				all = true;
				break;
			}
			p = m->mnt_instance.next;
		}
	}
	return all ? found : MOUNT_LATER;
}

/*
 * A filesystem's next mount, and its first after 0; 0: there is no further one. It is a function of its own so that what
 * one kernel does not have is read in the branch for the other alone.
 */
__noinline u64 mount_after(u64 super, u64 mount)
{
	struct super_block *sb = CAST(struct super_block, super);
	u64 off, head, at;

	if (mounts_newest_first())
		return mount ? address(((struct mount___6_18 *)CAST(struct mount, mount))
					       ->mnt_next_for_sb) :
			       address(((struct super_block___6_18 *)sb)->s_mounts);
	off = bpf_core_field_offset(struct mount, mnt_instance);
	head = super + bpf_core_field_offset(struct super_block, s_mounts);
	at = mount ? address(CAST(struct mount, mount)->mnt_instance.next) :
		     address(sb->s_mounts.next);
	return at == head ? 0 : at - off;
}

/*
 * Of a filesystem that was not found in the initial namespace: is it only in the making, by a mount that hangs nowhere
 * yet (fsmount(2)), whoever has mounted a copy of that, or has it come there meanwhile? Where it will be, other rules may hold
 * for what is in it. The first such mount answers it. Where none is among as many as a path is looked for, it may be.
 */
__noinline bool is_in_the_making(u64 super)
{
	u64 m = 0, ns;
	u32 i;

	bpf_rcu_read_lock();
	bpf_for(i, 0, TG_MOUNTS) {
		m = mount_after(super, m);
		if (!m || mount_is_initial(CAST(struct mount, m)))
			break;
		ns = address(CAST(struct mount, m)->mnt_ns);
		if (mount_ns_is_one(ns) && mount_ns_is_anonymous(ns))
			break;
	}
	bpf_rcu_read_unlock();
	return m != 0;
}

/* Notes the dentries from d up to its filesystem's root. False: too deep. */
__noinline bool walk_filesystem(u64 dentry, struct tg_scratch *w)
{
	struct dentry *d = CAST(struct dentry, dentry);
	u32 i;

	if (!w)
		return false;

	w->n = 0;
	bpf_for(i, 0, TG_DEPTH) {
		struct dentry *up = d->d_parent;

		w->up[BOUND(i, TG_DEPTH)] = (u64)d;
		w->n = i + 1;
		if (up == d)
			return true;
		d = CAST(struct dentry, up);
	}
	return false;
}

/* Goes on from the mount's root to the namespace's; drops what is above it. */
__noinline bool walk_mounts(u64 mount, struct tg_scratch *w)
{
	struct mount *m = CAST(struct mount, mount);
	u64 root = (u64)m->mnt.mnt_root;
	struct dentry *d;
	u32 i;

	if (!w)
		return false;

	bpf_for(i, 0, w->n)
		if (w->up[BOUND(i, TG_DEPTH)] == root)
			w->n = i;
	bpf_for(i, 0, TG_DEPTH) {
		struct mount *parent = CAST(struct mount, m->mnt_parent);
		u32 j;

		if ((u64)m->mnt_parent == (u64)m)
			return true;
		d = CAST(struct dentry, m->mnt_mountpoint);
		m = parent;
		bpf_for(j, 0, TG_DEPTH) {
			if (d == m->mnt.mnt_root)
				break;
			if (d->d_parent == d || w->n >= TG_DEPTH)
				return false;
			w->up[BOUND(w->n, TG_DEPTH)] = (u64)d;
			w->n++;
			d = CAST(struct dentry, d->d_parent);
		}
	}
	return false;
}

#endif
