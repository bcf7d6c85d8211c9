/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whose mounts are concerned by what is mounted, moved or taken away. The kernel asks whether the caller may mount in its
 * own namespace. But a mount that hangs nowhere yet (fsmount(2), OPEN_TREE_CLONE) may be taken, and mounted upon, by each
 * task that has a descriptor of it, though its anonymous namespace says whose it is; and what happens at a mount that has
 * peers or slaves happens at these, too, in whatever namespaces they are. All of them belong to user namespaces.
 */
#ifndef TIDEGATE_LOMAC_MOUNT_OWNER_H
#define TIDEGATE_LOMAC_MOUNT_OWNER_H

#include "lomac/map.h"
#include "lomac/namespace.h"

/* The first user namespace from that one outwards which has the mount's, too. */
__noinline u64 owner_with(u64 owner, u64 mount)
{
	u64 ns = address(CAST(struct mount, mount)->mnt_ns), other;
	u32 i;

	if (!mount_ns_is_one(ns))
		return owner;
	other = address(CAST(struct mnt_namespace, ns)->user_ns);
	bpf_for(i, 0, NAMESPACES) {
		u64 outer = address(CAST(struct user_namespace, owner)->parent);

		if (!outer || namespace_has(owner, other))
			break;
		owner = outer;
	}
	return owner;
}

#define PROPAGATION_LOST 1

/*
 * Where what happens at a mount happens next, as the kernel goes (next_mnt() of fs/pnode.c): at its slaves, at theirs, and so on with
 * each of its peers. A list ends at its head, or with 0. 0: everywhere by now; PROPAGATION_LOST: slaves of slaves are too deep.
 */
__noinline u64 propagation_next(u64 at, u64 origin)
{
	u64 list = bpf_core_field_offset(struct mount, mnt_slave_list);
	u64 slave = bpf_core_field_offset(struct mount, mnt_slave);
	u64 share = bpf_core_field_offset(struct mount, mnt_share);
	u64 top = address(CAST(struct mount, origin)->mnt_master), master, next;
	u32 i;

	next = address(CAST(struct list_head, at + list)->next);
	if (next && next != at + list)
		return next - slave;
	bpf_for(i, 0, TG_DEPTH) {
		master = address(CAST(struct mount, at)->mnt_master);
		if (master == top) {
			next = address(CAST(struct list_head, at + share)->next) - share;
			return next == origin ? 0 : next;
		}
		if (!master)
			break;
		next = address(CAST(struct list_head, at + slave)->next);
		if (next && next != master + list)
			return next - slave;
		at = master;
	}
	return PROPAGATION_LOST;
}

/* The first that has those of all mounts at which happens what happens at this one, itself among them; 0: they cannot be told. */
__noinline u64 owner_with_peers(u64 owner, u64 mount)
{
	u64 at = mount;
	u32 i;

	bpf_for(i, 0, TG_MOUNTS) {
		owner = owner_with(owner, at);
		at = propagation_next(at, mount);
		if (!at)
			return owner;
		if (at == PROPAGATION_LOST)
			break;
	}
	return 0;
}

/* The same of a mount and of all that is mounted in it: each is looked at, and then left. */
__noinline u64 owner_with_tree(u64 owner, u64 mount)
{
	u64 mounts = bpf_core_field_offset(struct mount, mnt_mounts);
	u64 child = bpf_core_field_offset(struct mount, mnt_child), at = mount, next;
	bool looked = false;
	u32 i;

	bpf_for(i, 0, 2 * TG_MOUNTS) {
		if (!looked) {
			owner = owner_with_peers(owner, at);
			if (!owner)
				return 0;
			next = address(CAST(struct list_head, at + mounts)->next);
		} else {
			if (at == mount)
				return owner;
			next = address(CAST(struct list_head, at + child)->next);
			at = address(CAST(struct mount, at)->mnt_parent);
		}
		/* at the list's end it is the parent that has been looked at */
		looked = next == at + mounts;
		if (!looked)
			at = next - child;
	}
	return 0;
}

/* The same of a mount at which something happens, and of a tree that is moved; 0 for either: there is none. */
__noinline u64 owner_of_mounts(u64 owner, u64 mount, u64 tree)
{
	u64 found = 0, before;
	u32 try;

	bpf_for(try, 0, TG_TRIES) {
		before = path_settled();
		if (before & PATH_ODD)
			return 0;
		found = owner;
		if (mount)
			found = owner_with_peers(found, mount);
		if (found && tree)
			found = owner_with_tree(found, tree);
		if (path_sequence() == before)
			return found;
	}
	return 0;
}

/*
 * May the current subject change these mounts (as struct vfsmount), from a mount namespace that a user namespace has? Not
 * while somebody above it is in that one, or in another one that has some of the mounts.
 */
static __always_inline int mounts_are_own(u64 user_ns, u64 mount, u64 tree)
{
	u64 off = bpf_core_field_offset(struct mount, mnt), owner;

	if (subject_level(subject_current()) >= policy.top)
		return 0;
	bpf_rcu_read_lock();
	owner = owner_of_mounts(user_ns, mount ? mount - off : 0, tree ? tree - off : 0);
	bpf_rcu_read_unlock();
	if (!owner)
		return refuse_label_changed(TG_OP_MOUNT, TG_C_SYSTEM);
	return CAST(struct user_namespace, owner)->level ? namespace_is_own(owner, true) :
							   top_only(TG_OP_MOUNT);
}

#endif
