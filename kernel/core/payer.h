/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The user who is charged for what a task makes: the task's own. Of a user namespace it is the user who made the outermost one:
 * all its users are that one's.
 *
 * A setuid program gives its file's owner's number to a task that executes it, which may then take it for the real one as well. That
 * owner may be a user of a namespace's: a user with a range of numbers (/etc/subuid) would have as many accounts, some of which are
 * others' (lomac/budget.h). So the user who executes such a program pays for it, and for all that comes of it. A program that may
 * become any user (CAP_SETUID), such as sudo, says itself whose what it starts is.
 */
#ifndef TIDEGATE_CORE_PAYER_H
#define TIDEGATE_CORE_PAYER_H

#include "core/subject.h"

static __noinline u32 payer_of(struct task_struct *task)
{
	struct tg_subject *s = subject_stored(task);
	struct cred *cred = CAST(struct cred, address(UNTRUSTED(task)->cred));
	struct user_namespace *space = CAST(struct user_namespace, address(cred->user_ns));
	u32 user = cred->uid.val, kept = s ? READ_ONCE(s->payer) : 0, i;

	if (kept)
		return kept - 1;
	/* the kernel nests them no deeper */
	bpf_for(i, 0, 34) {
		if (!space->level)
			break;
		user = space->owner.val;
		space = CAST(struct user_namespace, address(space->parent));
	}
	return user;
}

static __always_inline u32 payer_current(void)
{
	return payer_of(bpf_get_current_task_btf());
}

/* The current task executes a program that is to run by these credentials; false: no memory. */
static __noinline bool payer_executes(u64 cred)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct cred *to = CAST(struct cred, cred);
	struct tg_subject *s;
	u32 payer;

	if (to->euid.val == UNTRUSTED(me)->cred->euid.val ||
	    (!to->user_ns->level && to->cap_effective.val >> CAP_SETUID & 1))
		return true;
	payer = payer_of(me);
	s = subject_made(me);
	if (s)
		WRITE_ONCE(s->payer, payer + 1);
	return s;
}

/* A child's payer is its parent's. 0; -ENOMEM. */
static __always_inline int payer_bears(struct task_struct *child)
{
	struct tg_subject *s = subject_stored(bpf_get_current_task_btf());
	u32 kept = s ? READ_ONCE(s->payer) : 0;

	if (!kept)
		return 0;
	s = subject_made(child);
	if (!s)
		return -ENOMEM;
	WRITE_ONCE(s->payer, kept);
	return 0;
}

#endif
