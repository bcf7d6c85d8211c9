/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The policy that user space puts in force, and the bounds that both sides share. The Rust side takes these types from
 * the object's BTF; nothing is written down twice.
 */
#ifndef TIDEGATE_ABI_POLICY_H
#define TIDEGATE_ABI_POLICY_H

#include "abi/types.h"

#define TG_LEVELS 16     /* levels a policy may have */
#define TG_CHUNK 52      /* bytes of a path component in one edge key */
#define TG_PATH 256      /* bytes of a path kept in a record, its end */
#define TG_DEPTH 128     /* components of a path looked at, from its root */
#define TG_OLDEST 16     /* of a filesystem's mounts remembered: its oldest */
#define TG_HISTORY 65536 /* history records kept, a power of two */
/* for the images of two policies' profiles, and behind them of capability files */
#define TG_ARENA_PAGES 327680
#define TG_ARENA_HALF 536870912 /* bytes for one of the first */
/* where capability files' images are in the arena: behind both halves */
#define TG_CAPS_AT 1073741824
#define TG_CAPS_SIZE 268435456 /* bytes for all of them */
#define TG_RLIMITS 16          /* resources that have limits: RLIM_NLIMITS */

/* Attributes of a rule: crates/bundle, Attrs. */
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

#endif
