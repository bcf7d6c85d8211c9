/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: what an object carries besides its content. */
#ifndef TIDEGATE_HOOK_ATTR_H
#define TIDEGATE_HOOK_ATTR_H

/* Of what changes: whose an object is, and who may open it, rather than what it holds or when. */
enum { HOLDS, OWNED, OWNER };

/* ATTR_* of linux/fs.h: user and group; the mode, and times other than now, which only the owner sets. */
#define ATTR_OWNER (1 << 1 | 1 << 2)
#define ATTR_OWNED (ATTR_OWNER | 1 << 0 | 1 << 7 | 1 << 8 | 1 << 16)

/*
 * To write to a device that is neutral, or to a socket or a FIFO that is `lowwrite`, is everybody's. Whose it is, and who may open it,
 * is not: by its mode one would take it from everybody else. A pty is its session's.
 */
static __noinline int modify_owned(struct dentry *dentry, struct inode *inode, u64 label, u8 op)
{
	struct tg_subject *s = subject_current();

	if (inode->i_sb->s_magic == DEVPTS_MAGIC && dentry->d_fsdata)
		return session_is_higher(address(dentry->d_fsdata), subject_level(s), false) ?
			       refuse(inode, address(dentry), label, op, TG_C_FILE) :
			       0;
	label &= ~((u64)(TG_NEUTRAL | TG_LOWWRITE) << 8);
	return modify(subject(s), inode, address(dentry), label, op, TG_C_FILE);
}

/*
 * Attributes of a socket reach whoever shares it, and so does its owner, by which it is let through. Its mode is that of
 * the name that it is given later.
 */
static __noinline int modify_socket(struct inode *inode, u8 op, u32 what)
{
	u64 at = address(inode) - bpf_core_field_offset(struct socket_alloc, vfs_inode);
	struct tg_note n = { .op = op, .class = TG_C_SOCKET, .source = ~0u };
	struct tg_subject *s = subject_current();

	if (op == TG_OP_XATTR || what == OWNER)
		return top_only(op);
	if (!s || what != OWNED ||
	    !end_is_above(address(CAST(struct socket_alloc, at)->socket.file), s->level))
		return 0;
	n.reason = TG_R_CHANNEL;
	return deny(s, &n, -EPERM);
}

/* A pipe is opened again by its mode and its owner: by a name in /proc, such as /dev/stdout. */
static __noinline int modify_pipe(struct inode *inode, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_FILE, .source = ~0u, .reason = TG_R_CHANNEL };
	struct tg_subject *s = subject_current();

	if (!s || s->level >= policy.top || !file_is_above(address(inode), s->level, TG_NODEMOTE))
		return 0;
	return deny(s, &n, -EPERM);
}

static __always_inline int modify_dentry(struct dentry *dentry, u8 op, u32 what)
{
	struct tg_subject *s = subject_current();
	struct inode *inode = dentry->d_inode;
	u16 type;
	u64 label;

	if (!s || !inode)
		return 0;
	if (inode->i_sb->s_magic == SOCKFS_MAGIC)
		return modify_socket(inode, op, what);
	if (inode->i_sb->s_magic == PIPEFS_MAGIC)
		return what == HOLDS ? 0 : modify_pipe(inode, op);
	/* memory that no path names is a channel for who may have written to it; others come by /proc */
	if (inode_is_memory(inode) &&
	    (s->level >= policy.top || s->level >= floor_of(address(inode))))
		return 0;
	count_query(TG_C_FILE);
	label = label_of(inode, address(dentry), TG_C_FILE);
	type = inode->i_mode & S_IFMT;
	if (what != HOLDS &&
	    (type == S_IFCHR || type == S_IFBLK || type == S_IFSOCK || type == S_IFIFO))
		return modify_owned(dentry, inode, label, op);
	return modify(subject(s), inode, address(dentry), label, op, TG_C_FILE);
}

static __always_inline int observe_dentry(struct dentry *dentry, u8 op)
{
	struct tg_subject *s = subject_current();
	struct inode *inode = dentry->d_inode;
	struct tg_note n = { .op = op, .class = TG_C_FILE };
	u64 label;
	int err;
	u8 to;

	if (!inode)
		return 0;
	count_query(TG_C_FILE);
	label = label_of(inode, address(dentry), TG_C_FILE);
	/* of what may not be opened; names, which links are, are no data, but what is not known may be anything */
	if ((op == TG_OP_XATTR || !object(label).known) &&
	    !lomac_open(subject(s), object(label), policy.top))
		return refuse(inode, address(dentry), label, op, TG_C_FILE);
	to = lomac_observe(observer(s), object(label));
	if (to >= subject_observes(s))
		return 0;
	if (label & LABEL_LATER)
		return sank(op, TG_C_FILE);
	note_object(&n, inode, address(dentry), label);
	err = fall(s, to, &n, true);
	if (err)
		return err;
	s = subject_current();
	label = label_of(inode, address(dentry), TG_C_FILE);
	return lomac_observe(observer(s), object(label)) < subject_observes(s) ?
		       sank(op, TG_C_FILE) :
		       0;
}

/* chmod, chown, utimes, truncate and ftruncate. The first argument differs by kernel. */
SEC("lsm/inode_setattr")
int BPF_PROG(hook_inode_setattr, struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	u32 valid = CAST(struct iattr, address(attr))->ia_valid;

	return modify_dentry(dentry, TG_OP_SETATTR,
			     valid & ATTR_OWNER ? OWNER :
			     valid & ATTR_OWNED ? OWNED :
						  HOLDS);
}

/* Flags and project by file_setattr(2); attached where the kernel has it, since 6.17. */
SEC("?lsm/inode_file_setattr")
int BPF_PROG(hook_inode_file_setattr, struct dentry *dentry)
{
	return modify_dentry(dentry, TG_OP_SETATTR, OWNED);
}

SEC("lsm/inode_setxattr")
int BPF_PROG(hook_inode_setxattr, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return modify_dentry(dentry, TG_OP_XATTR, OWNED);
}

SEC("lsm/inode_removexattr")
int BPF_PROG(hook_inode_removexattr, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return modify_dentry(dentry, TG_OP_XATTR, OWNED);
}

SEC("lsm/inode_set_acl")
int BPF_PROG(hook_inode_set_acl, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return modify_dentry(dentry, TG_OP_XATTR, OWNED);
}

SEC("lsm/inode_remove_acl")
int BPF_PROG(hook_inode_remove_acl, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return modify_dentry(dentry, TG_OP_XATTR, OWNED);
}

SEC("lsm.s/inode_getxattr")
int BPF_PROG(hook_inode_getxattr, struct dentry *dentry, const char *name)
{
	char head[16] = {};

	/* user.* and trusted.* hold what others may have written; what overlays note there is about their layers */
	bpf_probe_read_kernel_str(head, sizeof(head), name);
	if (__builtin_memcmp(head, "user.", 5) && __builtin_memcmp(head, "trusted.", 8))
		return 0;
	if (!__builtin_memcmp(head, "trusted.overlay", 15))
		return 0;
	return observe_dentry(dentry, TG_OP_XATTR);
}

SEC("lsm.s/inode_readlink")
int BPF_PROG(hook_inode_readlink, struct dentry *dentry)
{
	struct inode *inode = dentry->d_inode;

	if (inode && fs_is_kernel(inode->i_sb->s_magic))
		return 0;
	return observe_dentry(dentry, TG_OP_READLINK);
}

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
#define BCACHEFS_IOCTL_MAGIC 0xbc
#define OCFS2_IOCTL_MAGIC 'o'
#define F2FS_IOCTL_MAGIC 0xf5
#define IOC_WRITE (1u << 30)
#define IOC_READ (1u << 31)
#define EXT4_IOC_MOVE_EXT 0xc028660f
#define EXT4_IOC_MIGRATE 0x6609
#define FS_IOC_REMOVE_ENCRYPTION_KEY 0xc0406618
#define KDSKBDIACR 0x4b4b
#define KDSKBDIACRUC 0x4bfb
#define KDSIGACCEPT 0x4b4e
#define TIOCSTI 0x5412
#define TCXONC 0x540a
#define TIOCEXCL 0x540c
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
 * Subvolumes of btrfs and of bcachefs are made, copied and removed, files of OCFS2 copied to a name, and xattrs of XFS set,
 * by ioctls that no other hook tells of. What clones and compares is asked for as a write; what is done to a
 * whole filesystem needs a capability (capable.h). Of bcachefs and OCFS2 what only tells is let through.
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
	return cmd == EXT4_IOC_MOVE_EXT; /* the other file is its argument */
}

/* F2FS has a file pinned to its blocks by a descriptor for reading: of its calls what does not only tell changes the file. */
static __always_inline bool changes_file(u32 cmd)
{
	return (cmd >> 8 & 0xff) == F2FS_IOCTL_MAGIC && (cmd & (IOC_READ | IOC_WRITE)) != IOC_READ;
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
 * interrupts, TCXONC types what stops it, TIOCEXCL keeps others from opening it; of a console its session has the keyboard,
 * the letters and when it is shown, and all share the rest.
 */
static __always_inline int control(struct file *file, unsigned int cmd)
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
	if (named && changes_file(cmd))
		return modify_file(s, file);
	if (changes_filesystem(cmd, named)) {
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
