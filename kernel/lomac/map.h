/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule of the map that an object's canonical path (lib/path_walk.h) meets. The path is
 * thrown away if a rename or a mount ran while it was walked, or a policy came.
 */
#ifndef TIDEGATE_LOMAC_MAP_H
#define TIDEGATE_LOMAC_MAP_H

#include "lib/inode_kind.h"
#include "core/mounts.h"
#include "core/policy.h"
#include "lomac/maps.h"

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

/*
 * Are there other spellings of the name, by which its directory finds the same (casefolding, vfat and its kin)? A dentry
 * has the one by which it was looked for first. Where a filesystem can fold names, all of its dentries are compared by it,
 * and the directories that do so have a flag. The kernel's own compare names by more than their letters, not by less.
 */
static __always_inline bool name_folds(u64 dentry)
{
	struct dentry *d = CAST(struct dentry, dentry), *dir = CAST(struct dentry, d->d_parent);
	struct super_block *sb = CAST(struct super_block, d->d_sb);

	if (!(dir->d_flags & DCACHE_OP_COMPARE_FLAG) || fs_is_kernel(sb->s_magic))
		return false;
	if (bpf_core_field_exists(struct super_block, s_encoding) && address(sb->s_encoding))
		return CAST(struct inode, address(dir->d_inode))->i_flags & S_CASEFOLD;
	return true;
}

#define plm_folds name_folds
#define plm_node node_of
#define plm_edge bpf_map_lookup_elem
#define plm_read bpf_probe_read_kernel
#define plm_name(d) (&CAST(struct dentry, d)->d_name)

#include "lomac/map_walk.h"

/* Of functions with a body of their own the verifier looks at each once, and not at every path to it. */
__noinline bool walk_map(struct tg_scratch *w, struct tg_found *out)
{
	return w && out && plm_walk(w, out);
}

/*
 * The rule of an object's canonical path. 0: found. -1: the path cannot be
 * known. 1: its filesystem is not mounted where the map can see it. PATH_LATER: it cannot
 * be looked at now, for renames or mounts; nobody may fall for that.
 */
#define PATH_LATER (-2)
/* In place of a node of the map: there is none, as the map sees no place where the filesystem is mounted. */
#define NODE_NONE (~0u)

__noinline int path_rule(u64 dentry, struct tg_found *out)
{
	struct tg_scratch *w;
	int ret = PATH_LATER;
	u32 try;

	if (!out)
		return -1;
	w = scratch_get();
	if (!w)
		return PATH_LATER;
	bpf_rcu_read_lock();
	bpf_for(try, 0, TG_TRIES) {
		struct dentry *d = CAST(struct dentry, dentry);
		u64 before = path_settled();
		u32 number = policy_seqno();
		u64 m;

		if (before & PATH_ODD)
			break;
		ret = -1;
		if (walk_filesystem(dentry, w)) {
			m = mount_of(address(d->d_sb), w);
			if (m == MOUNT_LATER) {
				ret = PATH_LATER;
				break;
			}
			if (!m) /* a dentry that nothing connects to its root has no path at all */
				ret = w->up[BOUND(w->n - 1, TG_DEPTH)] == address(d->d_sb->s_root) ?
					      1 :
					      -1;
			else
				ret = walk_mounts(m, w) && walk_map(w, out) ? 0 : -1;
		}
		if (path_sequence() == before && policy_seqno() == number) {
			if (!ret)
				mount_remember(w);
			break;
		}
		ret = PATH_LATER;
		w = scratch_again(w);
		if (!w)
			break;
	}
	bpf_rcu_read_unlock();
	if (w)
		scratch_put(w);
	return ret;
}

/* The rule of a name that is to be made in a directory whose label is known. */
__noinline int child_rule(u32 node, u32 full, u64 dentry, struct tg_found *out)
{
	return plm_child(node, full, dentry, out);
}

#endif
