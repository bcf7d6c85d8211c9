/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Subjects of the `profile` model: which profile confines a task. Of a task that is not confined
 * there is nothing. A child is what its parent is from its first instant; an execution changes it.
 * Each thread has its own, as in AppArmor, and only the task itself changes it.
 */
#ifndef TIDEGATE_PROFILE_SUBJECT_H
#define TIDEGATE_PROFILE_SUBJECT_H

#include "abi/record.h"
#include "lib/arch.h"
#include "lib/task_slots.h"

/* In place of a profile's id: no profile. */
#define TG_UNCONFINED (~0ull)

/* A task that has a profile, or is about to. */
struct tg_confined {
	u64 task;     /* its address; 0: a slot that is free */
	u64 profile;  /* its id, 0: none */
	u64 exec;     /* that of the execution under way */
	u32 seqno;    /* of the policy in which */
	u32 at;       /* its struct tg_profile is, 0: it has none */
	u8 executing; /* exec counts */
	/* in complain mode, no rule led to the program: nothing is allowed, all is let through */
	u8 learning;
	u8 exec_learning; /* the same of the execution under way */
	u8 changed;       /* its program was executed under another profile, which confined it */
	u8 exec_changed;  /* the same of the execution under way */
	u8 previous_learning; /* what `learning` was before the hat, */
	u8 previous_changed;  /* and `changed` */
	u8 pad;
	/* what it asked for at its next execution, by its id; TG_UNCONFINED; 0: nothing */
	u64 onexec;
	u64 previous;    /* what it comes back to from a hat, 0: nothing */
	u64 token;       /* by which */
	u64 made;        /* the dentry that it was allowed to create last, until it opens one */
	u32 made_plain;  /* what its path leads to simply allows, */
	u32 made_at;     /* by this struct tg_profile, */
	u32 made_number; /* of this policy */
	u32 pad2;
	u64 spilled; /* of a slot: some task that hashes here has storage, or had */
};

TASK_SLOTS(profile, profile_subjects, struct tg_confined, 14)

/*
 * What user space asks for: the profile of a task's next execution, by its id. A map of its own, so
 * that the task that asks writes over nothing that an execution under way has found.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} profile_onexec SEC(".maps");

/* Keeps the image's types in the object's BTF, where user space finds them. */
const struct tg_image *type_image GLOBAL_OF(profile);
const struct tg_profile *type_profile GLOBAL_OF(profile);
const struct tg_table *type_table GLOBAL_OF(profile);
const struct tg_pair *type_pair GLOBAL_OF(profile);

#include "core/image.h"

/* A profile by its id; 0: it is not in this policy. */
__noinline u32 profile_by_id(u32 number, u64 id)
{
	struct tg_image __arena *image = image_of(number);
	u32 mask = image->names_mask, names = image->names, i;

	bpf_for(i, 0, mask + 1) {
		u32 at = ARENA_PTR(u32, names)[(id + i) & mask];

		if (!at)
			break;
		if (ARENA_PTR(struct tg_profile, at)->id == id)
			return at;
	}
	return 0;
}

/* A task is freed. */
static __always_inline void confined_free(u64 task)
{
	struct tg_confined *slot = profile_subjects_slot(task);

	if (slot->task != task)
		return;
	slot->profile = slot->exec = slot->onexec = slot->previous = slot->token = slot->made = 0;
	slot->seqno = slot->at = 0;
	slot->executing = slot->learning = slot->exec_learning = slot->changed = 0;
	slot->exec_changed = slot->previous_learning = slot->previous_changed = 0;
	/* after that, on every processor */
	__sync_val_compare_and_swap(&slot->task, task, 0);
}

/*
 * The profile of a task in the policy of this number, 0: it is not confined. Whose profile
 * a policy does not have any more is not confined, as after `apparmor_parser -R`.
 */
static __always_inline u32 confined_at(struct tg_confined *c, u32 number)
{
	if (c->seqno != number) {
		c->at = c->profile ? profile_by_id(number, c->profile) : 0;
		/* others read the two the other way about */
		in_order();
		c->seqno = number;
	}
	return c->at;
}

/* Does this profile, if it is one, refuse anything? */
static __always_inline bool confines(u32 profile)
{
	return profile && ARENA_PTR(struct tg_profile, profile)->mode != TG_MODE_UNCONFINED;
}

#endif
