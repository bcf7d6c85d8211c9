/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals that the kernel sends by itself. */
#ifndef TIDEGATE_LIB_SIGNALS_H
#define TIDEGATE_LIB_SIGNALS_H

#include "lib/verifier.h"

/* Does the current process end, and not only this thread of it? */
static __always_inline bool process_ends(void)
{
	struct task_struct *me = bpf_get_current_task_btf();

	return me->flags & PF_EXITING &&
	       (!me->signal->live.counter || me->signal->flags & SIGNAL_GROUP_EXIT);
}

/*
 * The signal that a process asked for itself at its parent's end (PR_SET_PDEATHSIG) is news, as
 * SIGCHLD is, and no act of the parent's: only the kernel sends it, without a siginfo, and from no
 * process but one that is exiting. It does so at the end of each thread that is the parent in turn;
 * those a parent could end as it likes.
 */
static __always_inline bool asked_for(struct task_struct *p, struct kernel_siginfo *info, int sig)
{
	return !address(info) && p->pdeath_signal == sig && process_ends();
}

#endif
