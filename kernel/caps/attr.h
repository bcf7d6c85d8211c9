/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `capability` model: what an inode carries besides its content, and watches. */
#ifndef TIDEGATE_CAPS_ATTR_H
#define TIDEGATE_CAPS_ATTR_H

#include "caps/names.h"
#include "caps/use.h"

static __always_inline int caps_attr_asked(struct dentry *dentry, u32 wanted, u8 op)
{
	struct inode *inode = dentry->d_inode;

	if (!inode || !caps_asks() || caps_is_nameless(inode))
		return 0;
	return caps_named_asked(address(dentry), caps_class_of(dentry), wanted, op);
}

SEC("lsm/inode_setattr")
int BPF_PROG(caps_inode_setattr, struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	u32 valid = CAST(struct iattr, address(attr))->ia_valid;

	if (valid & ATTR_FORCE) {
		valid &= ~(ATTR_KILL_SUID | ATTR_KILL_SGID | ATTR_MODE | ATTR_FORCE);
		if (!valid)
			return 0;
	}
	if (valid & ATTR_SET)
		return caps_attr_asked(dentry, CAPS_SETATTR, TG_OP_SETATTR);
	/* by a descriptor, that of the task that writes by it */
	if (valid & ATTR_SIZE && !(valid & ATTR_FILE))
		return caps_attr_asked(dentry, CAPS_WRITE, TG_OP_SETATTR);
	return 0;
}

SEC("lsm/file_truncate")
int BPF_PROG(caps_file_truncate, struct file *file)
{
	/* while it is opened it is not bound yet, and asked about next */
	if (!caps_me() || caps_is_nameless(file->f_inode) || !(file->f_mode & FMODE_OPENED))
		return 0;
	return caps_use(address(file), CAPS_WRITE, TG_OP_SETATTR);
}

SEC("?lsm/inode_file_setattr")
int BPF_PROG(caps_inode_file_setattr, struct dentry *dentry)
{
	return caps_attr_asked(dentry, CAPS_SETATTR, TG_OP_SETATTR);
}

SEC("lsm/inode_set_acl")
int BPF_PROG(caps_inode_set_acl, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return caps_attr_asked(dentry, CAPS_SETATTR, TG_OP_XATTR);
}

SEC("lsm/inode_remove_acl")
int BPF_PROG(caps_inode_remove_acl, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return caps_attr_asked(dentry, CAPS_SETATTR, TG_OP_XATTR);
}

SEC("lsm/inode_setxattr")
int BPF_PROG(caps_inode_setxattr, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return caps_attr_asked(dentry, CAPS_SETATTR, TG_OP_XATTR);
}

SEC("lsm/inode_removexattr")
int BPF_PROG(caps_inode_removexattr, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return caps_attr_asked(dentry, CAPS_SETATTR, TG_OP_XATTR);
}

/* A task that watches a file or a directory is told of its contents' changes and names. */
SEC("lsm/path_notify")
int BPF_PROG(caps_path_notify, struct path *path)
{
	return caps_attr_asked(path->dentry, CAPS_READ, TG_OP_GETATTR);
}

#endif
