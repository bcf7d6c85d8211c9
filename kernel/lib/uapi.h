/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Constants of the kernel and of its interface to user space. */
#ifndef TIDEGATE_LIB_UAPI_H
#define TIDEGATE_LIB_UAPI_H

/* From the kernel's own headers; unchanged for decades unless said. */
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_SEQPACKET 5
#define SHUTDOWN_BOTH 3
#define RCV_SHUTDOWN 1
#define MSG_OOB 0x1
#define MSG_PEEK 0x2
#define MSG_SPLICE_PAGES 0x8000000
#define ITER_UBUF 0
#define ITER_IOVEC 1
#define ITER_BVEC 2
#define TCP_SYN_SENT 2
#define TCP_CLOSE 7
#define TCP_LISTEN 10
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define I_NEW (1 << 0)
#define I_LINKABLE (1 << 11)
#define I_CREATING (1 << 15)
/* As an integer, the values were others. */
#define I_LINKABLE_6_12 (1 << 10)
#define I_CREATING_6_12 (1 << 14)
#define PROT_READ_FLAG 1
#define PROT_WRITE_FLAG 2
#define MAP_TYPE_SHARED 1 /* MAP_SHARED and MAP_SHARED_VALIDATE, not MAP_PRIVATE */
#define F_SETFL 4
#define ENOENT 2
/* PER_CLEAR_ON_SETID: no address randomization, the old layout, data executable, page zero */
#define PERSONALITY_UNSAFE 0x0740000u
#define PROT_EXEC_FLAG 4
#define F_WRLCK 1
#define RENAME_EXCHANGE_FLAG 2
#define SB_NOUSER (1ul << 31)
#define MNT_INTERNAL 0x4000
#define LSM_UNSAFE_PTRACE 2
#define LSM_UNSAFE_NO_NEW_PRIVS 4
#define O_CREAT 0100
#define O_TRUNC 01000
#define O_APPEND 02000
#define O_TMPFILE_FLAG 020000000      /* __O_TMPFILE */
#define FMODE_CREATED_FLAG (1u << 20) /* in f_mode: this open has created it */
#define FS_REQUIRES_DEV 1
#define FS_BINARY_MOUNTDATA 2
#define MS_REMOUNT (1ul << 5)
#define MS_BIND (1ul << 12)
#define MS_MOVE (1ul << 13)
#define MS_REC (1ul << 14)
#define MS_SILENT (1ul << 15)
#define MS_PROPAGATION (0xful << 17) /* MS_UNBINDABLE, MS_PRIVATE, MS_SLAVE, MS_SHARED */
/* AA_MS_IGNORE_MASK: MS_KERNMOUNT, MS_NOSEC, MS_BORN, MS_ACTIVE */
#define MS_IGNORED (1ul << 22 | 7ul << 28)
#define MS_MGC_VAL 0xc0ed0000ul
#define MS_MGC_MSK 0xffff0000ul
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFLNK 0120000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFDIR 0040000
#define S_IFCHR 0020000
#define S_IFIFO 0010000
#define TASK_INTERRUPTIBLE 1
#define TASK_STOPPED 4 /* __TASK_STOPPED */
#define TASK_TRACED 8  /* __TASK_TRACED */
#define TS_COMPAT 2    /* in a 32-bit call */
#define PTRACE_EVENT_STOP 128
#define PIDTYPE_SID 3
#define S_PRIVATE (1 << 9)
#define S_CASEFOLD (1 << 15)
#define DCACHE_OP_COMPARE_FLAG 2u
#define SB_KERNMOUNT (1 << 22)
#define PF_EXITING 0x00000004
#define SIGNAL_GROUP_EXIT 0x00000004 /* in signal->flags */
#define PF_DUMPCORE 0x00000200
#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000
/* linux/fcntl.h */
#define F_SETOWN 8
#define F_SETOWN_EX 15
#define VM_READ 0x00000001
#define VM_WRITE 0x00000002
#define VM_EXEC 0x00000004
#define VM_SHARED 0x00000008
#define VM_MAYWRITE 0x00000020
#define FMODE_READ 1u
#define FMODE_WRITE 2u
#define FMODE_PATH 0x4000u
#define FMODE_OPENED (1u << 19)
#define FMODE_STREAM (1u << 21)
#define CLONE_VM 0x00000100
#define CLONE_FILES 0x00000400

#define PFA_NO_NEW_PRIVS_BIT 1ul /* in task->atomic_flags */

#define EPERM 1
#define EIO 5
#define ECHILD 10
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define ESRCH 3
#define E2BIG 7
#define EBUSY 16
#define EXDEV 18
#define EINVAL 22
#define ENOSPC 28
#define EPROTO 71
#define EOPNOTSUPP 95
#define EAFNOSUPPORT 97
#define EISCONN 106
#define ENOTCONN 107
#define ECONNREFUSED 111
#define ENAMETOOLONG 36

#endif
