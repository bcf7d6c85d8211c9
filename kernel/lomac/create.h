/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: creation, and the levels that new objects get. label_give() of object.h keeps them. */
#ifndef TIDEGATE_LOMAC_CREATE_H
#define TIDEGATE_LOMAC_CREATE_H

#include "lomac/names.h"

/*
 * A new object. Where it gets a level that its path alone would not give back,
 * the level is noted here and given in d_instantiate, when the inode exists.
 */
static __always_inline int create(struct inode *dir, struct dentry *dentry, bool device, bool opens)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_CREATE, .class = TG_C_DIR };
	struct tg_found place = {};
	u8 level;
	struct tg_inode *memo;
	int err;

	if (!s)
		return 0;
	/* the level that is noted here has to be there when the inode is, and to be nobody else's */
	if (s == &subject_lost) {
		n.dentry = address(dentry);
		n.source = ~0u;
		n.reason = TG_R_NO_LABEL;
		return deny(s, &n, -ENOMEM);
	}
	s->creating = 0;
	s->created.ino = 0;
	if (device && s->level < policy.top) {
		n.dentry = address(dentry);
		n.reason = TG_R_TOP_ONLY;
		return deny(s, &n, -EPERM);
	}
	err = lomac_check_dir_change(lomac_subject_modifying(s), dir, dentry, TG_OP_CREATE, &place,
				     &memo);
	if (err)
		return err;
	if (place.rule.attrs & TG_NEUTRAL)
		return 0;
	level = lomac_create(lomac_subject_modifying(s), place_object(&place));
	if (level == LOMAC_REFUSED) {
		n.dentry = address(dentry);
		n.object = place.rule.level;
		n.source = place.rule.source;
		n.reason = TG_R_NO_CREATOR;
		return deny(s, &n, -EPERM);
	}
	if (level != place.rule.level && !given_has_room(s->level)) {
		n.dentry = address(dentry);
		n.reason = TG_R_TABLE_FULL;
		return deny(s, &n, -ENOSPC);
	}
	s->creating = level + 1;
	s->create_opens = opens;
	s->create_gives = level != place.rule.level;
	s->create_dentry = address(dentry);
	s->create_parent = address(UNTRUSTED(dentry)->d_parent);
	return 0;
}

/* Queues are counted by the kernel (fs.mqueue.queues_max), and all users' and levels' together: those above have room left. */
static __noinline int queues_full(struct inode *dir)
{
	struct ipc_namespace *space =
		CAST(struct ipc_namespace,
		     address(CAST(struct super_block, address(dir->i_sb))->s_fs_info));
	struct tg_subject *s = subject_current();
	struct tg_note n = {
		.op = TG_OP_CREATE, .class = TG_C_DIR, .source = ~0u, .reason = TG_R_TABLE_FULL
	};
	u8 level = subject_level(s);

	if (level >= policy.top ||
	    budget_admits(level, policy.top, space->mq_queues_max, space->mq_queues_count, 0, 1, 0))
		return 0;
	return deny(s, &n, -ENOSPC);
}

SEC("lsm.s/inode_create")
int BPF_PROG(lomac_inode_create, struct inode *dir, struct dentry *dentry)
{
	int err = fs_magic(dir) == MQUEUE_MAGIC ? verdict_of(queues_full(dir)) : 0;

	return err ? err : create(dir, dentry, false, true);
}

SEC("lsm/inode_mkdir")
int BPF_PROG(lomac_inode_mkdir, struct inode *dir, struct dentry *dentry)
{
	return create(dir, dentry, false, false);
}

SEC("lsm.s/inode_symlink")
int BPF_PROG(lomac_inode_symlink, struct inode *dir, struct dentry *dentry)
{
	return create(dir, dentry, false, false);
}

SEC("lsm.s/inode_mknod")
int BPF_PROG(lomac_inode_mknod, struct inode *dir, struct dentry *dentry, umode_t mode)
{
	u16 type = mode & S_IFMT;

	return create(dir, dentry, type == S_IFCHR || type == S_IFBLK, false);
}

/* The new inode: it gets the level that its creation noted, and none above what its maker has now. */
SEC("lsm/d_instantiate")
int BPF_PROG(lomac_d_instantiate, struct dentry *dentry, struct inode *inode)
{
	struct tg_subject *s;
	u8 level;

	/* a socket's inode has no level */
	if (!inode || fs_magic(inode) == SOCKFS_MAGIC)
		return 0;
	s = subject_current();
	if (!s)
		return 0;
	/* it holds its maker's data from the start */
	if (s->level < policy.top && inode_is_memory(inode)) {
		u32 payer = payer_current();

		/*
		 * nothing can be refused here: a task that has had its share is killed, and what it
		 * has made is known all the same
		 */
		if (floor_charge(address(inode), s->level, payer, BUDGET_LAST)) {
			bpf_send_signal(9);
			floor_charge(address(inode), s->level, payer, BUDGET_ALWAYS);
		}
	}
	if (!s->creating)
		return 0;
	/* an overlay's own inode is neutral; the level belongs to the one behind it */
	if (fs_is_neutral(fs_magic(inode)))
		return 0;
	if (s->create_dentry != address(dentry) ||
	    s->create_parent != address(UNTRUSTED(dentry)->d_parent) || !inode_is_new(inode))
		return 0;
	/* what is linked had a name before */
	if ((inode->i_mode & S_IFMT) != S_IFDIR && inode->i_nlink != 1)
		return 0;
	level = s->creating - 1;
	s->creating = 0;
	if (s->create_gives && s->level < level)
		level = s->level;
	/* an object that its maker's level could not be kept of: nothing can be refused here */
	if (s->create_gives && label_give(inode, address(dentry), level)) {
		bpf_send_signal(9);
		return 0;
	}
	if (s->create_opens) {
		s->created = given_key(inode);
		s->created_level = level;
		s->created_at = bpf_jiffies64();
	}
	return 0;
}

/* Its number may be used again by another object. */
SEC("lsm/inode_free_security")
int BPF_PROG(lomac_inode_free_security, struct inode *inode)
{
	struct tg_given_key key;
	u32 *entry, charged;
	u64 label;

	/* a socket's floor is its sock's */
	if ((inode->i_mode & S_IFMT) == S_IFIFO || fs_is_memory(fs_magic(inode)) ||
	    fs_magic(inode) == SECRETMEM_MAGIC)
		floor_forget(address(inode));
	/* what is in memory goes with its filesystem, too, and has its names then */
	if (inode->i_nlink && !fs_is_memory(fs_magic(inode)))
		return 0;
	/* of what has no label at the moment it is not known that it has no entry */
	label = label_hint(inode);
	if (label && label_origin(label) != TG_FROM_GIVEN)
		return 0;
	key = given_key(inode);
	entry = bpf_map_lookup_elem(&given, &key);
	charged = entry ? *entry : 0;
	if (entry && !bpf_map_delete_elem(&given, &key))
		given_back(charged);
	return 0;
}

#endif
