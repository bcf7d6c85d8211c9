/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: what an inode carries besides its content. selinux_inode_*(). */
#ifndef TIDEGATE_TE_ATTR_H
#define TIDEGATE_TE_ATTR_H

#include "te/file.h"

static __always_inline int te_attr_asked(struct dentry *dentry, u32 request, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_FILE };
	struct inode *inode = dentry->d_inode;

	if (!inode || !te_me().subject || !te_is_file(inode))
		return 0;
	return te_may_inode(inode, address(dentry), request, &n);
}

SEC("lsm/inode_setattr")
int BPF_PROG(te_inode_setattr, struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	u32 valid = CAST(struct iattr, address(attr))->ia_valid;

	if (valid & ATTR_FORCE) {
		valid &= ~(ATTR_KILL_SUID | ATTR_KILL_SGID | ATTR_MODE | ATTR_FORCE);
		if (!valid)
			return 0;
	}
	if (valid & ATTR_SET)
		return te_attr_asked(dentry, FILE__SETATTR, TG_OP_SETATTR);
	/* the policy capability open_perms, which every policy has had since 2010 */
	return te_attr_asked(
		dentry, FILE__WRITE | (valid & ATTR_SIZE && !(valid & ATTR_FILE) ? FILE__OPEN : 0),
		TG_OP_SETATTR);
}

SEC("?lsm/inode_file_setattr")
int BPF_PROG(te_inode_file_setattr, struct dentry *dentry)
{
	return te_attr_asked(dentry, FILE__SETATTR, TG_OP_SETATTR);
}

SEC("?lsm/inode_file_getattr")
int BPF_PROG(te_inode_file_getattr, struct dentry *dentry)
{
	return te_attr_asked(dentry, FILE__GETATTR, TG_OP_GETATTR);
}

SEC("lsm/inode_set_acl")
int BPF_PROG(te_inode_set_acl, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return te_attr_asked(dentry, FILE__SETATTR, TG_OP_XATTR);
}

SEC("lsm/inode_remove_acl")
int BPF_PROG(te_inode_remove_acl, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return te_attr_asked(dentry, FILE__SETATTR, TG_OP_XATTR);
}

SEC("lsm/inode_getxattr")
int BPF_PROG(te_inode_getxattr, struct dentry *dentry)
{
	return te_attr_asked(dentry, FILE__GETATTR, TG_OP_XATTR);
}

SEC("lsm/inode_listxattr")
int BPF_PROG(te_inode_listxattr, struct dentry *dentry)
{
	return te_attr_asked(dentry, FILE__GETATTR, TG_OP_XATTR);
}

SEC("lsm/inode_readlink")
int BPF_PROG(te_inode_readlink, struct dentry *dentry)
{
	return te_attr_asked(dentry, FILE__READ, TG_OP_READLINK);
}

#endif
