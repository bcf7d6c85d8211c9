/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which images of capability files are in the arena. The kernel does not read it: here it stands so that a daemon finds it that
 * takes over from another (crates/monitor/src/caps).
 */
#ifndef TIDEGATE_CAPS_TABLE_H
#define TIDEGATE_CAPS_TABLE_H

#include "caps/session.h"

#define CAPS_IMAGES 1024

struct caps_held_image {
	u64 since;   /* ns of CLOCK_BOOTTIME; 0: the entry is free */
	u32 at;      /* its place in the arena, */
	u32 pages;   /* and how much it takes */
	u32 names;   /* how many pages what its parts are called takes in user space */
	u32 uid;     /* the user that brought it */
	u32 number;  /* of the table's images, never used again */
	u8 hash[32]; /* of the files that it was laid out from */
};

struct caps_held_image caps_images[CAPS_IMAGES] GLOBAL_OF(caps);

/* Keep the types in the object's BTF, where user space finds them. */
struct caps_change;
const struct caps_change *type_caps_change GLOBAL_OF(caps);
const struct caps_taken_key *type_caps_taken_key GLOBAL_OF(caps);

/* The number of a task's domain; 0: it is not governed. */
static __always_inline u32 caps_domain_of(struct task_struct *task)
{
	struct caps_task *t = caps_tasks_task(task);

	return t ? t->domain : 0;
}

#endif
