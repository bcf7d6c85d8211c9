/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: stat(2) and each component of a path that is looked up. */
#ifndef TIDEGATE_TE_LOOKUP_H
#define TIDEGATE_TE_LOOKUP_H

#include "te/file.h"

/* stat(2) of every file, and each component of a path that is looked up: attached on demand, as they cost everybody. */
SEC("lsm/inode_getattr")
int BPF_PROG(te_sight_getattr, struct path *path)
{
	struct tg_note n = { .op = TG_OP_GETATTR, .class = TG_C_FILE };
	struct dentry *dentry = path->dentry;
	struct inode *inode = dentry->d_inode;

	if (!inode || !te_me().subject || !te_is_file(inode))
		return 0;
	return te_may_inode(inode, address(dentry), FILE__GETATTR, &n);
}

/* The dentry of a directory, of which there is one; of another inode one of those there are. */
static __always_inline u64 te_alias(struct inode *inode)
{
	u64 node = address(CAST(struct inode, address(inode))->i_dentry.first);

	if (!node)
		return 0;
	if (bpf_core_field_exists(((struct dentry___7_2 *)0)->d_alias))
		return node - bpf_core_field_offset(struct dentry___7_2, d_alias);
	return node - bpf_core_field_offset(struct dentry, d_u.d_alias);
}

/* selinux_inode_permission(), of all that is not opened: that is asked about when it is. file_mask_to_av() */
SEC("lsm/inode_permission")
int BPF_PROG(te_sight_permission, struct inode *inode, int mask)
{
	struct tg_note n = { .op = TG_OP_GETATTR, .class = TG_C_DIR };
	bool is_dir = (inode->i_mode & S_IFMT) == S_IFDIR;
	u32 request = 0;
	u64 dentry;

	if (!te_me().subject || mask & MAY_OPEN_MASK || !te_is_file(inode))
		return 0;
	if (mask & MAY_EXEC_MASK)
		request |= is_dir ? DIR__SEARCH : FILE__EXECUTE;
	if (mask & MAY_READ_MASK)
		request |= FILE__READ;
	if (!is_dir && mask & MAY_APPEND_MASK)
		request |= FILE__APPEND;
	else if (mask & MAY_WRITE_MASK)
		request |= FILE__WRITE;
	dentry = request ? te_alias(inode) : 0;
	return dentry ? te_may_inode(inode, dentry, request, &n) : 0;
}

SEC("lsm/inode_follow_link")
int BPF_PROG(te_sight_follow_link, struct dentry *dentry, struct inode *inode)
{
	struct tg_note n = { .op = TG_OP_READLINK, .class = TG_C_FILE };

	return te_me().subject && inode ? te_may_inode(inode, address(dentry), FILE__READ, &n) : 0;
}

#endif
