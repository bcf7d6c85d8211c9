/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recorder's maps, and the globals user space sets. */
#ifndef TIDEGATE_RECORDER_MAPS_H
#define TIDEGATE_RECORDER_MAPS_H

#include "lib/bpf.h"
#include "abi/policy.h"
#include "abi/record.h"
#include "abi/recorder.h"

/* Room to walk a path in, and to write a line in. */
struct tg_scratch {
	u32 busy;
	u32 n;   /* components seen, from the object up */
	u32 at;  /* text written */
	u32 met; /* canonical_mount() */
	u64 oldest[TG_OLDEST];
	u64 up[TG_DEPTH];
	struct tr_line line;
	char text[2 * TR_PATH + 512]; /* behind the line, as it is sent */
};

#define TG_SCRATCHES 64
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TG_SCRATCHES);
	__type(key, u32);
	__type(value, struct tg_scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} lines SEC(".maps");

/* What a subject did to an object, and when that was told last. */
struct tr_key {
	struct tr_object object;
	u64 subject;
	u64 name; /* the name, or the address */
	u32 op;
	u32 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, struct tr_key);
	__type(value, u64);
} told SEC(".maps");

/* When a subject was last told to have observed something new: it may have fallen by it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, u64);
	__type(value, u64);
} observed SEC(".maps");

/* The processes that are recorded, where not all are; by thread group. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, u32);
	__type(value, u8);
} followed SEC(".maps");

/* A creation that was let through, until its inode is there; by thread. */
struct tr_creation {
	u64 dentry;
	u64 parent;
	u32 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, u64);
	__type(value, struct tr_creation);
} creating SEC(".maps");

/* Unix connections whose end is to be told. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, u64);
	__type(value, u8);
} connections SEC(".maps");

/* Written by user space before anything is attached. */
struct tr_policy {
	u32 mnt_ns;   /* inode number of the initial mount namespace */
	u32 recorder; /* the process, which is not recorded */
	u8 follow;    /* only the recorder's own descendants are */
	u8 all;       /* every access, told before or not */
};

struct tr_policy policy;
u64 seen;        /* accesses */
u64 lines_lost;  /* lines the ring buffer had no room for, or that no room was found to write in */
u64 follow_lost; /* processes that should have been followed, but found no room */

#endif
