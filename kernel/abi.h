/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the monitor and user space share. The Rust side takes these types from
 * the object's BTF; nothing is written down twice.
 */
#ifndef TIDEGATE_ABI_H
#define TIDEGATE_ABI_H

#define TG_LEVELS 16     /* levels a policy may have */
#define TG_CHUNK 52      /* bytes of a path component in one edge key */
#define TG_PATH 256      /* bytes of a path kept in a record, its end */
#define TG_DEPTH 128     /* components of a path looked at, from its root */
#define TG_HISTORY 65536 /* history records kept, a power of two */
/* for the images of two policies' profiles, and behind them of capability files */
#define TG_ARENA_PAGES 327680
#define TG_ARENA_HALF 536870912 /* bytes for one of the first */
/* where capability files' images are in the arena: behind both halves */
#define TG_CAPS_AT 1073741824
#define TG_CAPS_SIZE 268435456 /* bytes for all of them */
#define TG_RLIMITS 16          /* resources that have limits: RLIM_NLIMITS */

/* Attributes of a rule: crates/policy, Attrs. */
enum tg_attr {
	TG_CREATOR = 1,
	TG_LOWWRITE = 2,
	TG_LOWNOOPEN = 4,
	TG_NODEMOTE = 8,
	TG_NONETDEMOTE = 16,
	TG_PERMISSIVE = 32,
	TG_NEUTRAL = 64,
	TG_EXPLICIT = 128,
	TG_KERNEL = 256, /* made by the kernel: reading it is neutral; never in a rule */
};

/* One rule of the path-level map as the kernel holds it. */
struct tg_rule {
	u8 level;
	u8 pad;
	u16 attrs;
	u32 source; /* index into the bundle's rules, for `why` */
};

/* A node of the map's trie: its own rule, and what holds below it. */
struct tg_node {
	struct tg_rule own;
	struct tg_rule below;
	u32 star;  /* child for any component without an edge, 0: none */
	u32 edges; /* number of exact edges */
};

/*
 * An edge: (node, component) -> node. A component longer than TG_CHUNK is a
 * chain of edges, a chunk each; `more` is 1 on all but the last.
 */
struct tg_edge {
	u32 parent;
	u16 len;
	u16 more;
	char name[TG_CHUNK];
};

/* Longest-prefix key of a network; IPv4 is mapped into ::ffff:0:0/96. */
struct tg_net {
	u32 prefixlen;
	u8 addr[16];
};

/* An object whose level no path rule can give back. */
struct tg_given_key {
	u64 ino;
	u32 dev;
	u32 generation;
};

/* What becomes of a refusal. */
enum tg_refusals {
	TG_ENFORCED,
	TG_RECORDED,    /* permissive: recorded, and let through */
	TG_LET_THROUGH, /* at the start: those that run have no labels yet */
};

/* What is in force. Written by user space alone; `seqno` last. */
struct tg_policy {
	/* policy sequence number; 0: nothing loaded. Its lowest bit: which set of maps holds it */
	u32 seqno;
	u32 mnt_ns;     /* inode number of the initial mount namespace */
	u32 given_max;  /* room in the table of given levels */
	u8 top;         /* highest level */
	u8 permissive;  /* enum tg_refusals */
	u8 net_default; /* level of a network no line names */
	u8 net_highest; /* highest level of any network */
	u32 daemon;     /* pid of the audit daemon, 0: none */
};

enum tg_hook_class {
	TG_C_FILE,
	TG_C_DIR,
	TG_C_EXEC,
	TG_C_MMAP,
	TG_C_SOCKET,
	TG_C_UNIX,
	TG_C_IPC,
	TG_C_TASK,
	TG_C_SYSTEM,
	TG_C_TE,   /* every question to the `te` model */
	TG_C_CAPS, /* to the `capability` model */
	TG_C_COUNT,
};

/* Flask's Table 6: how each object manager's queries were resolved. */
struct tg_stats {
	u64 queries;
	u64 hint;   /* remembered in the object */
	u64 cache;  /* found in the table of given levels */
	u64 server; /* looked up in the map */
	u64 denied;
};

enum tg_event_kind {
	TG_E_DENIED = 1,
	TG_E_DEMOTED = 2,
	TG_E_STARTED = 3, /* a governed subject executed a program, and its label changed */
	TG_E_WOULD = 4,   /* permissive: would have been denied */
	TG_E_GUARD = 5,   /* a held demotion asks for the guard */
	TG_E_PROMOTED = 6,
	TG_E_TABLE_FULL = 7,
	TG_E_AUDITED = 8, /* allowed, and a profile's rule asks for a record */
};

enum tg_op {
	TG_OP_OPEN_READ = 1,
	TG_OP_OPEN_WRITE,
	TG_OP_EXEC,
	TG_OP_MMAP,
	TG_OP_RECEIVE_FD,
	TG_OP_CREATE,
	TG_OP_UNLINK,
	TG_OP_RENAME,
	TG_OP_LINK,
	TG_OP_SETATTR,
	TG_OP_XATTR,
	TG_OP_READLINK,
	TG_OP_WRITE_REVOKED,
	TG_OP_CONNECT,
	TG_OP_ACCEPT,
	TG_OP_RECEIVE,
	TG_OP_SEND,
	TG_OP_SOCKET,
	TG_OP_PIPE,
	TG_OP_IPC,
	TG_OP_SIGNAL,
	TG_OP_PTRACE,
	TG_OP_SCHED,
	TG_OP_TTY,
	TG_OP_MOUNT,
	TG_OP_MODULE,
	TG_OP_BPF,
	TG_OP_SYSTEM,
	TG_OP_KEY,
	TG_OP_START,
	TG_OP_LOCK,
	TG_OP_CAPABLE,
	TG_OP_GETATTR,
	TG_OP_USERNS,
	TG_OP_CHANGE_PROFILE,
	TG_OP_CHANGE_ONEXEC,
	TG_OP_CHANGE_HAT,
	TG_OP_READ_REVOKED,
};

/* Why a rule could not be applied as it stands; 0: the rule itself decided. */
enum tg_reason {
	TG_R_RULE = 0,
	TG_R_NO_LABEL,   /* no label could be found or stored */
	TG_R_MAPPING,    /* a shared writable mapping stands in the way */
	TG_R_BUSY,       /* the transaction could not be completed in time */
	TG_R_NOOPEN,     /* lownoopen */
	TG_R_LAUNDER,    /* a higher place for a lower object */
	TG_R_NO_CREATOR, /* no creator area */
	TG_R_TOP_ONLY,   /* the operation belongs to the top level */
	TG_R_TABLE_FULL,
	TG_R_ASYNC,        /* asynchronous I/O in flight */
	TG_R_CHANNEL,      /* fell with a channel it reads */
	TG_R_TREE,         /* a directory whose new place has other rules */
	TG_R_NAMES,        /* a lower place for one of several names */
	TG_R_PROFILE,      /* a profile's rules */
	TG_R_DISCONNECTED, /* a profile sees no path to it */
	TG_R_NO_PROFILE,   /* an execution leads to a profile that is not there */
	TG_R_SOURCE,       /* the source of a mount may have another name than its text */
	TG_R_TE,           /* the rules and constraints of a SELinux policy */
	TG_R_CAPS,         /* capability files */
	TG_R_TRUST,        /* a trusted program: its code, or who would act in its place */
};

/* What a profile does with what it does not allow: crates/policy/src/profile, Mode. */
enum tg_mode {
	TG_MODE_ENFORCE,
	TG_MODE_COMPLAIN,
	TG_MODE_KILL,
	TG_MODE_UNCONFINED,
	TG_MODE_USER,
};

/* A record: what happened, to whom, by what. Also a link of a history. */
struct tg_event {
	u64 id;    /* of this record, from 1 */
	u64 time;  /* ns of CLOCK_BOOTTIME */
	u64 prev;  /* id of the record that made the subject what it was, 0: none */
	u64 start; /* the subject's start time, ns of CLOCK_BOOTTIME */
	u64 ino;
	u32 dev;
	u32 seqno;
	u32 pid; /* thread group id */
	u32 tid;
	u32 uid;
	u32 source; /* rule: index into the bundle's rules, ~0: none */
	u32 peer;   /* the other process, if it was about one */
	u8 kind;    /* enum tg_event_kind */
	u8 op;      /* enum tg_op */
	u8 reason;  /* enum tg_reason */
	u8 class;   /* enum tg_hook_class */
	u8 from;    /* subject's level before */
	u8 to;      /* and after; for a denial the same */
	u8 object;  /* object's level */
	u8 family;  /* address family of addr, 0: none */
	u8 addr[16];
	u16 port;
	u16 path_len; /* bytes used in path; TG_PATH: cut at its start */
	u32 request;  /* of a profile or a SELinux policy: permissions asked for, */
	u32 denied;   /* and those of them that it does not allow */
	/* of a signal its number, as AppArmor counts them, of a socket its type, of a request its operation */
	u32 detail;
	u64 profile; /* its id, 0: it was not about a profile */
	u64 ssid;    /* who, */
	u64 tsid;    /* and to what, where a SELinux policy decided; */
	u64 session; /* of capability files, its number; 0: they did not decide */
	u32 tclass;  /* of this class, 0: none did; of capability files, their class */
	/* the subject of capability files that did not give it, 0: none is to be named; */
	u32 layer;
	u32 why; /* enum caps_why, 0: none decided */
	u32 pad;
	char comm[16];
	char path[TG_PATH];
};

/* A line of `tidegate ps`, written by the task iterator. */
struct tg_ps {
	u32 pid; /* thread group id */
	u32 tid; /* another one: only told of where it has rings */
	u32 ppid;
	u32 uid;
	u8 level;
	u8 attrs;
	u8 governed;
	u8 rings; /* io_uring may hold descriptors that no table shows */
	u32 caps; /* number of its domain under the `capability` model, 0: not governed */
	u64 start;
	u64 cause;
	u64 exe;      /* label of its program's file, 0: none */
	u64 sid;      /* of the `te` model, 0: not governed */
	u32 executed; /* that file was opened by an execution, and not named later (PR_SET_MM) */
	u32 pad;
	char comm[16];
};

#endif
