/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `capability` model: other processes. */
#ifndef TIDEGATE_CAPS_TASK_H
#define TIDEGATE_CAPS_TASK_H

#include "lib/signals.h"
#include "caps/active.h"
#include "caps/narrow.h"

/* May a domain reach into a task? Only of its session, and one that may no more than itself (as Landlock has it). */
static __noinline bool caps_reaches(struct caps_domain *me, struct task_struct *target)
{
	struct caps_task *t = caps_tasks_task(target);
	struct caps_domain *d;
	u32 i;

	if (!t || !t->domain)
		return false;
	d = caps_domain_at(t->domain);
	if (d == me)
		return true;
	if (d->session != me->session)
		return false;
	bpf_for(i, 0, me->count)
		if (!caps_has(d, me->layers[BOUND(i, CAPS_LAYERS)]))
			return false;
	return true;
}

static __always_inline bool caps_is_mine(struct task_struct *target)
{
	struct caps_domain *me = caps_me();

	return !me || target->tgid == bpf_get_current_pid_tgid() >> 32 || caps_reaches(me, target);
}

static __always_inline int caps_task_asked(struct task_struct *target, u8 op)
{
	if (caps_is_mine(target))
		return 0;
	return caps_deny(CAPS_OTHERS, op, TG_C_TASK);
}

SEC("lsm/ptrace_access_check")
int BPF_PROG(caps_ptrace_access_check, struct task_struct *child, unsigned int mode)
{
	struct caps_task *t = caps_tasks_task(child);

	/* PTRACE_MODE_ATTACH: its descriptors can be taken then (pidfd_getfd), and nobody sees which */
	if (mode & 2 && caps_me() && t && t->domain && caps_is_mine(child))
		caps_hands(t->domain);
	/* PTRACE_MODE_NOAUDIT */
	if (mode & 4 && caps_me())
		return caps_is_mine(child) ? 0 : -EACCES;
	return caps_task_asked(child, TG_OP_PTRACE);
}

SEC("lsm/ptrace_traceme")
int BPF_PROG(caps_ptrace_traceme, struct task_struct *parent)
{
	struct caps_task *t = caps_tasks_task(parent);

	if (!t || !t->domain || caps_reaches(caps_domain_at(t->domain), bpf_get_current_task_btf()))
		return 0;
	return caps_deny(CAPS_OTHERS, TG_OP_PTRACE, TG_C_TASK);
}

SEC("lsm/task_kill")
int BPF_PROG(caps_task_kill, struct task_struct *p, struct kernel_siginfo *info, int sig)
{
	if (asked_for(p, info, sig))
		return 0;
	return caps_task_asked(p, TG_OP_SIGNAL);
}

SEC("lsm/task_setpgid")
int BPF_PROG(caps_task_setpgid, struct task_struct *p)
{
	return caps_task_asked(p, TG_OP_SIGNAL);
}

SEC("lsm/task_setnice")
int BPF_PROG(caps_task_setnice, struct task_struct *p)
{
	return caps_task_asked(p, TG_OP_SCHED);
}

SEC("lsm/task_setioprio")
int BPF_PROG(caps_task_setioprio, struct task_struct *p)
{
	return caps_task_asked(p, TG_OP_SCHED);
}

SEC("lsm/task_setscheduler")
int BPF_PROG(caps_task_setscheduler, struct task_struct *p)
{
	return caps_task_asked(p, TG_OP_SCHED);
}

SEC("lsm/task_movememory")
int BPF_PROG(caps_task_movememory, struct task_struct *p)
{
	return caps_task_asked(p, TG_OP_SCHED);
}

SEC("lsm/task_prlimit")
int BPF_PROG(caps_task_prlimit, const struct cred *cred, const struct cred *tcred,
	     unsigned int flags)
{
	/*
	 * no hook tells whose limits they are; one's own credentials are one's own process's, or
	 * its like's
	 */
	return caps_me() && address(cred) != address(tcred) ?
		       caps_deny(CAPS_OTHERS, TG_OP_SCHED, TG_C_TASK) :
		       0;
}

#endif
