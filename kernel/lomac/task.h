/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager: other processes. A subject may not act on a higher one. fcntl(2) and file locks are here as well, as they
 * act on the other holders of an open file.
 */
#ifndef TIDEGATE_LOMAC_TASK_H
#define TIDEGATE_LOMAC_TASK_H

#include "lib/arch.h"
#include "lib/number.h"
#include "lib/signals.h"
#include "lomac/shared.h"
#include "lomac/terminal.h"

static __always_inline int lomac_task_access(struct task_struct *target, u8 op)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = op, .class = TG_C_TASK, .source = ~0u };
	u8 level;

	if (!s)
		return 0;
	count_query(TG_C_TASK);
	level = subject_label(target).observes;
	if (lomac_act(lomac_subject_modifying(s), level))
		return 0;
	n.peer = target->tgid;
	n.object = level;
	return deny(s, &n, -EPERM);
}

/* Signal 0 only asks whether the process exists. Threads of a process have one level. */
SEC("lsm/task_kill")
int BPF_PROG(lomac_task_kill, struct task_struct *p, struct kernel_siginfo *info, int sig)
{
	if (!sig || p->tgid == bpf_get_current_task_btf()->tgid || asked_for(p, info, sig))
		return 0;
	return lomac_task_access(p, TG_OP_SIGNAL);
}

/*
 * ptrace, process_vm_*, /proc/PID/mem, pidfd_getfd. The tracer reads what it holds. A tracer of a
 * trusted program would have a process that never falls.
 */
SEC("lsm/ptrace_access_check")
int BPF_PROG(lomac_ptrace_access_check, struct task_struct *child, unsigned int mode)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_PTRACE, .class = TG_C_TASK, .source = ~0u };
	struct lomac_object o = { .known = true };
	struct tg_label target;
	u8 to;

	if (!(mode & PTRACE_MODE_ATTACH))
		return 0;
	target = subject_label(child);
	o.level = target.level;
	if (!lomac_controls(lomac_subject_modifying(s), target.attrs, policy.top)) {
		n.peer = child->tgid;
		n.object = o.level;
		n.reason = TG_R_TRUST;
		return deny(s, &n, -EPERM);
	}
	to = lomac_observe(lomac_subject_observing(s), o);
	if (to < subject_observes(s)) {
		n.peer = child->tgid;
		n.object = o.level;
		return fall(s, to, &n, false);
	}
	return lomac_task_access(child, TG_OP_PTRACE);
}

/* A tracer writes and reads its tracee: a task that asks to be traced has to be at its level. */
SEC("lsm/ptrace_traceme")
int BPF_PROG(lomac_ptrace_traceme, struct task_struct *parent)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_PTRACE, .class = TG_C_TASK, .source = ~0u };
	struct tg_label tracer = subject_label(parent);
	struct lomac_subject other = { .level = tracer.level, .attrs = tracer.attrs };

	if (!lomac_controls(other, lomac_subject_modifying(s).attrs, policy.top))
		n.reason = TG_R_TRUST;
	else if (tracer.level == subject_level(s) && tracer.observes == tracer.level &&
		 tracer.level == subject_observes(s))
		return 0;
	n.peer = parent->tgid;
	n.object = tracer.level;
	return deny(s, &n, -EPERM);
}

/*
 * A descriptor's owner gets a signal when somebody else makes it ready: SIGIO, or F_SETSIG's. What an interrupt brings, a
 * packet or a key, is not the doing of the task that it finds at work: the owner has asked for it.
 */
SEC("lsm/file_send_sigiotask")
int BPF_PROG(lomac_file_send_sigiotask, struct task_struct *p)
{
	return in_interrupt() ? 0 : lomac_task_access(p, TG_OP_SIGNAL);
}

#define SETFL_MASK (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | FASYNC)

/* Does it change the description: its flags, which task is told of it and how, what its pipe holds? */
static __always_inline bool changes_description(struct file *file, unsigned int cmd,
						unsigned long arg)
{
	switch (cmd) {
	case F_SETFL:
		return (arg ^ file->f_flags) & SETFL_MASK;
	case F_NOTIFY:
		/* the first task that asks is the owner; to ask for nothing ends what a task has asked for itself */
		return (u32)arg & ~DN_MULTISHOT;
	case F_SETOWN:
	case F_SETOWN_EX:
	case F_SETSIG:
	case F_SETPIPE_SZ:
		return true;
	}
	return false;
}

/*
 * The writer that sets it off may be higher than the task that chose the owner: below the top one
 * owns it oneself.
 */
SEC("lsm/file_fcntl")
int BPF_PROG(lomac_file_fcntl, struct file *file, unsigned int cmd, unsigned long arg)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = {
		.op = TG_OP_SIGNAL, .class = TG_C_TASK, .source = ~0u, .reason = TG_R_TOP_ONLY
	};

	if (subject_level(s) >= policy.top)
		return 0;
	/*
	 * a task that opens the file waits for the holder of a lease; what a file is written for is
	 * its inode's
	 */
	if (cmd == F_SETLEASE || cmd == F_SETDELEG || cmd == F_SET_RW_HINT)
		return modify_opened(file, TG_OP_SETATTR);
	if (changes_description(file, cmd, arg)) {
		int err = modify_shared(file, TG_OP_SETATTR);

		if (err)
			return err;
	}
	/* a terminal's owner is its foreground group, whoever asks for signals */
	if ((cmd == F_SETSIG || (cmd == F_SETFL && arg & FASYNC)) &&
	    (file->f_inode->i_mode & S_IFMT) == S_IFCHR)
		return terminal_is_higher(file, subject_level(s), false) ? deny(s, &n, -EPERM) : 0;
	if (cmd != F_SETOWN && cmd != F_SETOWN_EX)
		return 0;
	if (cmd == F_SETOWN && (!arg || (u32)arg == own_number()))
		return 0;
	return deny(s, &n, -EPERM);
}

/*
 * A task that has a file locked for itself keeps others from it: that is a modification. What is
 * open for writing was asked about then, unless the guard is there. A lock by flock(2) is the
 * description's, and so is its end. systemd waits for the lock of /dev/console, in process 1 as well, before it resets a
 * terminal: that device, though everybody may open it, is locked by the top alone, and shared locks keep it waiting, too.
 */
SEC("lsm/file_lock")
int BPF_PROG(lomac_file_lock, struct file *file, unsigned int cmd)
{
	bool exclusive = cmd == F_WRLCK && (!(file->f_mode & FMODE_WRITE) || tx.guard_armed);
	struct inode *inode = file->f_inode;
	bool console = cmd != F_UNLCK && (inode->i_mode & S_IFMT) == S_IFCHR &&
		       device_is_console(inode->i_rdev);

	if ((!exclusive && !console && !file_is_shared(address(file))) ||
	    level_modifies() >= policy.top)
		return 0;
	if (console)
		return refuse(inode, file_dentry(file), label_opened(file), TG_OP_SETATTR,
			      TG_C_FILE);
	return exclusive ? modify_opened(file, TG_OP_SETATTR) : modify_shared(file, TG_OP_SETATTR);
}

SEC("lsm/task_setpgid")
int BPF_PROG(lomac_task_setpgid, struct task_struct *p)
{
	return lomac_task_access(p, TG_OP_SIGNAL);
}

SEC("lsm/task_setnice")
int BPF_PROG(lomac_task_setnice, struct task_struct *p)
{
	return lomac_task_access(p, TG_OP_SCHED);
}

SEC("lsm/task_setioprio")
int BPF_PROG(lomac_task_setioprio, struct task_struct *p)
{
	return lomac_task_access(p, TG_OP_SCHED);
}

SEC("lsm/task_setscheduler")
int BPF_PROG(lomac_task_setscheduler, struct task_struct *p)
{
	return lomac_task_access(p, TG_OP_SCHED);
}

SEC("lsm/task_movememory")
int BPF_PROG(lomac_task_movememory, struct task_struct *p)
{
	return lomac_task_access(p, TG_OP_SCHED);
}

/*
 * The hook is told credentials, not the process: whoever has them is looked for. Only
 * threads of one process share them.
 */
SEC("lsm/task_prlimit")
int BPF_PROG(lomac_task_prlimit, const struct cred *cred, const struct cred *tcred,
	     unsigned int flags)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_SCHED, .class = TG_C_TASK, .source = ~0u };
	struct task_struct *t;
	bool found = false;

	if (!(flags & LSM_PRLIMIT_WRITE) || subject_level(s) >= policy.top ||
	    (u64)tcred == address(bpf_get_current_task_btf()->real_cred))
		return 0;
	count_query(TG_C_TASK);
	n.object = subject_level(s);
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		u8 level;

		if ((u64)t->real_cred != (u64)tcred)
			continue;
		found = true;
		level = subject_label(t).observes;
		if (level > n.object) {
			n.object = level;
			n.peer = t->tgid;
		}
	}
	if (found && lomac_act(lomac_subject_modifying(s), n.object))
		return 0;
	return deny(s, &n, -EPERM);
}

#endif
