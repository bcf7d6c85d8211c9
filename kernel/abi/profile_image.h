/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A policy's profiles as the kernel reads them: an image in an arena, which user space
 * writes (crates/monitor/src/image.rs). Where it refers to a part of itself it holds the
 * part's offset in the arena, 0: none. Nothing in it is a pointer, and what lies beyond
 * it reads as zeros, so that a walk through it can go wrong only by refusing.
 */
#ifndef TIDEGATE_ABI_PROFILE_IMAGE_H
#define TIDEGATE_ABI_PROFILE_IMAGE_H

#include "abi/types.h"

/* What a state allows: crates/bundle/src/profile/perms.rs, Perms. */
struct tg_perms {
	u32 allow;
	u32 deny;
	u32 audit;
	u32 quiet;
	u32 exec;
};

struct tg_pair {
	struct tg_perms owner;
	struct tg_perms other;
	u32 plain; /* allowed to both, and neither denied nor recorded */
};

/* An automaton. State 0 leads nowhere but to itself, and allows nothing. */
struct tg_table {
	u32 width;
	u32 next;    /* u16 of each state and class of bytes */
	u32 accepts; /* u16 of each state: which of the pairs */
	u32 pairs;   /* struct tg_pair each */
	u8 classes[256];
};

struct tg_walk {
	u32 table; /* 0: no rules */
	u32 start;
};

struct tg_profile {
	u64 id; /* by its name, the same in every policy */
	u64 caps_allow;
	u64 caps_audit;
	u64 caps_quiet;
	struct tg_walk file;
	struct tg_walk policy;
	struct tg_walk attach;
	u32 attach_length;
	u32 parent;   /* struct tg_profile each */
	u32 children; /* the first; and each one's */
	u32 sibling;  /* next */
	u32 targets;  /* u32 each: a struct tg_profile, 0: not there */
	u32 path_flags;
	u32 disconnected; /* text */
	u16 disconnected_len;
	u8 mode;  /* enum tg_mode */
	u8 audit; /* everything is recorded */
	u8 hat;
	u8 pad[3];
	u32 name; /* text: the whole, */
	u32 name_len;
	u32 last; /* and its last part, which is a path where there is no attachment */
	u32 last_len;
	u32 limited; /* resources that have a limit, a bit each; */
	u32 limits;  /* u64 of each resource */
	u32 pad2;
};

/* At the beginning of each half of the arena. */
struct tg_image {
	u32 profiles; /* how many */
	u32 first;    /* struct tg_profile, of those that are nobody's children */
	u32 names;    /* u32 each, 0: free: struct tg_profile, by its id; a power of two of them */
	u32 names_mask;
	u32 te; /* struct te_image; 0: the policy has none */
	/* names by the numbers in SIDs, of this policy and those before it; user space's alone */
	u32 numbering;
	u32 numbering_len;
	u32 pad;
};

#endif
