/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What kind of thing an inode is, as far as that decides about its label before any
 * map is asked: neutral, the kernel's own, foreign, in memory.
 */
#ifndef TIDEGATE_LIB_INODE_KIND_H
#define TIDEGATE_LIB_INODE_KIND_H

#include "lib/bpf.h"
#include "lib/verifier.h"

#define TMPFS_MAGIC 0x01021994
#define RAMFS_MAGIC 0x858458f6
#define HUGETLBFS_MAGIC 0x958458f6
#define MQUEUE_MAGIC 0x19800202
#define DEVPTS_MAGIC 0x1cd1
#define PROC_MAGIC 0x9fa0
#define SYSFS_MAGIC 0x62656572
#define CGROUP_MAGIC 0x27e0eb
#define CGROUP2_MAGIC 0x63677270
#define BPF_MAGIC 0xcafe4a11
#define TRACEFS_MAGIC 0x74726163
#define DEBUGFS_MAGIC 0x64626720
#define SECURITYFS_MAGIC 0x73636673
#define CONFIGFS_MAGIC 0x62656570
#define EFIVARFS_MAGIC 0xde5e81e4
#define PSTORE_MAGIC 0x6165676c
#define APPARMORFS_MAGIC 0x5a3c69f0
#define SELINUX_MAGIC 0xf97cff8c
#define SMACK_MAGIC 0x43415d53
#define BINFMTFS_MAGIC 0x42494e4d
#define FUSECTL_MAGIC 0x65735543
#define AUTOFS_MAGIC 0x0187
#define NFSD_MAGIC 0x6e667364
#define RPC_PIPEFS_MAGIC 0x67596969
#define RESCTRL_MAGIC 0x07655821
#define XENFS_MAGIC 0xabba1974
#define SOCKFS_MAGIC 0x534f434b
#define PIPEFS_MAGIC 0x50495045
#define ANON_INODE_MAGIC 0x09041934
#define NSFS_MAGIC 0x6e736673
#define PIDFS_MAGIC 0x50494446
#define OVERLAYFS_MAGIC 0x794c7630
#define SECRETMEM_MAGIC 0x5345434d
#define DMA_BUF_MAGIC 0x444d4142
#define FUSE_MAGIC 0x65735546
#define NFS_MAGIC 0x6969
#define SMB_MAGIC 0xfe534d42
#define CIFS_MAGIC 0xff534d42
#define V9FS_MAGIC 0x01021997
#define CEPH_MAGIC 0x00c36400
#define AFS_MAGIC 0x6b414653     /* the kernel's own, */
#define OPENAFS_MAGIC 0x5346414f /* and that of a module */
#define CODA_MAGIC 0x73757245
#define ORANGEFS_MAGIC 0x20030528
#define LUSTRE_MAGIC 0x0bd00bd0
#define VBOXSF_MAGIC 0x786f4256
#define GFS2_MAGIC 0x01161970 /* these two are disks that other machines write to, too */
#define OCFS2_MAGIC 0x7461636f

/*
 * Objects with rules of their own elsewhere (sockets, pipes), kernel handles,
 * and overlays, whose files and directories are opened and changed a second time behind them (overlay.h).
 */
static __always_inline bool fs_is_neutral(u64 magic)
{
	switch (magic) {
	case SOCKFS_MAGIC:
	case PIPEFS_MAGIC:
	case ANON_INODE_MAGIC:
	case NSFS_MAGIC:
	case PIDFS_MAGIC:
	case DEVPTS_MAGIC:
	case OVERLAYFS_MAGIC:
	case DMA_BUF_MAGIC:
		return true;
	}
	return false;
}

/* Written by the kernel: reading tells nothing that a low subject wrote. */
static __always_inline bool fs_is_kernel(u64 magic)
{
	switch (magic) {
	case PROC_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_MAGIC:
	case CGROUP2_MAGIC:
	case BPF_MAGIC:
	case TRACEFS_MAGIC:
	case DEBUGFS_MAGIC:
	case SECURITYFS_MAGIC:
	case CONFIGFS_MAGIC:
	case EFIVARFS_MAGIC:
	case PSTORE_MAGIC:
	case APPARMORFS_MAGIC:
	case SELINUX_MAGIC:
	case SMACK_MAGIC:
	case BINFMTFS_MAGIC:
	case FUSECTL_MAGIC:
	case AUTOFS_MAGIC:
	case NFSD_MAGIC:
	case RPC_PIPEFS_MAGIC:
	case RESCTRL_MAGIC:
	case XENFS_MAGIC:
		return true;
	}
	return false;
}

/* Its content is whatever somebody outside this kernel says. */
static __always_inline bool fs_is_foreign(u64 magic)
{
	switch (magic) {
	case FUSE_MAGIC:
	case NFS_MAGIC:
	case SMB_MAGIC:
	case CIFS_MAGIC:
	case V9FS_MAGIC:
	case CEPH_MAGIC:
	case AFS_MAGIC:
	case OPENAFS_MAGIC:
	case CODA_MAGIC:
	case ORANGEFS_MAGIC:
	case LUSTRE_MAGIC:
	case VBOXSF_MAGIC:
	case GFS2_MAGIC:
	case OCFS2_MAGIC:
		return true;
	}
	return false;
}

static __always_inline bool fs_is_memory(u64 magic)
{
	return magic == TMPFS_MAGIC || magic == RAMFS_MAGIC || magic == HUGETLBFS_MAGIC ||
	       magic == MQUEUE_MAGIC;
}

/* null, zero, full, random, urandom; terminals: consoles, serial lines, hvc, pty slaves. */
static __always_inline bool device_is_neutral(u32 rdev)
{
	u32 major = rdev >> 20, minor = rdev & 0xfffff;

	if (major == 1)
		return minor == 3 || minor == 5 || minor == 7 || minor == 8 || minor == 9;
	if (major == 5)
		return minor <= 3;
	return major == 4 || major == 229 || (major >= 136 && major <= 143);
}

/*
 * Cameras, sound and graphics (of nvidia, too): buffers belong to the open description, and each of its holders maps
 * them.
 */
static __always_inline bool device_has_buffers(u32 rdev)
{
	u32 major = rdev >> 20;

	return major == 81 || major == 116 || major == 195 || major == 226;
}

/* The end of a pty that its slave hears: /dev/ptmx, and `ptmx` of any devpts. */
static __always_inline bool device_is_master(u32 rdev)
{
	return rdev == (5 << 20 | 2);
}

/* /dev/console, whatever terminal that is. */
static __always_inline bool device_is_console(u32 rdev)
{
	return rdev == (5 << 20 | 1);
}

/* Has the inode one of the states: being made now; unnamed, but may get a name? */
static __always_inline bool inode_state(struct inode *inode, bool linkable)
{
	if (bpf_core_field_exists(((struct inode___7_0 *)0)->i_state.__state))
		return ((struct inode___7_0 *)inode)->i_state.__state &
		       (linkable ? I_LINKABLE : I_NEW | I_CREATING);
	if (bpf_core_field_exists(((struct inode___6_18 *)0)->i_state))
		return ((struct inode___6_18 *)inode)->i_state &
		       (linkable ? I_LINKABLE : I_NEW | I_CREATING);
	return ((struct inode___6_12 *)inode)->i_state &
	       (linkable ? I_LINKABLE_6_12 : I_NEW | I_CREATING_6_12);
}

/* What kind of filesystem an inode is on. */
static __always_inline u64 fs_magic(struct inode *inode)
{
	return UNTRUSTED(inode)->i_sb->s_magic;
}

/*
 * Memory that descriptors and mappings share and no path names: memfd, System V
 * shared memory, shared anonymous mappings, unlinked tmpfs files. A channel. Not
 * O_TMPFILE's: that can get a name, so it is a file with a level.
 */
static __always_inline bool inode_is_memory(struct inode *inode)
{
	u64 magic = fs_magic(inode);

	if (inode->i_nlink)
		return magic == SECRETMEM_MAGIC;
	return (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC || magic == SECRETMEM_MAGIC) &&
	       (inode->i_mode & S_IFMT) == S_IFREG && !inode_state(inode, true);
}

/*
 * Was the file opened by an execution? The flag alone does not say so: mq_open(2) and TIOCGPTPEER take any flag of their
 * callers. No program is a queue, a device or open for writing.
 */
static __always_inline bool opened_to_execute(struct file *file)
{
	struct inode *inode = CAST(struct inode, address(file->f_inode));

	return file->f_flags & FMODE_EXEC_FLAG && !(file->f_mode & FMODE_WRITE) &&
	       (inode->i_mode & S_IFMT) == S_IFREG && fs_magic(inode) != MQUEUE_MAGIC;
}

/* A message that is received from a POSIX queue is gone: to read there is to write. */
static __always_inline u32 mode_bound(struct inode *inode, u32 mode)
{
	return mode & FMODE_READ && fs_magic(inode) == MQUEUE_MAGIC ? mode | FMODE_WRITE : mode;
}

/*
 * Is the inode being made just now? A creation that failed leaves its note behind;
 * it must not lower an old object that is merely looked up. Where the filesystem
 * evicts inodes it also marks the new ones.
 */
static __always_inline bool inode_is_new(struct inode *inode)
{
	u64 magic = fs_magic(inode);

	if (fs_is_memory(magic))
		return true;
	return inode_state(inode, false);
}

static __always_inline bool is_directory(struct dentry *d)
{
	struct inode *inode = d->d_inode;

	return inode && (inode->i_mode & S_IFMT) == S_IFDIR;
}

/* What has no name anywhere, and its maker's label: anon_inode_make_secure_inode() */
static __always_inline bool fs_is_anonymous(u64 magic)
{
	return magic == ANON_INODE_MAGIC || magic == SECRETMEM_MAGIC;
}

#endif
