/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An object's canonical path, as the monitor and the recorder walk it. Who includes this
 * has `scratches`, rooms to walk in, and `policy.mnt_ns`.
 *
 * The path runs from the dentry up to its filesystem's root and on through the
 * oldest mount of that filesystem in the initial mount namespace. What a
 * process has chrooted to, bound or cloned does not enter into it, so it cannot
 * be forged. The walk reads the kernel's structures under RCU, and is thrown
 * away if a rename or a mount ran meanwhile.
 */
#ifndef TIDEGATE_LIB_PATH_WALK_H
#define TIDEGATE_LIB_PATH_WALK_H

#include "lib/ksyms.h"

#define CAST(type, addr) ((type *)bpf_rdonly_cast((void *)(addr), bpf_core_type_id_kernel(type)))

/*
 * The same object, to be read only. At each load of a pointer through one that the verifier trusts, 6.12's looks through all of
 * the kernel's BTF up to four times, whether that is to be trusted, too: with such loads in what walks over tasks it took twice as long
 * to load the monitor.
 */
#define UNTRUSTED(p) CAST(typeof(*(p)), p)

/* The kernel's words at any address; what is not there is 0. */
static __always_inline u64 name_word(u64 at)
{
	return CAST(struct qstr, at)->hash_len;
}

/* What is read or written before is read or written before, on every processor. */
static __always_inline void in_order(void)
{
#ifdef __TARGET_ARCH_x86
	asm volatile("" ::: "memory");
#else
	u64 own = 0;

	__sync_fetch_and_add(&own, 0);
#endif
}

/*
 * An entry that several may write at once, each in place of what another remembered: its version is odd while
 * somebody writes, and who comes then does not.
 */
static __always_inline bool entry_begin(u32 *version)
{
	u32 now = *(volatile u32 *)version;

	return !(now & 1) && __sync_val_compare_and_swap(version, now, now + 1) == now;
}

static __always_inline void entry_end(u32 *version)
{
	__sync_fetch_and_add(version, 1);
}

/* Its version before it is read; */
static __always_inline u32 entry_version(u32 *version)
{
	u32 now = *(volatile u32 *)version;

	in_order();
	return now;
}

/* and afterwards, whether nobody has written it meanwhile. */
static __always_inline bool entry_is_whole(u32 *version, u32 before)
{
	in_order();
	return !(before & 1) && *(volatile u32 *)version == before;
}

/* A seqlock's first word is its sequence; odd while a writer is in. */
static __always_inline u64 path_sequence(void)
{
	u32 r, m;

	/* what is read before and after is read before and after */
	asm volatile("" ::: "memory");
	r = CAST(struct seqcount, symbols.rename_lock)->sequence;
	m = CAST(struct seqcount, symbols.mount_lock)->sequence;
	asm volatile("" ::: "memory");
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

/*
 * In the condition of a loop whose end the verifier does not see: false after eight million turns. It
 * takes four instructions a turn, and bpf_for() twenty. What counts the turns must begin with what the
 * verifier does not know, or it looks at each turn.
 */
#define MAY_LOOP                                                     \
	({                                                           \
		__label__ over, on;                                  \
		bool may = true;                                     \
		asm goto volatile("may_goto %l[over]" : : : : over); \
		goto on;                                             \
	over:                                                        \
		may = false;                                         \
	on:;                                                         \
		may;                                                 \
	})

/* 0, but the verifier does not know. */
u32 zero;
#define UNKNOWN_ZERO (*(volatile u32 *)&zero)

/* As bpf_for(i, 0, n), at a sixth of its cost: a call of the kernel's each step. */
#define EACH(i, n) for (i = UNKNOWN_ZERO; i < (n) && MAY_LOOP; i++)

/*
 * A kernel pointer as a number, which alone a global function takes. Negation
 * makes the verifier forget that it was a pointer; twice, it changes nothing.
 */
static __always_inline u64 address(const void *p)
{
	u64 a = (u64)p;

	asm volatile("%0 = -%0; %0 = -%0" : "+r"(a));
	return a;
}

/* An index below a power of two, where the verifier cannot overlook the bound. */
#define BOUND(n, size)                                                      \
	({                                                                  \
		u64 bound_n = (n);                                          \
		asm volatile("%0 &= %1" : "+r"(bound_n) : "i"((size) - 1)); \
		bound_n;                                                    \
	})

static __always_inline struct tg_scratch *scratch_try(u32 slot)
{
	struct tg_scratch *w = bpf_map_lookup_elem(&scratches, &slot);

	return w && !__sync_val_compare_and_swap(&w->busy, 0, 1) ? w : NULL;
}

static __always_inline struct tg_scratch *scratch_get(void)
{
	u32 first = bpf_get_smp_processor_id() * 16, i;
	struct tg_scratch *w = scratch_try(first % TG_SCRATCHES);

	if (w)
		return w;
	bpf_for(i, 1, TG_SCRATCHES) {
		w = scratch_try((first + i) % TG_SCRATCHES);
		if (w)
			return w;
	}
	return NULL;
}

static __always_inline void scratch_put(struct tg_scratch *w)
{
	__sync_lock_test_and_set(&w->busy, 0);
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
 * The oldest mount in the initial namespace through which the walked object can
 * be reached. A mount of a subdirectory (bind, btrfs subvolume) serves only
 * where the filesystem's own root is not mounted. MOUNT_LATER: there are too many.
 */
#define MOUNT_LATER 1
__noinline u64 canonical_mount(u64 super, struct tg_scratch *w)
{
	struct super_block *sb = CAST(struct super_block, super);
	u64 whole = 0, part = 0;
	bool all = false;
	struct mount *m;
	struct dentry *root = sb->s_root;
	u32 i;

	if (!w)
		return 0;
	/* a dentry that nothing connects to the root (by handle, say) has no path */
	if (!w->n || w->up[BOUND(w->n - 1, TG_DEPTH)] != address(root))
		root = NULL;
	if (mounts_newest_first()) {
		/* the last that fits is the oldest */
		m = ((struct super_block___6_18 *)sb)->s_mounts;
		bpf_for(i, 0, TG_MOUNTS) {
			if (!m) {
				all = true;
				break;
			}
			m = CAST(struct mount, m);
			if (mount_is_initial(m)) {
				if (m->mnt.mnt_root == root)
					whole = address(m);
				else if (mount_covers(m, w))
					part = address(m);
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
			if (mount_is_initial(m)) {
				if (m->mnt.mnt_root == root) {
					whole = address(m);
					all = true;
					break;
				}
				if (!part && mount_covers(m, w))
					part = address(m);
			}
			p = m->mnt_instance.next;
		}
		/* a whole one that came after so many more would be the top level's */
		all |= !!part;
	}
	return !all ? MOUNT_LATER : whole ? whole : part;
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
