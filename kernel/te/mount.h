/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: filesystems and mounts. selinux_sb_*() of security/selinux/hooks.c. */
#ifndef TIDEGATE_TE_MOUNT_H
#define TIDEGATE_TE_MOUNT_H

#include "te/inode_sid.h"

static __always_inline int te_super_asked(u64 super, u32 request)
{
	struct tg_note n = { .op = TG_OP_MOUNT, .class = TG_C_SYSTEM };
	struct super_block *sb = CAST(struct super_block, super);
	struct te_who who = te_me();
	u32 p;

	if (!who.subject)
		return 0;
	p = te_tables(policy_seqno());
	n.dentry = address(sb->s_root);
	return p ? te_avc_has_perm(who.sid, te_super_sid(p, sb), SECCLASS_FILESYSTEM, request, &n) :
		   0;
}

static __always_inline int te_mounton(struct path *path)
{
	struct tg_note n = { .op = TG_OP_MOUNT, .class = TG_C_SYSTEM };
	struct dentry *dentry = path->dentry;
	struct inode *inode = dentry->d_inode;

	if (!te_me().subject || !inode)
		return 0;
	return te_may_inode(inode, address(dentry), FILE__MOUNTON, &n);
}

SEC("lsm/sb_mount")
int BPF_PROG(te_sb_mount, const char *name, struct path *path, const char *type,
	     unsigned long flags)
{
	if (flags & MS_REMOUNT)
		return te_super_asked(address(CAST(struct vfsmount, address(path->mnt))->mnt_sb),
				      FILESYSTEM__REMOUNT);
	return te_mounton(path);
}

SEC("lsm/move_mount")
int BPF_PROG(te_move_mount, struct path *from, struct path *to)
{
	return te_mounton(to);
}

SEC("lsm/sb_umount")
int BPF_PROG(te_sb_umount, struct vfsmount *mnt, int flags)
{
	return te_super_asked(address(mnt->mnt_sb), FILESYSTEM__UNMOUNT);
}

SEC("lsm/sb_kern_mount")
int BPF_PROG(te_sb_kern_mount, struct super_block *sb)
{
	return te_super_asked(address(sb), FILESYSTEM__MOUNT);
}

SEC("lsm/sb_statfs")
int BPF_PROG(te_sb_statfs, struct dentry *dentry)
{
	return te_super_asked(address(CAST(struct dentry, address(dentry))->d_sb),
			      FILESYSTEM__GETATTR);
}

#endif
