/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: what ioctl(2) and commands of rings ask of files, devices and terminals. */
#ifndef TIDEGATE_LOMAC_IOCTL_H
#define TIDEGATE_LOMAC_IOCTL_H

#define FS_IOC_SETVERSION 0x40087602
#define FS_IOC_SETVERSION_EXT4 0x40086604
#define FS_IOC_SETFLAGS 0x40086602
#define FS_IOC_FSSETXATTR 0x401c5820
#define FIONBIO 0x5421
#define FIOASYNC 0x5452
#define FIOSETOWN 0x8901
#define SIOCSPGRP 0x8902
#define FS_IOC_ENABLE_VERITY 0x40806685
#define FS_IOC_SET_ENCRYPTION_POLICY 0x800c6613
#define BTRFS_IOCTL_MAGIC 0x94
#define XFS_IOCTL_MAGIC 'X'
#define IOC_WRITE (1u << 30)
#define EXT4_IOC_MOVE_EXT 0xc028660f
#define EXT4_IOC_MIGRATE 0x6609
#define FS_IOC_REMOVE_ENCRYPTION_KEY 0xc0406618
#define KDSKBDIACR 0x4b4b
#define KDSKBDIACRUC 0x4bfb
#define KDSIGACCEPT 0x4b4e
#define TIOCSTI 0x5412
#define TIOCLINUX 0x541c
#define TIOCSETD 0x5423
#define TIOCSIG 0x40045436
#define KDSETMODE 0x4b3a
#define KDSKBMODE 0x4b45
#define KDSKBMETA 0x4b63
#define KDSKBLED 0x4b65
#define KDSETLED 0x4b32
#define KDFONTOP 0x4b72
#define PIO_FONT 0x4b61
#define PIO_FONTX 0x4b6c
#define PIO_FONTRESET 0x4b6d
#define PIO_SCRNMAP 0x4b41
#define PIO_UNISCRNMAP 0x4b6a
#define PIO_UNIMAP 0x4b67
#define PIO_UNIMAPCLR 0x4b68
#define PIO_CMAP 0x4b71
#define VT_SETMODE 0x5602
#define VT_RELDISP 0x5605
#define VT_ACTIVATE 0x5606
#define VT_RESIZE 0x5609
#define VT_RESIZEX 0x560a
#define VT_SETACTIVATE 0x560f
#define FS_IOC32_SETVERSION 0x40047602
#define FS_IOC32_SETVERSION_EXT4 0x40046604
#define FS_IOC32_SETFLAGS 0x40046602

/*
 * Subvolumes of btrfs are made, copied and removed, and xattrs of XFS set, by ioctls that no
 * other hook tells of. What clones and compares is asked for as a write; what is done to a
 * whole filesystem needs a capability (capable.h).
 */
static __always_inline bool changes_filesystem(u32 cmd)
{
	u8 type = cmd >> 8, number = cmd;

	if (type == BTRFS_IOCTL_MAGIC)
		return number != 9 && number != 13 && number != 54;
	if (type == XFS_IOCTL_MAGIC)
		return cmd & IOC_WRITE && cmd != FS_IOC_FSSETXATTR;
	return cmd == EXT4_IOC_MOVE_EXT; /* the other file is its argument */
}

/* By a descriptor, whatever it was opened for. */
static __noinline int modify_file(struct tg_subject *s, struct file *file)
{
	u64 dentry = file_dentry(file);

	return modify(subject(s), file->f_inode, dentry, label_of(file->f_inode, dentry, TG_C_FILE),
		      TG_OP_SETATTR, TG_C_FILE);
}

/*
 * An inode's generation is part of the key of its given level; flags are its attributes, and so is how its blocks are
 * noted; the key of encrypted files is of use to everybody. TIOCSTI and TIOCLINUX type into somebody's terminal, TIOCSIG
 * interrupts; of a console its session has the keyboard, the letters and when it is shown, and all share the rest.
 */
static __always_inline int control(struct file *file, unsigned int cmd)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_TTY, .class = TG_C_TASK, .reason = TG_R_TOP_ONLY };
	struct inode *inode = file->f_inode;

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
	if (changes_filesystem(cmd)) {
		n.op = TG_OP_SETATTR;
		n.class = TG_C_FILE;
		return deny(s, &n, -EPERM);
	}
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
	case TIOCSIG:
		return master_is_higher(file, s->level) ? deny(s, &n, -EPERM) : 0;
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
	case VT_ACTIVATE:
	case VT_SETACTIVATE:
		return terminal_is_higher(file, s->level, true) ? deny(s, &n, -EPERM) : 0;
	case KDSKBDIACR: /* the keyboard is everybody's who sits at it */
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
int BPF_PROG(hook_file_ioctl, struct file *file, unsigned int cmd)
{
	return control(file, cmd);
}

/* A 32-bit call's. */
SEC("lsm/file_ioctl_compat")
int BPF_PROG(hook_file_ioctl_compat, struct file *file, unsigned int cmd)
{
	return control(file, cmd);
}

/* What ioctl() asks of a device or a file, a ring can ask, too. */
SEC("lsm/uring_cmd")
int BPF_PROG(hook_uring_cmd, struct io_uring_cmd *command)
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
