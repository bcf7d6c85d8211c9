/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is behind an overlay's object, in a filesystem of its own. Of a file it is opened beside the overlay's, and what is read, written
 * and mapped; of what else it is nobody is told.
 */
#ifndef TIDEGATE_LIB_OVERLAY_H
#define TIDEGATE_LIB_OVERLAY_H

#include "lib/inode_kind.h"
#include "lib/memory.h"

/* as 6.12.118 and 7.2 have it; before 6.12 took it over from 6.14 it was another bit */
#define FMODE_BACKING (1u << 24)

/* Is it opened for another file, which it is behind? */
static __always_inline bool file_is_behind(u64 file)
{
	return CAST(struct file, file)->f_mode & FMODE_BACKING;
}

/* The path that a file was opened by: of one that is behind another, the other's. */
static __always_inline struct path *path_opened(u64 file)
{
	u64 at = file_is_behind(file) ? bpf_core_field_offset(struct backing_file, user_path) :
					bpf_core_field_offset(struct file, f_path);

	return CAST(struct path, file + at);
}

static __always_inline bool is_of_overlay(u64 inode)
{
	return CAST(struct inode, inode)->i_sb->s_magic == OVERLAYFS_MAGIC;
}

/* A device, a FIFO or a socket of an overlay. */
static __always_inline bool is_special_of_overlay(u64 inode)
{
	u16 type = CAST(struct inode, inode)->i_mode & S_IFMT;

	return (type == S_IFCHR || type == S_IFBLK || type == S_IFIFO || type == S_IFSOCK) &&
	       is_of_overlay(inode);
}

#define OVERLAYS 2 /* one on the other: FILESYSTEM_MAX_STACK_DEPTH */

/*
 * From an overlay's object to what is behind it, in the upper directory or else the first lower one: struct ovl_inode of fs/overlayfs has
 * `__upperdentry` and `oe` right behind its inode, and that the first lower one's dentry in its third word. False: it is not to be seen.
 */
static __always_inline bool look_behind(u64 *inode, u64 *dentry)
{
	u16 type = CAST(struct inode, *inode)->i_mode & S_IFMT;
	u32 i;

	for (i = 0; i < OVERLAYS && is_of_overlay(*inode); i++) {
		u64 at = *inode + bpf_core_type_size(struct inode), lower = read_kernel_u64(at + 8);

		*dentry = read_kernel_u64(at);
		if (!*dentry && lower)
			*dentry = read_kernel_u64(lower + 16);
		*inode = *dentry ? address(CAST(struct dentry, *dentry)->d_inode) : 0;
		if (!*inode || (CAST(struct inode, *inode)->i_mode & S_IFMT) != type)
			return false;
	}
	return !is_of_overlay(*inode);
}

#endif
