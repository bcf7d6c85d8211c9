/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mount that a filesystem's paths go through: canonical_mount() of lib/path_walk.h chooses it, and here it is remembered. */
#ifndef TIDEGATE_CORE_MOUNTS_H
#define TIDEGATE_CORE_MOUNTS_H

#include "core/maps.h"
#include "lib/path_walk.h"

/*
 * The mount to go on from: where the kernel lists a filesystem's oldest last, the one found
 * before while it is still there. An older one has not come since, but for one that the top
 * level kept detached.
 */
static __always_inline u64 mount_of(u64 super, struct tg_scratch *w)
{
	struct dentry *root = CAST(struct super_block, super)->s_root;
	struct tg_root *known;

	w->root.mount = 0;
	if (!mounts_newest_first())
		return canonical_mount(super, w);
	w->super = super;
	known = bpf_map_lookup_elem(&roots, &w->super);
	if (known && w->n && w->up[BOUND(w->n - 1, TG_DEPTH)] == address(root)) {
		struct mount *m = CAST(struct mount, known->mount);

		if (m->mnt_id_unique == known->id && address(m->mnt.mnt_sb) == super &&
		    m->mnt.mnt_root == root && mount_is_initial(m))
			return address(m);
		bpf_map_delete_elem(&roots, &w->super);
	}
	w->root.mount = canonical_mount(super, w);
	return w->root.mount;
}

/* What the walk found, if that is a whole filesystem's mount, and no mount of a part is older. */
static __always_inline void mount_remember(struct tg_scratch *w)
{
	struct mount *m = CAST(struct mount, w->root.mount);

	if (w->root.mount <= MOUNT_LATER || w->root.mount != w->oldest ||
	    m->mnt.mnt_root != CAST(struct super_block, w->super)->s_root)
		return;
	w->root.id = m->mnt_id_unique;
	bpf_map_update_elem(&roots, &w->super, &w->root, BPF_ANY);
}

#endif
