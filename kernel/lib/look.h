/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A look at what a process has mapped, for user space: at all of it as it is at one moment, or it is said that this could
 * not be.
 *
 * The kernel's own iterator of mappings (iter/task_vma) waits for the lock of a process's memory, which that process can
 * keep locked for as long as it likes, and lets others change the mappings in between, so that one may be moved from before it to
 * behind it. Here a program looks at a process as a whole, and waits for nothing. Where it could not look, or the
 * mappings changed meanwhile, it asks to be called once more for that process (user space reads EAGAIN), until user space
 * gives up on this one: then a line says so.
 */
#ifndef TIDEGATE_LIB_LOOK_H
#define TIDEGATE_LIB_LOOK_H

#include "lib/iterators.h"
#include "lib/mappings.h"

#define LOOK_BLOCKED (~0u - 1) /* in place of a descriptor: this process could not be looked at */
#define LOOK_ROOM 16384 /* bytes that lines of one process may take: half of what is read at once */

/* Of user space, which looks one at a time. */
u32 looks_over; /* the process that is looked at is given up; taken back here */
u32 looks_dev;  /* the only file that is looked for; 0: any */
u64 looks_ino;

/* One look. */
struct look {
	u64 mm;
	u64 sequence;
	u32 lines; /* bytes that others' take */
	u32 seen;
	u32 who; /* the caller's */
};

/*
 * False: there is nothing to look at. What threads of one process have mapped is looked at with the first of them, or,
 * once that one has ended, with each.
 */
static __noinline bool look_begins(struct look *l, struct task_struct *task, struct seq_file *seq)
{
	struct task_struct *fields = UNTRUSTED(task), *leader = fields->group_leader;

	l->mm = address(fields->mm);
	if (!l->mm || fields->flags & PF_KTHREAD ||
	    (fields->pid != fields->tgid && address(leader->mm) == l->mm))
		return false;
	l->lines = CAST(struct seq_file, address(seq))->count;
	l->seen = 0;
	l->sequence = mappings_sequence(l->mm);
	return true;
}

/* Is there room for more lines of this process? */
static __always_inline bool look_has_room(struct look *l, struct seq_file *seq)
{
	return CAST(struct seq_file, address(seq))->count - l->lines < LOOK_ROOM;
}

/* How a look ended. The first two are also what the program returns then. */
enum look_end {
	LOOK_WHOLE = 0, /* it saw all that was mapped, and nobody changed that meanwhile */
	LOOK_AGAIN = 1, /* the program is to be called once more for this process */
	LOOK_GIVEN_UP,  /* user space has given this process up: a line is to say so */
};

static __noinline u32 look_ends(struct look *l, struct task_struct *task)
{
	bool whole = !(l->sequence & 1) && mappings_sequence(l->mm) == l->sequence &&
		     address(UNTRUSTED(task)->mm) == l->mm &&
		     l->seen >= (u32)CAST(struct mm_struct, l->mm)->map_count;
	u32 over = READ_ONCE(looks_over);

	if (!whole && !over)
		return LOOK_AGAIN;
	looks_over = 0;
	return whole ? LOOK_WHOLE : LOOK_GIVEN_UP;
}

#endif
