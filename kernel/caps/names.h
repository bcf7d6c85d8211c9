/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `capability` model: names. Each names its object. */
#ifndef TIDEGATE_CAPS_NAMES_H
#define TIDEGATE_CAPS_NAMES_H

#include "caps/file.h"

static __always_inline int caps_dir_asked(struct dentry *dentry, u32 class, u32 wanted, u8 op)
{
	return caps_asks() ? caps_named_asked(address(dentry), class, wanted, op) : 0;
}

static __always_inline u32 caps_class_of(struct dentry *dentry)
{
	return is_directory(dentry) ? CAPS_DIR : CAPS_FILE;
}

SEC("lsm/inode_create")
int BPF_PROG(caps_inode_create, struct inode *dir, struct dentry *dentry)
{
	return caps_dir_asked(dentry, CAPS_FILE, CAPS_CREATE, TG_OP_CREATE);
}

SEC("lsm/inode_mkdir")
int BPF_PROG(caps_inode_mkdir, struct inode *dir, struct dentry *dentry)
{
	return caps_dir_asked(dentry, CAPS_DIR, CAPS_CREATE, TG_OP_CREATE);
}

SEC("lsm/inode_symlink")
int BPF_PROG(caps_inode_symlink, struct inode *dir, struct dentry *dentry)
{
	return caps_dir_asked(dentry, CAPS_FILE, CAPS_CREATE, TG_OP_CREATE);
}

/* A Unix socket's name is what it is bound to. */
SEC("lsm/inode_mknod")
int BPF_PROG(caps_inode_mknod, struct inode *dir, struct dentry *dentry, umode_t mode)
{
	if ((mode & S_IFMT) == S_IFSOCK)
		return caps_dir_asked(dentry, CAPS_UNIX, CAPS_BIND, TG_OP_SOCKET);
	return caps_dir_asked(dentry, CAPS_FILE, CAPS_CREATE, TG_OP_CREATE);
}

SEC("lsm/inode_unlink")
int BPF_PROG(caps_inode_unlink, struct inode *dir, struct dentry *dentry)
{
	return caps_dir_asked(dentry, CAPS_FILE, CAPS_UNLINK, TG_OP_UNLINK);
}

SEC("lsm/inode_rmdir")
int BPF_PROG(caps_inode_rmdir, struct inode *dir, struct dentry *dentry)
{
	return caps_dir_asked(dentry, CAPS_DIR, CAPS_RMDIR, TG_OP_UNLINK);
}

SEC("lsm/inode_link")
int BPF_PROG(caps_inode_link, struct dentry *old_dentry, struct inode *dir,
	     struct dentry *new_dentry)
{
	struct inode *inode = old_dentry->d_inode;
	u32 wanted = CAPS_LINK;
	int err;

	if (!caps_asks())
		return 0;
	/*
	 * what has no name yet may be somebody else's, or may not be used any more: a task may link
	 * it only if it could make it itself
	 */
	if (inode && !inode->i_nlink)
		wanted = CAPS_CREATE | CAPS_READ | CAPS_WRITE;
	err = caps_named_asked(address(old_dentry), CAPS_FILE, wanted, TG_OP_LINK);
	return err ? err :
		     caps_named_asked(address(new_dentry), CAPS_FILE, CAPS_CREATE, TG_OP_LINK);
}

SEC("lsm/inode_rename")
int BPF_PROG(caps_inode_rename, struct inode *old_dir, struct dentry *old_dentry,
	     struct inode *new_dir, struct dentry *new_dentry)
{
	u32 class = caps_class_of(old_dentry);
	int err;

	if (!caps_asks())
		return 0;
	err = caps_named_asked(address(old_dentry), class, CAPS_RENAME, TG_OP_RENAME);
	if (!err)
		err = caps_named_asked(address(new_dentry), class, CAPS_CREATE, TG_OP_RENAME);
	if (!err && new_dentry->d_inode)
		err = is_directory(new_dentry) ? caps_named_asked(address(new_dentry), CAPS_DIR,
								  CAPS_RMDIR, TG_OP_RENAME) :
						 caps_named_asked(address(new_dentry), CAPS_FILE,
								  CAPS_UNLINK, TG_OP_RENAME);
	return err;
}

#endif
