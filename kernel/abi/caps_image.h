/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compiled capability files as the kernel reads them: images in the arena behind the policies' halves, which user space lays
 * out (crates/lava) and never moves. Where one refers to a part it holds the part's offset in the arena, 0: none. So a
 * subject's and a capability's offset names it for as long as the image is there.
 */
#ifndef TIDEGATE_ABI_CAPS_IMAGE_H
#define TIDEGATE_ABI_CAPS_IMAGE_H

#include "abi/types.h"

/* Classes: crates/bundle/src/caps/class.rs. A service's objects have automata of their own. */
enum caps_class {
	CAPS_FILE,
	CAPS_DIR,
	CAPS_PROGRAM,
	CAPS_LIBRARY,
	CAPS_TCP,
	CAPS_UDP,
	CAPS_UNIX,
	CAPS_CLASSES = 8, /* one that nothing has */
};

enum caps_permission {
	CAPS_READ = 1,
	CAPS_WRITE = 1 << 1,
	CAPS_APPEND = 1 << 2,
	CAPS_CREATE = 1 << 3,
	CAPS_UNLINK = 1 << 4,
	CAPS_RENAME = 1 << 5,
	CAPS_LINK = 1 << 6,
	CAPS_SETATTR = 1 << 7,
	CAPS_LOCK = 1 << 8,
	CAPS_IOCTL = 1 << 9,
	CAPS_RMDIR = 1 << 10,
	CAPS_EXECUTE = 1 << 11,
	CAPS_LOAD = 1 << 12,
	CAPS_CONNECT = 1 << 13,
	CAPS_BIND = 1 << 14,
};

/* An authorization capability. */
struct caps_capability {
	u32 rights;
	/* the subject that what is executed or mapped is given: struct caps_subject; 0: none */
	u32 becomes;
	u32 expires; /* seconds, */
	u32 uses;    /* and counted uses, after which what is bound by it ends; 0: neither */
};

/*
 * What an automaton says of a name: the union of all capabilities that are for it, and those, in an automaton's answers as its
 * offset: those that last first, then as they are written. Of the first that has a permission it is given.
 */
struct caps_answer {
	u32 rights;
	u32 count;
	u32 by;     /* u32 each: a struct caps_capability */
	u32 brings; /* any of them has `becomes` */
};

/* An automaton of a service's objects, by the service's number in the image. */
struct caps_of_service {
	u32 service;
	u32 automaton;
};

struct caps_subject {
	u32 image;                 /* struct caps_image */
	u32 name;                  /* text, */
	u32 name_len;              /* its length */
	u32 services;              /* struct caps_of_service each, by rising number; */
	u32 services_count;        /* so many */
	u32 control[CAPS_CLASSES]; /* permissions that are checked at each use */
	/* struct tg_automaton, whose answers are places of struct caps_answer; 0: nothing */
	u32 automata[CAPS_CLASSES];
	u32 pad;
};

/* What of an operation an operand is authorised for. */
struct caps_need {
	u32 operand; /* from 1 */
	u32 rights;  /* these, where there is no vector */
	u32 by;      /* the operand whose value says which, from 1; 0: `rights` */
	u32 vector;  /* struct caps_value each, by rising value; */
	u32 values;  /* so many */
	u32 pad;
};

struct caps_value {
	u64 value;
	u32 rights;
	u32 pad;
};

enum caps_kind {
	CAPS_FREE = 1,
	CAPS_BINDS,
	CAPS_ACTIVE,
};

struct caps_operation {
	u32 number;
	u32 kind;  /* enum caps_kind */
	u32 needs; /* struct caps_need each; */
	u32 count; /* so many */
	u32 name;  /* text, */
	u32 name_len;
};

struct caps_service {
	u32 operations; /* struct caps_operation each, by rising number; */
	u32 count;      /* so many */
	u32 name;
	u32 name_len;
	u32 socket_type; /* enum sock_type; 0: any that services may have */
	u32 pad;
};

struct caps_image {
	u32 size;     /* bytes of all of it */
	u32 subjects; /* struct caps_subject each; */
	u32 subjects_count;
	u32 capabilities; /* struct caps_capability each; */
	u32 capabilities_count;
	u32 services; /* struct caps_service each; */
	u32 services_count;
	/* struct tg_automaton: which service is at a Unix socket: u32 answers, from 1, 0: none; no services: 0 */
	u32 sockets;
};

#endif
