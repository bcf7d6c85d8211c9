/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the recorder and user space share, whose types come from the object's BTF. */
#ifndef TIDEGATE_ABI_RECORDER_H
#define TIDEGATE_ABI_RECORDER_H

#include "abi/types.h"

#define TR_PATH 4096 /* bytes of a path; what is longer is cut at its end */
#define TR_ENDS 128  /* ends of channels told of one task */

/* What a line tells. */
enum tr_what {
	TR_ACCESS = 1,  /* an operation, `op`, on an object */
	TR_HELD = 2,    /* held when recording began */
	TR_PROCESS = 3, /* there when recording began; its program's file */
	TR_FORK = 4,    /* `peer` was born */
	TR_STARTED = 5, /* the exec has succeeded */
	TR_EXIT = 6,
	TR_CHANNELS = 7, /* the ends of channels that `pid` has now */
	TR_CLOSED = 8,   /* the connection `channel` has ended */
};

/* What is known of the object or the operation. */
enum tr_flag {
	TR_READS = 1 << 0,
	TR_WRITES = 1 << 1,
	TR_NEUTRAL = 1 << 2, /* its kind neither demotes nor refuses */
	TR_KERNEL = 1 << 3,  /* made by the kernel: procfs, sysfs, ... */
	/* FUSE and network filesystems; the other path is their mount point */
	TR_FOREIGN = 1 << 4,
	TR_MEMORY = 1 << 5,    /* of a filesystem in memory */
	TR_UNNAMED = 1 << 6,   /* memory that no path names */
	TR_UNMOUNTED = 1 << 7, /* not mounted in the initial namespace */
	TR_UNKNOWN = 1 << 8,   /* its path cannot be known */
	TR_CUT = 1 << 9,       /* its path is longer than kept */
	TR_PROC = 1 << 10,     /* in /proc/PID, of `peer` */
	TR_OPEN = 1 << 11,     /* somebody has it open */
	TR_FIRST = 1 << 12,    /* of an exec: the file asked for, not an interpreter */
	TR_TMPFILE = 1 << 13,  /* made without a name */
	TR_SHARES = 1 << 14,   /* of a fork: memory or descriptors are shared */
	TR_SERVER = 1 << 15,   /* bound to an address of this machine's own network, `bound` */
	TR_DEVICE = 1 << 16,   /* creation of a device */
	TR_PRIVATE = 1 << 17,  /* a System V segment */
	TR_REPLACED = 1 << 18, /* a rename takes the place of `over` */
	TR_LAST = 1 << 19,     /* which has no other name */
	TR_APPENDS = 1 << 20,  /* opened to be written at its end only */
	TR_EXECUTES = 1 << 21, /* mapped to be executed */
	TR_CONTENT = 1 << 22,  /* of a change of attributes: by what it holds, as its length */
	TR_CONTROL = 1 << 23,  /* of the same: an ioctl */
};

struct tr_object {
	u64 ino;
	u32 dev;
	u32 generation;
};

/* A line; `path_len` and `other_len` bytes of paths, or `ends` of channels, follow it. */
struct tr_line {
	u64 time;    /* ns of CLOCK_BOOTTIME */
	u64 start;   /* the process's start time, the same */
	u64 channel; /* a Unix connection's number */
	struct tr_object object;
	struct tr_object over;      /* what a rename replaces */
	struct tr_object dir;       /* of a change of names: the directory, */
	struct tr_object other_dir; /* and the other one */
	u32 links;                  /* names the object has */
	u32 pid;                    /* thread group id */
	u32 tid;
	u32 uid;
	u32 peer;    /* another process */
	u32 flags;   /* enum tr_flag */
	s32 refused; /* errno, negative, that it ended with; 0: let through */
	u16 type;    /* i_mode & S_IFMT */
	u16 port;    /* of a signal: its number */
	u16 path_len;
	u16 other_len;
	u16 ends;
	u8 what;  /* enum tr_what */
	u8 op;    /* enum tg_op */
	u8 class; /* enum tg_hook_class */
	u8 family;
	u8 sock_type;
	u8 pad[5];
	u8 addr[16];  /* where to, or whence; IPv4 in ::ffff:0:0/96 */
	u8 bound[16]; /* own address */
	char comm[16];
};

/* An end of a channel: a pipe, a FIFO, or a Unix socket and the one it is connected to. */
struct tr_end {
	u64 ino;
	u64 peer;
	u32 dev;
	u32 flags; /* TR_READS, TR_WRITES */
};

#endif
