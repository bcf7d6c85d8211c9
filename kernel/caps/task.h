/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the `capability` model: other processes, and what no capability is for, which nobody governed has: the system,
 * kernel objects without a name that a pattern could be for, and Linux's capabilities but those that only pass over a file's owner
 * and mode.
 */
#ifndef TIDEGATE_CAPS_TASK_H
#define TIDEGATE_CAPS_TASK_H

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
	return caps_never(CAPS_OTHERS, op, TG_C_TASK);
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
	return caps_never(CAPS_OTHERS, TG_OP_PTRACE, TG_C_TASK);
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
	/* of whom it is tells no hook; one's own credentials are one's own process's, or its like's */
	return caps_me() && address(cred) != address(tcred) ?
		       caps_never(CAPS_OTHERS, TG_OP_SCHED, TG_C_TASK) :
		       0;
}

/* CAP_CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE */
#define CAPS_LINUX 0x5ffu

SEC("lsm/capable")
int BPF_PROG(caps_capable, const struct cred *cred, struct user_namespace *ns, int cap,
	     unsigned int opts)
{
	if (!caps_me() || (cap < 32 && CAPS_LINUX >> (cap & 31) & 1))
		return 0;
	if (opts & CAP_OPT_NOAUDIT)
		return -EPERM;
	return caps_never(CAPS_NOBODYS, TG_OP_CAPABLE, TG_C_SYSTEM) ? -EPERM : 0;
}

#define CAPS_NEVER(hook, op, class)                                         \
	SEC("lsm/" #hook)                                                   \
	int caps_##hook(void *ctx)                                          \
	{                                                                   \
		return caps_me() ? caps_never(CAPS_NOBODYS, op, class) : 0; \
	}

CAPS_NEVER(bpf, TG_OP_BPF, TG_C_SYSTEM)
CAPS_NEVER(perf_event_open, TG_OP_BPF, TG_C_SYSTEM)
CAPS_NEVER(syslog, TG_OP_SYSTEM, TG_C_SYSTEM)
CAPS_NEVER(key_permission, TG_OP_KEY, TG_C_IPC)
CAPS_NEVER(ipc_permission, TG_OP_IPC, TG_C_IPC)
CAPS_NEVER(shm_alloc_security, TG_OP_IPC, TG_C_IPC)
CAPS_NEVER(sem_alloc_security, TG_OP_IPC, TG_C_IPC)
CAPS_NEVER(msg_queue_alloc_security, TG_OP_IPC, TG_C_IPC)
CAPS_NEVER(shm_shmctl, TG_OP_IPC, TG_C_IPC)
CAPS_NEVER(sem_semctl, TG_OP_IPC, TG_C_IPC)
CAPS_NEVER(msg_queue_msgctl, TG_OP_IPC, TG_C_IPC)
CAPS_NEVER(sb_mount, TG_OP_MOUNT, TG_C_SYSTEM)
CAPS_NEVER(sb_umount, TG_OP_MOUNT, TG_C_SYSTEM)
CAPS_NEVER(sb_remount, TG_OP_MOUNT, TG_C_SYSTEM)
CAPS_NEVER(sb_pivotroot, TG_OP_MOUNT, TG_C_SYSTEM)
CAPS_NEVER(move_mount, TG_OP_MOUNT, TG_C_SYSTEM)
CAPS_NEVER(uring_override_creds, TG_OP_SYSTEM, TG_C_SYSTEM)
CAPS_NEVER(uring_sqpoll, TG_OP_SYSTEM, TG_C_SYSTEM)

/* Rings, whose workers never leave the kernel: what was taken back might still be used by what is under way there. */
SEC("lsm/inode_init_security_anon")
int BPF_PROG(caps_inode_init_security_anon, struct inode *inode, const struct qstr *name)
{
	u64 text = name_word(address(CAST(struct qstr, address(name))->name));

	/* "[io_urin", "[userfau" */
	if (!caps_me() || (text != 0x6e6972755f6f695bull && text != 0x756166726573755bull))
		return 0;
	return caps_never(CAPS_NOBODYS, TG_OP_SYSTEM, TG_C_SYSTEM);
}

#endif
