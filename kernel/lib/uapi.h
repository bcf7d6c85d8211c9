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
#define AF_UNSPEC 0
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
#define F_UNLCK 2
#define RENAME_EXCHANGE_FLAG 2
#define SB_NOUSER (1ul << 31)
#define MNT_INTERNAL 0x4000
#define LSM_UNSAFE_SHARE 1
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
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFLNK 0120000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFDIR 0040000
#define S_IFCHR 0020000
#define S_IFIFO 0010000
#define TASK_RUNNING 0
#define TASK_INTERRUPTIBLE 1
#define TASK_STOPPED 4 /* __TASK_STOPPED */
#define TASK_TRACED 8  /* __TASK_TRACED */
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
#define PF_USER_WORKER 0x00004000
#define PF_KTHREAD 0x00200000
/* linux/fcntl.h */
#define F_DUPFD 0
#define F_DUPFD_CLOEXEC 1030
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
#define CLOSE_RANGE_UNSHARE 2

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
#define EDESTADDRREQ 89
#define EOPNOTSUPP 95
#define EAFNOSUPPORT 97
#define EISCONN 106
#define ENOTCONN 107
#define ESTALE 116
#define ECONNREFUSED 111
#define EALREADY 114
#define ENAMETOOLONG 36

/* ioctl(2): linux/fs.h, asm-generic/ioctls.h, linux/kd.h, linux/vt.h, and of filesystems */
#define TIOCSTI 0x5412
#define TCXONC 0x540a
#define TIOCEXCL 0x540c
#define TIOCLINUX 0x541c
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
#define F2FS_MOVE_RANGE 9 /* its number among those; in a 32-bit call its argument is shorter */
#define IOC_WRITE (1u << 30)
#define EXT4_IOC_MOVE_EXT 0xc028660f
#define EXT4_IOC_MIGRATE 0x6609
#define PAGEMAP_SCAN 0x6610 /* of a size that may grow */
#define FS_IOC_REMOVE_ENCRYPTION_KEY 0xc0406618
#define KDSKBDIACR 0x4b4b
#define KDSKBDIACRUC 0x4bfb
#define KDSIGACCEPT 0x4b4e
#define TIOCSETD 0x5423
#define TIOCSIG 0x40045436
#define KDSETMODE 0x4b3a
#define KD_GRAPHICS 1
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
#define FIBMAP 1
#define FIGETBSZ 2
#define FIONREAD 0x541b
#define FIONCLEX 0x5450
#define FIOCLEX 0x5451
#define FS_IOC_GETFLAGS 0x80086601
#define FS_IOC_GETVERSION 0x80087601
#define FS_IOC32_GETFLAGS 0x80046601
#define FS_IOC32_GETVERSION 0x80047601
#define KDSKBENT 0x4b47
#define KDSKBSENT 0x4b49

/* open(2), fcntl(2): linux/fcntl.h */
#define O_EXCL_FLAG 0200
#define FMODE_EXEC_FLAG 0x20 /* __FMODE_EXEC in f_flags: opened to be executed */
#define FASYNC 020000
#define F_SETSIG 10
#define F_SETLEASE 1024
#define F_NOTIFY 1026
#define F_SETPIPE_SZ 1031
#define F_SET_RW_HINT 1036
#define F_SETDELEG 1040
#define DN_MULTISHOT 0x80000000
#define O_NONBLOCK 04000
#define O_NOATIME 01000000
#define F_GETFL 3
#define F_GETLK 5
#define F_SETLKW 7
#define F_GETOWN 9
#define F_GETSIG 11
#define F_GETOWNER_UIDS 17
#define F_OFD_GETLK 36
#define F_OFD_SETLKW 38

/* a file's permissions and attributes: linux/fs.h */
#define MAY_WRITE 2
#define MAY_APPEND 8
#define ATTR_MODE (1 << 0)
#define ATTR_SIZE (1 << 3)
#define ATTR_FORCE (1 << 9)
#define ATTR_KILL_SUID (1 << 11)
#define ATTR_KILL_SGID (1 << 12)
#define ATTR_FILE (1 << 13)
/* mode, user, group, times that are given, and what utimes(2) and touch(1) set */
#define ATTR_SET (ATTR_MODE | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 16)
#define MAY_EXEC_MASK 1
#define MAY_WRITE_MASK 2
#define MAY_READ_MASK 4
#define MAY_APPEND_MASK 8
#define MAY_OPEN_MASK 0x20
#define MAY_READ 4

/* mmap(2), mount(2) */
#define PROT_READ 1
#define PROT_EXEC 4
#define MAP_TYPE 0xf
#define MAP_PRIVATE 2
#define MAP_DENYWRITE 0x800
#define MNT_NOSUID_FLAG 1

/* sockets: linux/socket.h, linux/in.h, linux/in6.h, linux/sctp.h, linux/netlink.h */
#define IPPROTO_IPV6 41
#define IP_OPTIONS 4
#define IP_RETOPTS 7
#define IPV6_2292RTHDR 5
#define IPV6_2292PKTOPTIONS 6
#define IPV6_FLOWLABEL_MGR 32
#define IPV6_RTHDR 57
#define SCM_RIGHTS 1
#define NETLINK_CONNECTOR 11
#define NETLINK_KOBJECT_UEVENT 15
#define MSG_MORE 0x8000
#define MSG_FASTOPEN 0x20000000
#define TCP_ZEROCOPY_RECEIVE 35
#define SOCK_BINDPORT_LOCK 8
#define SOCK_RAW 3
#define IPPROTO_ICMP 1
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_ICMPV6 58
#define IPPROTO_UDPLITE 136
#define IPPROTO_MPTCP 262
#define AF_KEY 15
#define AF_NETLINK 16
#define AF_PACKET 17
#define AF_BLUETOOTH 31
#define BTPROTO_HCI 1
#define AF_ALG 38
#define AF_VSOCK 40
#define AF_SMC 43
#define AF_XDP 44
#define IPPROTO_IP 0
#define IPPROTO_SCTP 132
#define IP_PKTINFO 8
#define IPV6_2292PKTINFO 2
#define IPV6_PKTINFO 50
#define SCTP_SET_PEER_PRIMARY_ADDR 5
#define SCTP_PRIMARY_ADDR 6
#define SCTP_SOCKOPT_BINDX_ADD 100
#define SOL_SOCKET 1
#define SO_ATTACH_REUSEPORT_CBPF 51
#define SO_ATTACH_REUSEPORT_EBPF 52
#define SO_DETACH_REUSEPORT_BPF 68

/* System V IPC, keys: linux/ipc.h, linux/shm.h, linux/sem.h, linux/key.h, linux/keyctl.h */
#define IPC_SET 1
#define SHM_LOCK 11
#define SHM_UNLOCK 12
#define SETVAL 16
#define SETALL 17
#define KEY_NEED_READ 2
#define KEY_NEED_WRITE 3
#define KEY_NEED_SEARCH 4
#define KEY_NEED_SETATTR 6
#define KEYCTL_READ 11
#define KEYCTL_SESSION_TO_PARENT 18
#define KEYCTL_INVALIDATE 21
#define IPC_RMID 0
#define IPC_STAT 2
#define IPC_INFO 3
#define SHM_RDONLY 010000

/* tasks: linux/sched.h, linux/ptrace.h, linux/prctl.h, linux/signal.h, linux/security.h, linux/capability.h */
#define CAP_OPT_NOAUDIT 2
#define CLONE_INTO_CGROUP 0x200000000ull
#define PR_SET_MM 35
#define PR_SET_MM_EXE_FILE 13
#define PR_SET_MM_MAP 14 /* with a file, or without: it is in the caller's memory, and may change */
#define PR_SCHED_CORE 62
#define PR_SCHED_CORE_GET 0
#define PR_SCHED_CORE_PROCESS_GROUP 2
#define PTRACE_MODE_ATTACH 2
#define LSM_PRLIMIT_WRITE 2
#define CAP_SETUID 7
#define CAP_SYS_ADMIN 21
#define LSM_ID_UNDEF 0 /* attr/current, of whatever module is the first */
#define LSM_ID_APPARMOR 104
#define PTRACE_MODE_READ_FLAG 1
#define BPF_OBJ_GET_CMD 7
#define BPF_PROG_BY_ID_CMD 13
#define BPF_MAP_BY_ID_CMD 14
#define BPF_LINK_BY_ID_CMD 30
#define LSM_ID_SELINUX 101
#define SIGKILL_NUMBER 9
#define SIGCHLD_NUMBER 17
#define SIGSTOP_NUMBER 19
#define LSM_PRLIMIT_READ 1

#endif
