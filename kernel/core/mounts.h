/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mount that a filesystem's paths go through: canonical_mount() of lib/path_walk.h chooses it, and here it is remembered. */
#ifndef TIDEGATE_CORE_MOUNTS_H
#define TIDEGATE_CORE_MOUNTS_H

#include "core/maps.h"
#include "lib/path_walk.h"

/*
 * Of a filesystem's mounts that were the oldest when it was last searched, the first through which the walked object can
 * be reached; no mount that is older has come since, but for one that the top level kept detached. 0: it is to be searched
 * again, and `w->is_to_remember` says whether what is found then is to be remembered.
 */
__noinline u64 mount_remembered(u64 super, struct tg_scratch *w)
{
	struct tg_root *known;
	struct mount *m;
	u32 i;

	if (!w)
		return 0;
	w->super = super;
	w->is_to_remember = true;
	known = bpf_map_lookup_elem(&roots, &w->super);
	if (!known)
		return 0;
	bpf_for(i, 0, TG_OLDEST) {
		struct tg_old_mount *k = &known->oldest[BOUND(i, TG_OLDEST)];

		if (!k->mount)
			return 0;
		m = CAST(struct mount, k->mount);
		if (m->mnt_id_unique != k->id || address(m->mnt.mnt_sb) != super ||
		    !mount_is_initial(m)) {
			bpf_map_delete_elem(&roots, &w->super);
			return 0;
		}
		if (mount_covers(m, w))
			return address(m);
	}
	/* all are there: the one that will be found is younger than these */
	w->is_to_remember = false;
	return 0;
}

/* The mount to go on from: where the kernel lists a filesystem's oldest last, what is remembered spares the search. */
static __always_inline u64 mount_of(u64 super, struct tg_scratch *w)
{
	u64 found;

	w->is_to_remember = false;
	if (mounts_newest_first()) {
		found = mount_remembered(super, w);
		if (found) {
			w->is_to_remember = false;
			return found;
		}
	}
	found = canonical_mount(super, w);
	if (found <= MOUNT_LATER)
		w->is_to_remember = false;
	return found;
}

/* What a search has met last, which are the oldest. Its caller knows that no mount came or went meanwhile. */
static __always_inline void mount_remember(struct tg_scratch *w)
{
	u32 i;

	if (!w->is_to_remember)
		return;
	bpf_for(i, 0, TG_OLDEST) {
		u64 m = i < w->met ? w->oldest[(w->met - 1 - i) % TG_OLDEST] : 0;
		struct tg_old_mount *k = &w->root.oldest[BOUND(i, TG_OLDEST)];

		k->mount = m;
		k->id = m ? CAST(struct mount, m)->mnt_id_unique : 0;
	}
	bpf_map_update_elem(&roots, &w->super, &w->root, BPF_ANY);
}

#endif
