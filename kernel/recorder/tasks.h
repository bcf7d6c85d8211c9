/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes: born, started, ended, and what one does to another. */
#ifndef TIDEGATE_RECORDER_TASKS_H
#define TIDEGATE_RECORDER_TASKS_H

#define TR_ANCESTORS 4 /* whose channels are told at an exec, the one itself counted */

/* The ends of channels in a task's table: pipes, FIFOs, Unix sockets. */
__noinline int tell_channels(u64 addr)
{
	struct tr_note n = { .what = TR_CHANNELS, .task = addr, .always = 1 };
	struct task_struct *task = CAST(struct task_struct, addr);
	struct tr_end *ends;
	struct fdtable *fdt;
	struct tg_scratch *w;
	u32 i, max, found = 0;

	if (!task->files || !is_recorded(task))
		return 0;
	w = scratch_get();
	if (!w) {
		__sync_fetch_and_add(&lines_lost, 1);
		return 0;
	}
	compose(&n, w);
	fdt = CAST(struct fdtable, address(CAST(struct files_struct, address(task->files))->fdt));
	max = fdt->max_fds;
	ends = (struct tr_end *)w->text;
	bpf_rcu_read_lock();
	bpf_for(i, 0, max) {
		struct tr_end end = {};
		struct inode *inode;
		struct file *file;
		u64 at = 0;
		u16 type;

		if (found >= TR_ENDS || i > 1024)
			break;
		bpf_probe_read_kernel(&at, sizeof(at), fdt->fd + i);
		if (!at)
			continue;
		file = CAST(struct file, at);
		inode = CAST(struct inode, address(file->f_inode));
		type = inode->i_mode & S_IFMT;
		if (type == S_IFSOCK) {
			struct sock *sk = CAST(struct socket, address(file->private_data))->sk;
			struct sock *peer;

			if (!sk ||
			    CAST(struct sock, address(sk))->__sk_common.skc_family != AF_UNIX)
				continue;
			peer = CAST(struct unix_sock, address(sk))->peer;
			if (!peer)
				continue;
			end.peer = socket_inode(address(peer));
		} else if (type != S_IFIFO) {
			continue;
		}
		end.ino = inode->i_ino;
		end.dev = inode->i_sb->s_dev;
		end.flags = (file->f_mode & FMODE_READ ? TR_READS : 0) |
			    (file->f_mode & FMODE_WRITE ? TR_WRITES : 0);
		ends[BOUND(found, TR_ENDS)] = end;
		found++;
	}
	bpf_rcu_read_unlock();
	w->line.ends = found;
	send_line(w, found * sizeof(struct tr_end));
	scratch_put(w);
	return 0;
}

/* A descriptor is closed, whatever else has the opening: the one function that every way of closing calls. */
SEC("fexit/locks_remove_posix")
int BPF_PROG(close, struct file *file)
{
	u16 type = file->f_inode->i_mode & S_IFMT;

	return type == S_IFIFO || type == S_IFSOCK ?
		       tell_channels(address(bpf_get_current_task_btf())) :
		       0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct tr_note n = { .what = TR_FORK, .always = 1, .peer = child->tgid };
	u32 pid = child->tgid, by = parent->tgid;
	u8 one = 1;

	if (policy.follow && (by == policy.recorder || bpf_map_lookup_elem(&followed, &by)) &&
	    bpf_map_update_elem(&followed, &pid, &one, BPF_ANY))
		__sync_fetch_and_add(&follow_lost, 1);
	/* a thread is its process's */
	if (pid == by)
		return 0;
	if ((child->mm && child->mm == parent->mm) ||
	    (child->files && child->files == parent->files))
		n.flags |= TR_SHARES;
	/* the recorder's own child, and a kernel thread's, begins here */
	n.task = address(by == policy.recorder || parent->flags & PF_KTHREAD ? child : parent);
	if (n.task == address(child))
		n.peer = 0;
	return tell(&n);
}

/* An exec's files, one after the other: what was asked for, then interpreters. */
SEC("fexit/security_bprm_creds_for_exec")
int BPF_PROG(bprm_creds_for_exec, struct linux_binprm *bprm)
{
	struct tr_note n = {
		.op = TG_OP_EXEC,
		.class = TG_C_EXEC,
		.flags = TR_READS | TR_FIRST,
		.refused = RESULT(ctx),
		.always = 1,
	};

	return tell_file(bprm->file, &n);
}

SEC("fexit/security_bprm_check")
int BPF_PROG(bprm_check, struct linux_binprm *bprm)
{
	struct tr_note n = {
		.op = TG_OP_EXEC,
		.class = TG_C_EXEC,
		.flags = TR_READS,
		.refused = RESULT(ctx),
		.always = 1,
	};

	return tell_file(bprm->file, &n);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task)
{
	struct tr_note n = { .what = TR_STARTED, .always = 1 };
	u32 i;

	tell(&n);
	/* for tasks that forked on the way here, and have read ends of what this one writes */
	bpf_for(i, 0, TR_ANCESTORS) {
		tell_channels(address(task));
		task = CAST(struct task_struct, address(task->real_parent));
		if (task->pid <= 1 || task->flags & PF_KTHREAD)
			break;
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	struct tr_note n = { .what = TR_EXIT, .always = 1 };
	u32 pid = task->tgid;

	if (task->pid != task->tgid)
		return 0;
	tell(&n);
	if (policy.follow)
		bpf_map_delete_elem(&followed, &pid);
	return 0;
}

static __always_inline int act(struct task_struct *target, u8 op, u32 flags, u16 signal,
			       s32 refused)
{
	struct tr_note n = {
		.what = TR_ACCESS,
		.op = op,
		.class = TG_C_TASK,
		.flags = flags,
		.peer = target->tgid,
		.port = signal,
		.refused = refused,
	};

	if (n.peer == bpf_get_current_pid_tgid() >> 32)
		return 0;
	return tell(&n);
}

SEC("fexit/security_task_kill")
int BPF_PROG(task_kill, struct task_struct *p, struct kernel_siginfo *info, int sig)
{
	return sig ? act(p, TG_OP_SIGNAL, TR_WRITES, sig, RESULT(ctx)) : 0;
}

SEC("fexit/security_ptrace_access_check")
int BPF_PROG(ptrace_access_check, struct task_struct *child, unsigned int mode)
{
	return mode & PTRACE_MODE_ATTACH ?
		       act(child, TG_OP_PTRACE, TR_READS | TR_WRITES, 0, RESULT(ctx)) :
		       0;
}

SEC("fexit/security_task_setpgid")
int BPF_PROG(task_setpgid, struct task_struct *p)
{
	return act(p, TG_OP_SIGNAL, TR_WRITES, 0, RESULT(ctx));
}

SEC("fexit/security_task_setnice")
int BPF_PROG(task_setnice, struct task_struct *p)
{
	return act(p, TG_OP_SCHED, TR_WRITES, 0, RESULT(ctx));
}

SEC("fexit/security_task_setscheduler")
int BPF_PROG(task_setscheduler, struct task_struct *p)
{
	return act(p, TG_OP_SCHED, TR_WRITES, 0, RESULT(ctx));
}

#endif
