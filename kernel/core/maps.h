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

/* A mount; the address may be another's later, the number never is. */
struct tg_root {
	u64 mount;
	u64 id;
};

/* Room to walk a path in, claimed for the walk: a stack has 512 bytes only. */
struct tg_scratch {
	u32 busy;
	u32 n;     /* components seen, from the object up */
	u32 len;   /* of the component looked at */
	u32 node;  /* of the trie, come so far */
	u32 off;   /* text written, or counted */
	u32 first; /* components that find room in the text */
	u64 super; /* filesystem whose mount is looked for, */
	/* and what a search found; no mount: it was remembered, or there is none */
	struct tg_root root;
	u64 oldest; /* and the oldest mount of that filesystem in the initial namespace */
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
 * The mount that a filesystem's paths go through, by the filesystem's address: to find it
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
