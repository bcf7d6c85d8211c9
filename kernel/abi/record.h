/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a record says, and the counts of each object manager. The Rust side takes these types from the object's BTF. */
#ifndef TIDEGATE_ABI_RECORD_H
#define TIDEGATE_ABI_RECORD_H

#include "abi/policy.h"

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
	TG_R_NAMES,        /* a lower place for one of several names, or a given level */
	TG_R_PROFILE,      /* a profile's rules */
	TG_R_DISCONNECTED, /* a profile sees no path to it */
	TG_R_NO_PROFILE,   /* an execution leads to a profile that is not there */
	TG_R_SOURCE,       /* the source of a mount may have another name than its text */
	TG_R_TE,           /* the rules and constraints of a SELinux policy */
	TG_R_CAPS,         /* capability files */
	TG_R_TRUST,        /* a trusted program: its code, or a task that would act in its place */
};

/* What a profile does with what it does not allow: crates/bundle/src/profile, Mode. */
enum tg_mode {
	TG_MODE_ENFORCE,
	TG_MODE_COMPLAIN,
	TG_MODE_KILL,
	TG_MODE_UNCONFINED,
	TG_MODE_USER,
};

/* A record: an event, with its subject and its object. Also a link of a history. */
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
	u64 ssid;    /* the subject's SID, */
	u64 tsid;    /* and the object's, where a SELinux policy decided; */
	u64 session; /* of capability files, its number; 0: they did not decide */
	u32 tclass;  /* of this class, 0: none did; of capability files, their class */
	/* the subject of capability files that did not give it, 0: none is to be named; */
	u32 layer;
	u32 why;   /* enum caps_why, 0: none decided */
	u32 payer; /* whose account it is in (core/payer.h) */
	char comm[16];
	char path[TG_PATH];
};

#endif
