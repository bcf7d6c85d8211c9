/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps and the globals of `lomac`. */
#ifndef TIDEGATE_LOMAC_MAPS_H
#define TIDEGATE_LOMAC_MAPS_H

#include "abi/policy.h"
#include "lib/bpf.h"

/* An inode's label, remembered. One word, so that it is never torn. */
struct tg_inode {
	u64 word; /* see lomac/label.h */
	/* node of the map reached by its path, and in the upper half of which policy's */
	u64 place;
	u32 rule;     /* source of the rule that gave the level */
	u8 moving_to; /* the level it will have */
	u64 moving;   /* the name that a rename takes from it: not to be remembered by; 0: none */
	u64 mover;    /* the task that renames: see is_moving() */
};

struct {
	__uint(type, BPF_MAP_TYPE_INODE_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_inode);
} inodes SEC(".maps");

/* A reader's open of a FIFO that was let through. */
#define TG_FIFO_OPENS 8
struct tg_fifo_open {
	u64 file;
	u32 thread;
	u32 level; /* that it observes by, and 1; 0: no open */
};

/* A FIFO's readers: see lomac/demote/fifo.h. */
struct tg_fifo {
	struct tg_fifo_open opens[TG_FIFO_OPENS];
	u64 crowd[TG_LEVELS]; /* when one of this level last found no room among them */
	u32 highest;          /* of those that are not among them, and 1 */
};

struct {
	__uint(type, BPF_MAP_TYPE_INODE_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_fifo);
} fifos SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 18);
	__type(key, struct tg_given_key);
	__type(value, u32); /* level */
} given SEC(".maps");

/* Two slots each: the policy in force, and the one being loaded. */
struct tg_nodes {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tg_node);
} nodes_empty SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct tg_nodes);
} nodes SEC(".maps") = { .values = { &nodes_empty, &nodes_empty } };

struct tg_edges {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct tg_edge);
	__type(value, u32);
} edges_empty SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct tg_edges);
} edges SEC(".maps") = { .values = { &edges_empty, &edges_empty } };

struct tg_nets {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct tg_net);
	__type(value, u32);
} nets_empty SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct tg_nets);
} nets SEC(".maps") = { .values = { &nets_empty, &nets_empty } };

/* Channels of those who fall in the running transaction, or join one, by the address of what is read: see lomac/demote/channels.h. */
struct tg_channel {
	u64 tx;
	u32 maps;      /* shared mappings of it that the falling tasks have, */
	u32 maps_pass; /* counted in this pass */
	u32 pass;      /* an address space's: the pass that looked at it last */
	u8 maps_level; /* theirs */
	u8 lowest_writer;
	u8 seen;   /* somebody who reads it was met */
	u8 admits; /* a named socket's: lowest level that may write, 0xff: not looked up */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, u64);
	__type(value, struct tg_channel);
} channels SEC(".maps");

/* What was last found for a Unix socket: see lomac/unix.h. */
struct tg_sock {
	u32 epoch; /* with what had been raised */
	u32 seqno;
	u64 asked; /* for which level, with SPEAKS_AS_ROOT, and, above that, by which name of its file */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_sock);
} socks SEC(".maps");

/* A level, and in whose account (budget.h) the entry is: that of a user at a level. */
struct tg_charged {
	u32 level;
	u32 payer;
	u32 at;     /* the account's level */
	u32 serial; /* of a key, once it has been seen: see lomac/key.h; */
	u32 born;   /* and when it was made, in ticks, never 0; 0: it is no key */
};

/* System V IPC objects and keys that governed subjects made, by address. */
#define TG_OBJECTS (1 << 16)
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TG_OBJECTS);
	__type(key, u64);
	__type(value, struct tg_charged);
} kernel_objects SEC(".maps");

/*
 * The lowest level whose data a channel may still hold, though its writer is gone:
 * by the address of the inode (pipe, FIFO, shared memory) or of the Unix socket
 * that reads. No entry: the top level.
 */
#define TG_FLOORS (1 << 17)
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TG_FLOORS);
	__type(key, u64);
	__type(value, struct tg_charged);
} floors SEC(".maps");

u32 epoch;      /* steps when a level falls or a socket changes hands */
u64 given_used; /* entries in the table of given levels */

#endif
