/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: other processes. selinux_task_*() of security/selinux/hooks.c. */
#ifndef TIDEGATE_TE_TASK_H
#define TIDEGATE_TE_TASK_H

#include "te/cred.h"

/* May the current task do this to another? */
static __always_inline int te_task_asked(struct task_struct *target, u32 request, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_TASK };
	struct te_who who = te_me();

	if (!who.subject)
		return 0;
	n.peer = target->tgid;
	return te_avc_has_perm(who.sid, te_sid_of(target), SECCLASS_PROCESS, request, &n);
}

static __always_inline u32 te_signal_request(int sig)
{
	switch (sig) {
	case 0:
		return PROCESS__SIGNULL;
	case SIGCHLD_NUMBER:
		return PROCESS__SIGCHLD;
	case SIGKILL_NUMBER:
		return PROCESS__SIGKILL;
	case SIGSTOP_NUMBER:
		return PROCESS__SIGSTOP;
	}
	return PROCESS__SIGNAL;
}

SEC("lsm/task_kill")
int BPF_PROG(te_task_kill, struct task_struct *p, struct kernel_siginfo *info, int sig)
{
	return te_task_asked(p, te_signal_request(sig), TG_OP_SIGNAL);
}

SEC("lsm/ptrace_access_check")
int BPF_PROG(te_ptrace_access_check, struct task_struct *child, unsigned int mode)
{
	struct tg_note n = { .op = TG_OP_PTRACE, .class = TG_C_TASK };
	struct te_who who = te_me();

	if (!who.subject)
		return 0;
	n.peer = child->tgid;
	/* PTRACE_MODE_READ: what is in /proc */
	if (mode & 1)
		return te_avc_has_perm(who.sid, te_sid_of(child), SECCLASS_FILE, FILE__READ, &n);
	return te_avc_has_perm(who.sid, te_sid_of(child), SECCLASS_PROCESS, PROCESS__PTRACE, &n);
}

SEC("lsm/ptrace_traceme")
int BPF_PROG(te_ptrace_traceme, struct task_struct *parent)
{
	struct tg_note n = { .op = TG_OP_PTRACE, .class = TG_C_TASK };
	struct te_subject *s = te_subjects_current();
	u64 tracer = te_sid_of(parent);

	/* a task that is not governed traces as it likes */
	if (!tracer)
		return 0;
	n.peer = parent->tgid;
	return te_avc_has_perm(tracer, s ? s->sid : TE_UNGOVERNED, SECCLASS_PROCESS,
			       PROCESS__PTRACE, &n);
}

SEC("lsm/task_setpgid")
int BPF_PROG(te_task_setpgid, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__SETPGID, TG_OP_SIGNAL);
}

SEC("lsm/task_getpgid")
int BPF_PROG(te_task_getpgid, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__GETPGID, TG_OP_GETATTR);
}

SEC("lsm/task_getsid")
int BPF_PROG(te_task_getsid, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__GETSESSION, TG_OP_GETATTR);
}

SEC("lsm/task_setnice")
int BPF_PROG(te_task_setnice, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__SETSCHED, TG_OP_SCHED);
}

SEC("lsm/task_setioprio")
int BPF_PROG(te_task_setioprio, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__SETSCHED, TG_OP_SCHED);
}

SEC("lsm/task_getioprio")
int BPF_PROG(te_task_getioprio, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__GETSCHED, TG_OP_GETATTR);
}

SEC("lsm/task_setscheduler")
int BPF_PROG(te_task_setscheduler, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__SETSCHED, TG_OP_SCHED);
}

SEC("lsm/task_getscheduler")
int BPF_PROG(te_task_getscheduler, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__GETSCHED, TG_OP_GETATTR);
}

SEC("lsm/task_movememory")
int BPF_PROG(te_task_movememory, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__SETSCHED, TG_OP_SCHED);
}

SEC("lsm/task_setrlimit")
int BPF_PROG(te_task_setrlimit, struct task_struct *p, unsigned int resource, struct rlimit *new)
{
	u64 now = address(p->signal) + bpf_core_field_offset(struct signal_struct, rlim) +
		  BOUND(resource, TG_RLIMITS) * bpf_core_type_size(struct rlimit);

	/* of itself only a hard limit: a soft one is the program's own */
	if (p->tgid == bpf_get_current_pid_tgid() >> 32 &&
	    CAST(struct rlimit, now)->rlim_max == CAST(struct rlimit, address(new))->rlim_max)
		return 0;
	return te_task_asked(p, PROCESS__SETRLIMIT, TG_OP_SCHED);
}

/* Of another's limits only its credentials are told. */
SEC("lsm/task_prlimit")
int BPF_PROG(te_task_prlimit, const struct cred *cred, const struct cred *tcred, unsigned int flags)
{
	struct tg_note n = { .op = TG_OP_SCHED, .class = TG_C_TASK };
	struct te_who who = te_me();
	u32 request = 0;

	if (!who.subject)
		return 0;
	if (flags & LSM_PRLIMIT_WRITE)
		request |= PROCESS__SETRLIMIT;
	if (flags & LSM_PRLIMIT_READ)
		request |= PROCESS__GETRLIMIT;
	return request ? te_avc_has_perm(who.sid, te_cred_sid(address(tcred)), SECCLASS_PROCESS,
					 request, &n) :
			 0;
}

#endif
