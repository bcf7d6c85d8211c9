/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Subjects of the `profile` model: which profile confines a task. Who has no entry is not
 * confined, and costs a look-up. A child is what its parent is from its first instant; an
 * execution changes it. Each thread has its own, as in AppArmor, and only the task itself
 * changes it.
 */
#ifndef TIDEGATE_CONFINED_H
#define TIDEGATE_CONFINED_H

#define __arena __attribute__((address_space(1)))
#define AT(type) type __arena
#define PART(type, offset) ((type __arena *)(u64)(offset))

#include "profile/image.h"
#include "models/profile.h"

/* Two images: the policy's in force, and the one being loaded. A page is there once it was written to. */
struct {
	__uint(type, 33); /* BPF_MAP_TYPE_ARENA */
	__uint(map_flags, 1024); /* BPF_F_MMAPABLE */
	__uint(max_entries, TG_ARENA_PAGES);
	__ulong(map_extra, 0x1ull << 44); /* where user space has it, in every process */
} arena SEC(".maps");

/* A path to walk, and by what. */
struct tg_name {
	u64 dentry;
	u64 mnt;   /* struct vfsmount */
	u64 one;
	u64 two;
	u32 number; /* of the policy */
	u32 table;
	u32 start;
	u32 flags;  /* PATH_* of the profile */
	u32 disconnected; /* text, and its length */
	u32 disconnected_len;
	u8 dir; /* it ends in a slash */
	u8 connected; /* found: it leads to the root */
	u8 root; /* and is it */
	u8 raw;	 /* its mount is nowhere: from the filesystem's root */
	u16 steps; /* up the path, and over mounts */
	u16 tries;
};

/* What is mounted. */
enum mount_source {
	SOURCE_NONE, /* nothing, or what is nowhere mounted */
	SOURCE_PATH, /* what is at from_dentry and from_mnt */
	SOURCE_NAME, /* what has this text for its name */
	SOURCE_TEXT, /* the text itself, or a device, if the filesystem's type requires one */
};

struct tg_mount {
	u64 dentry; /* where */
	u64 mnt;
	u64 from_dentry;
	u64 from_mnt;
	u64 text; /* addresses of the kernel's own copies, 0: none */
	u64 type;
	u64 data;
	u32 flags; /* MS_* */
	u32 request;
	u8 source; /* enum mount_source */
	u8 odd;	   /* found: a device may have another name than the text */
	u8 pad[2];
	u32 awaited; /* the kernel is about to look the text up, in the call of this number; 0: not */
	struct tg_perms perms; /* found: what the profile says */
	u32 pad2;
};

struct tg_confined {
	u64 profile;  /* its id, 0: none */
	u64 exec;     /* that of the execution under way */
	u32 request;  /* the newest, for its record: what was asked for, */
	u32 denied;   /* and not allowed */
	u32 seqno;    /* of the policy in which */
	u32 at;	      /* its struct tg_profile is, 0: it has none */
	u8 executing; /* exec counts */
	u8 learning;  /* in complain mode, no rule led to the program: nothing is allowed, all is let through */
	u8 exec_learning; /* the same of the execution under way */
	u8 changed;   /* its program was executed under another profile, which confined it */
	u8 exec_changed; /* the same of the execution under way */
	u8 pad[3];
	struct tg_name name; /* room for the path of a program or a mount: their stacks are full */
	struct tg_mount mount; /* the newest, with its source */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_confined);
} confined SEC(".maps");

/*
 * What user space asks for: the profile of a task's next execution, by its id. Of its own, so that
 * who asks writes over nothing that an execution under way has found.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} onexec SEC(".maps");

/* Keeps the image's types in the object's BTF, where user space finds them. */
const struct tg_image *type_image;
const struct tg_profile *type_profile;
const struct tg_table *type_table;
const struct tg_pair *type_pair;

/* The image of a policy by its number; half an arena's first page is nobody's, so that 0 is none. */
static __always_inline struct tg_image __arena *image_of(u32 number)
{
	/* makes the arena this program's */
	asm volatile("" ::"r"(&arena));
	return PART(struct tg_image, 4096 + (number & 1) * TG_ARENA_HALF);
}

/* A profile by its id; 0: it is not in this policy. */
static __noinline u32 profile_by_id(u32 number, u64 id)
{
	struct tg_image __arena *image = image_of(number);
	u32 mask = image->names_mask, names = image->names, i;

	bpf_for(i, 0, mask + 1) {
		u32 at = PART(u32, names)[(id + i) & mask];

		if (!at)
			break;
		if (PART(struct tg_profile, at)->id == id)
			return at;
	}
	return 0;
}

static __always_inline struct tg_confined *confined_current(void)
{
	struct task_struct *me = bpf_get_current_task_btf();

	/* most tasks have nothing stored with them */
	return me->bpf_storage ? bpf_task_storage_get(&confined, me, 0, 0) : NULL;
}

/*
 * The profile of a task in the policy of this number, 0: it is not confined. Whose profile
 * a policy does not have any more is not confined, as after `apparmor_parser -R`.
 */
static __always_inline u32 confined_at(struct tg_confined *c, u32 number)
{
	if (c->seqno != number) {
		c->at = c->profile ? profile_by_id(number, c->profile) : 0;
		c->seqno = number;
	}
	return c->at;
}

/* Does this profile, if it is one, refuse anything? */
static __always_inline bool confines(u32 profile)
{
	return profile && PART(struct tg_profile, profile)->mode != TG_MODE_UNCONFINED;
}

#endif
