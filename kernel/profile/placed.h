/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a path leads to, remembered by where the kernel has the object. It holds as long as
 * nothing at all is renamed or mounted, and does not depend on how deep the object lies.
 */
#ifndef TIDEGATE_PLACED_H
#define TIDEGATE_PLACED_H

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
} placed SEC(".maps");

/* What is read before is read before. */
static __always_inline void read_barrier(void)
{
#ifdef __TARGET_ARCH_x86
	asm volatile("" ::: "memory");
#else
	u64 own = 0;

	__sync_fetch_and_add(&own, 0);
#endif
}

/* Where a dentry of the path's mount is, which may be its object or the directory of that. */
static __always_inline struct tg_place *place_of(struct tg_name *n, struct dentry *d, u8 end, u64 sequence)
{
	struct tg_place *p = &n->place;
	struct task_struct *me = bpf_get_current_task_btf();
	struct inode *inode = CAST(struct inode, d->d_inode);

	p->dentry = address(d);
	p->parent = address(d->d_parent);
	p->name = d->d_name.hash_len;
	p->mnt = n->mnt;
	p->ns = address(CAST(struct nsproxy, address(me->nsproxy))->mnt_ns);
	p->sequence = sequence;
	p->ino = inode->i_ino;
	p->generation = inode->i_generation;
	p->number = n->number;
	p->table = n->table;
	p->start = n->start | (u32)end << 24;
	p->paths = n->disconnected << 1 | !!(n->flags & PATH_CONNECT);
	p->pad = 0;
	return p;
}

static __always_inline bool place_is(struct tg_place *a, struct tg_place *b)
{
	return a->dentry == b->dentry && a->parent == b->parent && a->name == b->name && a->mnt == b->mnt &&
	       a->ns == b->ns && a->sequence == b->sequence && a->ino == b->ino && a->generation == b->generation &&
	       a->number == b->number && a->table == b->table && a->start == b->start && a->paths == b->paths;
}

/* One of the two entries that a place may be in. */
static __always_inline struct tg_placed *placed_entry(struct tg_place *p, u32 second)
{
	u64 hash = (p->dentry ^ (u64)p->table << 32 ^ p->start) * 0x9e3779b97f4a7c15ull;
	u32 at = hash >> (64 - TG_PLACED_BITS) ^ second;

	return bpf_map_lookup_elem(&placed, &at);
}

static __always_inline long placed_read(struct tg_place *p, u32 second)
{
	struct tg_placed *entry = placed_entry(p, second);
	u32 version, state;

	if (!entry)
		return NAME_LATER;
	version = *(volatile u32 *)&entry->version;
	read_barrier();
	if (version & 1 || !place_is(&entry->at, p))
		return NAME_LATER;
	state = entry->state;
	read_barrier();
	return *(volatile u32 *)&entry->version == version ? state : NAME_LATER;
}

/* The state that is remembered; NAME_LATER: none is. */
__noinline long placed_recall(struct tg_place *p)
{
	long state;

	if (!p)
		return NAME_LATER;
	state = placed_read(p, 0);
	return state >= 0 ? state : placed_read(p, 1);
}

/* In an entry that holds no more, if one of the two is such. */
__noinline int placed_remember(struct tg_place *p, u32 state)
{
	struct tg_placed *entry, *second;
	u32 version;

	if (!p)
		return 0;
	entry = placed_entry(p, 0);
	second = placed_entry(p, 1);
	if (!entry || !second)
		return 0;
	if (entry->at.sequence == p->sequence && second->at.sequence != p->sequence)
		entry = second;
	version = *(volatile u32 *)&entry->version;
	if (version & 1 || __sync_val_compare_and_swap(&entry->version, version, version + 1) != version)
		return 0;
	entry->at = *p;
	entry->state = state;
	__sync_fetch_and_add(&entry->version, 1);
	return 0;
}

#endif
