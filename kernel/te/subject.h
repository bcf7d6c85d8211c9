/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Subjects of the `te` model: the SIDs of a task (struct task_security_struct of security/selinux).
 * A task that has none is not governed: it is asked nothing, and to others it is what the policy's
 * initial SID `kernel` is. A child is what its parent is from its first instant; an execution
 * changes it. Each thread has its own, and only the task itself changes it.
 */
#ifndef TIDEGATE_TE_SUBJECT_H
#define TIDEGATE_TE_SUBJECT_H

#include "abi/te_image.h"
#include "lib/task_slots.h"
#include "core/image.h"

struct te_subject {
	u64 task;       /* its address; 0: a slot that is free */
	u64 sid;        /* 0: it is not governed */
	u64 osid;       /* before its last execution */
	u64 exec;       /* of the execution under way, 0: none */
	u64 exec_sid;   /* what it asked for by /proc/self/attr: at its next execution, */
	u64 create_sid; /* of files that it makes, */
	u64 key_sid;    /* keys, */
	u64 socket_sid; /* and sockets; 0: what the policy says */
	u64 made;       /* the SID of what it is making: a file by this name */
	u64 made_dentry;
	u64 made_parent;
	/*
	 * its SID is that of tasks that have none, until user space says which one it has (adopt.h)
	 */
	u16 stray;
	u16 exempt; /* it is of the monitor's own, and has none */
	u32 made_class;
	u64 spilled;
};

TASK_SLOTS(te, te_subjects, struct te_subject, 14)

/* What user space asks for: the SID of a task's next execution. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} te_onexec SEC(".maps");

/* Keeps the image's types in the object's BTF. */
const struct te_image *type_te_image GLOBAL_OF(te);

/* A task is freed. */
static __always_inline void te_subject_free(u64 task)
{
	struct te_subject *s = te_subjects_slot(task);

	if (s->task != task)
		return;
	s->sid = s->osid = s->exec = s->exec_sid = s->create_sid = s->key_sid = s->socket_sid = 0;
	s->made = s->made_dentry = s->made_parent = 0;
	s->stray = s->exempt = 0;
	/* after that, on every processor */
	__sync_val_compare_and_swap(&s->task, task, 0);
}

/* Where the tables of the policy with this number are, 0: it has none. */
static __always_inline u32 te_tables(u32 number)
{
	return image_of(number)->te;
}

/*
 * Under a system-wide start every task is governed, and user space says by which SID. A task that
 * it has not met yet has this one, as one whose birth was under way: the SID of what has no label.
 * 0: a task that has no SID is not governed.
 */
u64 te_everyone GLOBAL_OF(te);
u64 te_strays GLOBAL_OF(te); /* how many were met so */

/*
 * Where everybody has a SID, the current task gets this one if it has none. The processor's idle task is nobody: what an
 * interrupt does there is the kernel's.
 */
static __noinline int te_meet_me(void)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct te_subject *s = te_subjects_current();

	if ((s && (s->sid || s->exempt)) || !me->pid)
		return 0;
	s = te_subjects_made(me);
	if (!s) {
		/* there is no memory for one, and nobody goes without */
		bpf_send_signal(9);
		return 0;
	}
	/* user space may give it one at this moment: then that stays, or is given again */
	if (!__sync_val_compare_and_swap(&s->sid, 0, te_everyone)) {
		s->stray = 1;
		__sync_fetch_and_add(&te_strays, 1);
	}
	return 0;
}

/* The caller: the current task. */
struct te_who {
	struct te_subject *subject; /* NULL: it is not governed */
	u64 sid;
};

/* The same where a hook has met it already. */
static __always_inline struct te_who te_met(void)
{
	struct te_subject *s = te_subjects_current();
	struct te_who who = {};

	if (s && s->sid) {
		who.subject = s;
		who.sid = s->sid;
	}
	return who;
}

/* The caller, if it is governed. */
static __always_inline struct te_who te_me(void)
{
	if (te_everyone)
		te_meet_me();
	return te_met();
}

/* In place of a SID: what the policy in force has for what is not governed. */
#define TE_UNGOVERNED 0ull

/* The SID of another task. */
static __always_inline u64 te_sid_of(struct task_struct *task)
{
	struct te_subject *s = te_subjects_task(task);

	return s ? s->sid : TE_UNGOVERNED;
}

#endif
