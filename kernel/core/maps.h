/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps and the globals that all models share. */
#ifndef TIDEGATE_CORE_MAPS_H
#define TIDEGATE_CORE_MAPS_H

#include "abi/record.h"
#include "lib/bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TG_HISTORY);
	__type(key, u32);
	__type(value, struct tg_event);
} history SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TG_C_COUNT);
	__type(key, u32);
	__type(value, struct tg_stats);
} stats SEC(".maps");

/*
 * A task's part of its subject's label. Tasks that share memory or a
 * descriptor table form one subject; the demotion transaction keeps their
 * labels equal. No entry: the top level, ungoverned.
 */
struct tg_subject {
	u64 cause;   /* newest history record */
	u64 tx;      /* the transaction that wants it to fall, and */
	u8 tx_level; /* how far */
	u8 tx_old;   /* from where */
	u8 level;
	/* while that may be put back: the level it was, and 1; in one word with it */
	u8 from;
	u8 attrs; /* NODEMOTE, NONETDEMOTE, PERMISSIVE of its program */
	/* for the transaction's lock, or lomac/demote/pipeline.h's; what it does is decided after that */
	u8 waits;
	u8 creating;   /* level + 1 of an object being created, 0: none */
	u8 exec_level; /* lowest of the files of the exec under way */
	/* of what is behind an overlay, opened to be executed: its level + 1, 0: none */
	u8 exec_behind;
	u8 exec_attrs;     /* trusted attributes of the program asked for */
	u8 exec_named;     /* it was asked for by its own path */
	u8 create_gives;   /* its path alone would not give it that level */
	u32 settled;       /* seen at rest by this transaction */
	u64 create_dentry; /* the name being made, and its directory */
	u64 create_parent;
	struct tg_given_key created; /* the object just created, for the open that follows */
	u64 created_at;
	u8 created_level;
	u8 create_opens; /* the name is made by an open, which follows */
	u64 labelled_tx; /* the first transaction that has looked at that */
	u8 labelled;     /* user space has given it its level: what it shares may not fit yet */
	u8 opened; /* its memory has been opened (/proc/PID/mem): see lomac/demote/references.h */
	/* the child that it last began to have, if that was to get a copy of a table that others had, too; 0: none */
	u64 bears;
	u64 joins; /* a descriptor that it is about to receive, while it waits for the levels to fit */
	u64 hand; /* a file that its call has in hand, or that one had before: see lomac/demote/hand.h; */
	u64 hand_inode; /* its inode's number, */
	s32 hand_call;  /* and the number of that call */
	/* the number (held.h) as of which it holds nothing revoked, or MAY_HOLD and why; 0: what its slot says */
	u32 clear;
	u32 look_clear; /* as a look at its table began; */
	u64 look_off;   /* and since when it had no processor: task_off() */
	u64 tx_off;     /* the same as a transaction looked at it */
	u32 waited;     /* how often it has begun to wait: see `waits` */
	u32 received; /* the same number as it was last asked about what it receives; MAY_HOLD: not known; 0: never */
	u32 payer; /* the user who is charged, whatever its user is by now, and 1; 0: its user (core/payer.h) */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_subject);
} subjects SEC(".maps");

/* A mount; the address may be another's later, the number never is. */
struct tg_old_mount {
	u64 mount;
	u64 id;
};

/* A filesystem's oldest mounts in the initial namespace, the oldest first; fewer end with a mount of 0. */
struct tg_root {
	struct tg_old_mount oldest[TG_OLDEST];
};

/* Room to walk a path in, claimed for the walk: a stack has 512 bytes only. */
struct tg_scratch {
	u32 busy;
	u32 n;     /* components seen, from the object up */
	u32 len;   /* of the component looked at */
	u32 node;  /* of the trie, come so far */
	u32 off;   /* text written, or counted */
	u32 first; /* components that find room in the text */
	u32 met;   /* mounts of the initial namespace that a search has met, */
	bool is_to_remember;
	u64 super;             /* of this filesystem, */
	u64 oldest[TG_OLDEST]; /* the last ones, by turns: canonical_mount() */
	struct tg_root root;   /* and as they are remembered */
	u64 up[TG_DEPTH];
	char text[2 * TG_PATH + 1];
	struct tg_edge key;
};

#define TG_SCRATCHES 256
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TG_SCRATCHES);
	__type(key, u32);
	__type(value, struct tg_scratch);
} scratches SEC(".maps");

/*
 * The mounts that a filesystem's paths go through, by the filesystem's address: to find them
 * takes a look at every mount of it, of which anybody makes as many as he likes.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 10);
	__type(key, u64);
	__type(value, struct tg_root);
} roots SEC(".maps");

/* Denials that a user has in the ring, at a level: see record.h. */
#define TG_RECORD_USERS 1024
struct tg_record_share {
	u32 round;
	u32 records;
} record_shares[TG_LEVELS * TG_RECORD_USERS];

struct tg_policy policy;
u64 records;       /* history records written */
u64 events_lost;   /* records the ring buffer had no room for */
u64 events_taken;  /* by daemons, which write this and the next: records that reached one, */
u64 events_told;   /* and records that the log has or counts */
u32 given_closed;  /* set by user space: they have been written down for the last time */
u64 labels_failed; /* objects whose label could not be stored */

#endif
