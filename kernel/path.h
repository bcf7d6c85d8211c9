/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule of the map that an object's canonical path (walk.h) meets. The path is
 * thrown away if a rename or a mount ran while it was walked, or a policy came.
 */
#ifndef TIDEGATE_PATH_H
#define TIDEGATE_PATH_H

#include "walk.h"

/*
 * The policy in force. Its number says also where its maps are, so that one store puts it in
 * force whole. Nodes are numbered anew by each: what was found by way of a node counts only
 * if the number is still the same afterwards.
 */
static __always_inline u32 policy_number(void)
{
	return *(volatile u32 *)&policy.seqno;
}

static __always_inline u32 policy_slot(void)
{
	return policy_number() & 1;
}

/* The walk's layer: the maps of the slot in force, and the kernel's names. */
static __always_inline void *plm_table(void)
{
	u32 slot = policy_slot();

	return bpf_map_lookup_elem(&edges, &slot);
}

static __always_inline struct tg_node *node_of(u32 id)
{
	u32 slot = policy_slot();
	void *inner = bpf_map_lookup_elem(&nodes, &slot);

	return inner ? bpf_map_lookup_elem(inner, &id) : NULL;
}

static __always_inline struct tg_scratch *plm_begin(void)
{
	struct tg_scratch *w = scratch_get();

	if (w)
		bpf_rcu_read_lock();
	return w;
}

static __always_inline void plm_end(struct tg_scratch *w)
{
	bpf_rcu_read_unlock();
	scratch_put(w);
}

#define plm_node node_of
#define plm_edge bpf_map_lookup_elem
#define plm_read bpf_probe_read_kernel
#define plm_name(d) (&CAST(struct dentry, d)->d_name)

#include "models/plm.h"

/* Of functions with a body of their own the verifier looks at each once, and not at every path to it. */
__noinline bool walk_map(struct tg_scratch *w, struct tg_found *out)
{
	return w && out && plm_walk(w, out);
}

/*
 * The rule of an object's canonical path. 0: found. -1: the path cannot be
 * known. 1: its filesystem is not mounted where the map can see it.
 */
__noinline int path_rule(u64 dentry, struct tg_found *out)
{
	struct tg_scratch *w;
	int ret = -1;
	u32 try;

	if (!out)
		return -1;
	w = scratch_get();
	if (!w)
		return -1;
	bpf_rcu_read_lock();
	bpf_for(try, 0, TG_TRIES) {
		struct dentry *d = CAST(struct dentry, dentry);
		u64 before = path_settled();
		u32 number = policy_number();
		u64 m;

		if (before & PATH_ODD)
			break;
		if (!walk_filesystem(dentry, w))
			break;
		m = canonical_mount(address(d->d_sb), w);
		if (!m) {
			/* a dentry that nothing connects to its root has no path at all */
			ret = w->up[BOUND(w->n - 1, TG_DEPTH)] == address(d->d_sb->s_root) ? 1 : -1;
		} else {
			ret = walk_mounts(m, w) && walk_map(w, out) ? 0 : -1;
		}
		if (path_sequence() == before && policy_number() == number)
			break;
		ret = -1;
	}
	bpf_rcu_read_unlock();
	scratch_put(w);
	return ret;
}

/* The rule of a name that is to be made in a directory whose label is known. */
__noinline int child_rule(u32 node, u32 full, u64 dentry, struct tg_found *out)
{
	return plm_child(node, full, dentry, out);
}

#endif
