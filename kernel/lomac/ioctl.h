/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: what ioctl(2) and commands of rings ask of files, devices and terminals. */
#ifndef TIDEGATE_LOMAC_IOCTL_H
#define TIDEGATE_LOMAC_IOCTL_H

#include "lomac/shared.h"
#include "lomac/terminal.h"

/*
 * Subvolumes of btrfs and of bcachefs are made, copied and removed, files of OCFS2 copied to a name, and xattrs of XFS set,
 * by ioctls that no other hook tells of; EXT4 and F2FS move blocks to or from a file that is an argument, and may have been opened
 * before a fall. What clones and compares is asked for as a write; what is done to a whole filesystem needs a capability
 * (capable.h). Of bcachefs and OCFS2 what only tells is let through.
 */
static __always_inline bool changes_filesystem(u32 cmd, bool named)
{
	u8 type = cmd >> 8, number = cmd;

	if (named && type == BCACHEFS_IOCTL_MAGIC)
		return number != 1 && number != 11 && number != 12 && number != 18;
	if (named && type == OCFS2_IOCTL_MAGIC)
		return number != 5;
	if (type == BTRFS_IOCTL_MAGIC)
		return number != 9 && number != 13 && number != 54;
	if (type == XFS_IOCTL_MAGIC)
		return cmd & IOC_WRITE && cmd != FS_IOC_FSSETXATTR;
	if (named && type == F2FS_IOCTL_MAGIC)
		return number == F2FS_MOVE_RANGE;
	return cmd == EXT4_IOC_MOVE_EXT;
}

/*
 * F2FS has a file pinned to its blocks, or takes from a compressed one the blocks that it spares, by a descriptor for reading. What
 * only tells is let through. The direction in a call's number does not say so: that of the second of these reads.
 */
static __always_inline bool changes_file(u32 cmd)
{
	if ((cmd >> 8 & 0xff) != F2FS_IOCTL_MAGIC)
		return false;
	switch (cmd & 0xff) {
	case 12: /* features */
	case 14: /* whether it is pinned */
	case 17: /* how many blocks are spared */
	case 21: /* how it is compressed */
	case 26: /* whether it is a device */
		return false;
	}
	return true;
}

/*
 * PAGEMAP_SCAN clears the marks of which pages a process has written, by a descriptor of /proc/PID/pagemap for reading;
 * whether it does, is told in memory of the caller's.
 */
static __always_inline bool scans_pages(struct inode *inode, u32 cmd)
{
	return (u16)cmd == PAGEMAP_SCAN && fs_magic(inode) == PROC_MAGIC;
}

/* By a descriptor, whatever it was opened for. */
static __noinline int modify_file(struct tg_subject *s, struct file *file)
{
	u64 dentry = file_dentry(file);

	return modify(lomac_subject_modifying(s), file->f_inode, dentry,
		      label_of(file->f_inode, dentry, TG_C_FILE), TG_OP_SETATTR, TG_C_FILE);
}

/*
 * An inode's generation is part of the key of its given level; flags are its attributes, and so is how its blocks are
 * noted; the key of encrypted files is of use to everybody. TIOCSTI and TIOCLINUX type into somebody's terminal, TIOCSIG
 * interrupts, TCXONC types what stops it, TIOCEXCL keeps others from opening it; of a console its session has the keyboard,
 * the letters and when it is shown, and all share the rest.
 */
static __always_inline int lomac_ioctl(struct file *file, unsigned int cmd)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_TTY, .class = TG_C_TASK, .reason = TG_R_TOP_ONLY };
	struct inode *inode = file->f_inode;
	bool named;

	if (!s || s->level >= policy.top)
		return 0;
	/* a disk is changed by more calls than can be listed, read-only descriptors or not */
	if ((inode->i_mode & S_IFMT) == S_IFBLK ||
	    ((inode->i_mode & S_IFMT) == S_IFCHR && !device_is_neutral(inode->i_rdev)))
		return modify_file(s, file);
	/* blocks moved and swapped by a descriptor that was opened before */
	if ((inode->i_mode & S_IFMT) == S_IFREG && file->f_mode & FMODE_WRITE &&
	    !(inode_is_memory(inode) &&
	      memory_admits(address(inode), file_dentry(file), s->level))) {
		int err = modify_file(s, file);

		if (err)
			return err;
	}
	named = (inode->i_mode & S_IFMT) == S_IFREG || (inode->i_mode & S_IFMT) == S_IFDIR;
	if (changes_filesystem(cmd, named)) {
		n.op = TG_OP_SETATTR;
		n.class = TG_C_FILE;
		return deny(s, &n, -EPERM);
	}
	if (named && (changes_file(cmd) || scans_pages(inode, cmd)))
		return modify_file(s, file);
	switch (cmd) {
	case FIOSETOWN:
	case SIOCSPGRP:
		n.op = TG_OP_SIGNAL;
		return deny(s, &n, -EPERM);
	case FIONBIO: /* O_NONBLOCK by another name */
		return modify_shared(file, TG_OP_SETATTR);
	case FIOASYNC:
		if ((inode->i_mode & S_IFMT) != S_IFCHR)
			return modify_shared(file, TG_OP_SETATTR);
		return terminal_is_higher(file, s->level, false) ? deny(s, &n, -EPERM) : 0;
	case TCXONC: /* by the other end it holds up what is printed, as a terminal's settings do */
		if (!device_is_master(inode->i_rdev))
			return 0;
		return master_is_higher(file, s->level) ? deny(s, &n, -EPERM) : 0;
	case TIOCSIG:
		return master_is_higher(file, s->level) ? deny(s, &n, -EPERM) : 0;
	case TIOCEXCL: /* the top opens one all the same: so one without a session is anybody's */
		return terminal_is_higher(file, s->level, false) ? deny(s, &n, -EPERM) : 0;
	case TIOCSTI:
	case KDSETMODE:
	case KDSKBMODE:
	case KDSKBMETA:
	case KDSKBLED:
	case KDSETLED:
	case KDFONTOP:
	case PIO_FONT:
	case PIO_FONTX:
	case PIO_FONTRESET:
	case PIO_SCRNMAP:
	case PIO_UNISCRNMAP:
	case PIO_UNIMAP:
	case PIO_UNIMAPCLR:
	case VT_SETMODE:
	case VT_RELDISP:
		return terminal_is_higher(file, s->level, true) ? deny(s, &n, -EPERM) : 0;
	case VT_ACTIVATE: /* one console is left, and another one shown */
	case VT_SETACTIVATE:
		return terminal_is_higher(file, s->level, true) || shown_is_higher(file, s->level) ?
			       deny(s, &n, -EPERM) :
			       0;
	case KDSKBDIACR: /* everybody who sits at it uses the keyboard */
	case KDSKBDIACRUC:
	case KDSIGACCEPT:
	case PIO_CMAP: /* of all consoles */
	case VT_RESIZE:
	case VT_RESIZEX:
	case TIOCLINUX:
	case TIOCSETD:
		return deny(s, &n, -EPERM);
	case FS_IOC_SETVERSION:
	case FS_IOC_SETVERSION_EXT4:
	case FS_IOC32_SETVERSION:
	case FS_IOC32_SETVERSION_EXT4:
	case FS_IOC_REMOVE_ENCRYPTION_KEY:
		n.op = TG_OP_SETATTR;
		n.class = TG_C_FILE;
		return deny(s, &n, -EPERM);
	case FS_IOC_SETFLAGS:
	case FS_IOC32_SETFLAGS:
	case FS_IOC_ENABLE_VERITY:
	case FS_IOC_SET_ENCRYPTION_POLICY:
	case FS_IOC_FSSETXATTR:
	case EXT4_IOC_MIGRATE:
		return modify_file(s, file);
	}
	return 0;
}

SEC("lsm.s/file_ioctl")
int BPF_PROG(lomac_file_ioctl, struct file *file, unsigned int cmd)
{
	return lomac_ioctl(file, cmd);
}

/* A 32-bit call's. */
SEC("lsm/file_ioctl_compat")
int BPF_PROG(lomac_file_ioctl_compat, struct file *file, unsigned int cmd)
{
	return lomac_ioctl(file, cmd);
}

/* What ioctl() asks of a device or a file, a ring can ask, too. */
SEC("lsm/uring_cmd")
int BPF_PROG(lomac_uring_cmd, struct io_uring_cmd *command)
{
	struct tg_subject *s = subject_current();
	struct file *file = command->file;
	struct inode *inode = file->f_inode;
	u16 type = inode->i_mode & S_IFMT;

	if (!s || s->level >= policy.top || (type != S_IFBLK && type != S_IFCHR && type != S_IFREG))
		return 0;
	return modify_file(s, file);
}

#endif
