/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A SELinux policy as the kernel reads it: tables in the arena behind the policy's profiles (profile_image.h), which
 * user space lays out (crates/flask). Where one refers to another it holds its offset in the arena, 0: none.
 *
 * Numbers of types, roles, users and ranges are the monitor's, not the policy's: a name keeps its number from policy to
 * policy, so that a SID means the same under each. A number that this policy has no name for is of nothing in it: no
 * type has a rule about it, no role may have it.
 */
#ifndef TIDEGATE_ABI_TE_IMAGE_H
#define TIDEGATE_ABI_TE_IMAGE_H

#include "abi/types.h"

/* What a rule's triple allows, by the bits of its class. */
struct te_av {
	u32 allow;
	u32 auditallow;
	u32 auditdeny; /* refusals of these are recorded */
	u32 pad;
};

/* A range: its levels, and the range of its low one alone. */
struct te_range {
	u32 low;
	u32 high;
	u32 lowest;
	u32 valid; /* this policy knows it */
};

/* A level. Its categories are `category_words` words. */
struct te_level {
	u32 sensitivity;
	u32 categories;
};

/* An entry of the tables that are looked up by a key; a key of 0 is a free one. */
struct te_entry {
	u64 key;
	u32 value;
	u32 pad;
};

/* A transition by the name of what is made. */
struct te_name {
	u64 key;     /* target and class, as te_key(); 0: free */
	u32 name;    /* text, */
	u32 len;     /* its length */
	u32 sources; /* bitmap of types */
	u32 becomes; /* type */
};

/* What a part of a context is called. */
struct te_text {
	u32 text;
	u32 len;  /* 0: free */
	u32 part; /* enum te_part */
	u32 number;
};

enum te_part {
	TE_PART_USER,
	TE_PART_ROLE,
	TE_PART_TYPE,
	TE_PART_RANGE,
};

/* A class of objects. */
struct te_class {
	u32 unknown;     /* permissions that the policy does not know and allows */
	u32 constraints; /* 0: none; else a list, below */
	u32 validations;
	u32 flags;       /* TE_CLASS_* */
	u8 default_user; /* enum te_default */
	u8 default_role;
	u8 default_type;
	u8 default_range; /* enum te_default_range */
	u32 pad;
};

#define TE_CLASS_PROCESS 1 /* what is made is labelled as its maker: a process's class, */
#define TE_CLASS_SOCKET 2  /* a socket's */

enum te_default {
	TE_UNSAID,
	TE_SOURCE,
	TE_TARGET,
};

enum te_default_range {
	TE_RANGE_UNSAID,
	TE_SOURCE_LOW,
	TE_SOURCE_HIGH,
	TE_SOURCE_LOW_HIGH,
	TE_TARGET_LOW,
	TE_TARGET_HIGH,
	TE_TARGET_LOW_HIGH,
	TE_GREATEST_LOWEST,
};

/*
 * A list of constraints is a number of u32 words: how many constraints, and of each its permissions, how many words
 * its expression has, and those. A word of an expression has what it is in its first byte, and in the next ones what
 * te_term says of it.
 */
enum te_term {
	TE_NOT,
	TE_AND,
	TE_OR,
	TE_COMPARE, /* 1: enum te_attribute, 2: enum te_operator */
	/* 1: enum te_symbol, 2: enum te_operator, 3: enum te_side; the next word is a bitmap */
	TE_AMONG,
};

/*
 * A rule on single ioctls, or types of netlink messages, of 256 that have an upper byte (the driver) in common. A list is
 * how many there are in a word, another word, and these.
 */
struct te_extended {
	u32 sources; /* bitmaps of types */
	u32 targets;
	u32 of; /* enum te_extended_of */
	u32 driver;
	u32 says; /* enum te_extended_says */
	u32 pad;
	u32 bits[8]; /* by the lower byte; of TE_DRIVERS by the upper one */
};

enum te_extended_of {
	TE_FUNCTIONS = 1,
	TE_DRIVERS,
	TE_MESSAGES,
};

enum te_extended_says {
	/* any of the three does, of whichever driver: without, the permission decides alone */
	TE_SPEAKS = 1,
	TE_ALLOWS = 2,
	TE_AUDITS = 4,
	TE_KEEPS_SILENT = 8,
};

enum te_attribute {
	TE_USERS,
	TE_ROLES,
	TE_TYPES,
	TE_LOW1_LOW2,
	TE_LOW1_HIGH2,
	TE_HIGH1_LOW2,
	TE_HIGH1_HIGH2,
	TE_LOW1_HIGH1,
	TE_LOW2_HIGH2,
};

enum te_operator {
	TE_EQUAL,
	TE_DIFFERS,
	TE_DOMINATES,
	TE_DOMINATED_BY,
	TE_INCOMPARABLE,
};

enum te_symbol {
	TE_USER,
	TE_ROLE,
	TE_TYPE,
};

enum te_side {
	TE_SIDE_SOURCE,
	TE_SIDE_TARGET,
	TE_SIDE_THIRD,
};

/* Kinds of entries. */
enum te_kind {
	TE_TRANSITION = 1, /* (source type, target type, class): a type */
	TE_MEMBER,
	TE_CHANGE,
	TE_RANGE,           /* the same: a range */
	TE_ROLE_TRANSITION, /* (role, target type, class): a role */
};

/*
 * What an automaton of paths says is u32 of each answer and each kind of file: which line counts, from 1, in its lower half; and
 * above that the highest rank of a line that matches, and that of a <<none>> which nothing hides, a byte each. What several
 * automata say, of which each overrides the one before it, is told by these (crates/bundle/src/te/said.rs).
 */
/* regular, directory, character, block, FIFO, link, socket; and one that nothing has */
#define TE_FILE_KINDS 8
/* What a line says in place of a SID, and no line. */
#define TE_NO_ANSWER 0ull
#define TE_NO_LABEL (~0ull) /* <<none>> */

/* How files of a filesystem are labelled. */
struct te_filesystem {
	char name[24]; /* empty: free */
	u64 sid;       /* the filesystem's, and that of its files by genfscon's `/` */
	u32 behavior;  /* enum te_behavior */
	u32 paths;     /* struct tg_automaton: genfscon, whose lines are the image's; 0: none */
};

enum te_behavior {
	TE_BY_XATTR = 1,
	TE_BY_TRANSITION,
	TE_BY_TASK,
	TE_BY_GENFS,
};

/* An address's context: those that agree with it under the mask. */
struct te_node {
	u32 address[4];
	u32 mask[4];
	u64 sid;
	u32 family; /* 4 or 6 */
	u32 pad;
};

#define TE_BLOCK 64

struct te_image {
	u32 size;    /* bytes of all of it; 0: this policy has no such model */
	u32 classes; /* how many, and one: they begin at 1 */
	u32 types;   /* the same of each */
	u32 roles;
	u32 users;
	u32 ranges;
	u32 category_words; /* of a level */
	u32 object_r;       /* the role of what is no process */
	u32 process;        /* class */
	u32 mls;
	u32 capabilities; /* bitmap of the policy's capabilities: POLICYDB_CAP_* */
	u32 class_at;     /* struct te_class each */
	u32 rows; /* u32 by source type: its row, 0: no rules. A row is u32 by TE_BLOCK columns: a block of u32
				by column: a cell; 0: no rules. */
	u32 columns; /* u32 by target type */
	/* a cell: u16 by class, padded to so many: which of the struct te_av behind it, from 1 */
	u32 cell_width;
	u32 permissive; /* bitmap of types */
	/* u32 by type: the type that bounds it, 0: none; 0 where no type is bounded */
	u32 bounds;
	u32 role_allows;    /* u32 by role: bitmap of the roles that it may change to */
	u32 role_dominates; /* u32 by role: bitmap of roles */
	u32 role_types;     /* u32 by role: bitmap of types */
	u32 user_roles;     /* u32 by user: bitmap of roles */
	u32 user_ranges;    /* u32 by user: range */
	u32 range_at;       /* struct te_range each */
	u32 level_at;       /* struct te_level each */
	u32 entries;        /* struct te_entry each, */
	u32 entries_mask;   /* a power of two of them */
	u32 names;          /* struct te_name each */
	u32 names_mask;
	u32 texts; /* struct te_text each, by the hash of the text and the part */
	u32 texts_mask;
	u32 initial;     /* u64 by initial SID, 32 of them */
	u32 files;       /* file_contexts: u32 each, a struct tg_automaton; */
	u32 files_count; /* so many */
	u32 lines;       /* u64 by line: a SID, or TE_NO_LABEL; line 0 says nothing */
	u32 filesystems; /* struct te_filesystem each */
	u32 filesystems_mask;
	/* of tcp, udp, dccp, sctp: u32 each: 0, or u16 by port: which of the port_sids */
	u32 ports;
	u32 port_sids; /* u64 each */
	u32 nodes;     /* struct te_node each, in order */
	u32 nodes_count;
	/* u32 by class: a list of rules on single ioctls and messages, 0: none */
	u32 extended;
	u32 allows_unknown; /* handle_unknown allow */
};

#endif
