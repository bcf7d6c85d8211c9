/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A moment's wait before a fall, for a shell that makes a pipeline. A pipe's readers fall by channels.h.
 *
 * A shell that makes a pipeline holds the end that reads from its first program until it has
 * started the next. A program that falls by then would take the shell along, which is about to let
 * go. So a task that falls waits a moment for an ancestor that is awake and could read what it
 * writes. One that waits itself, for input, a signal or a child, holds the end on purpose, and
 * falls.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_PIPELINE_H
#define TIDEGATE_LOMAC_DEMOTE_PIPELINE_H

#include "lomac/demote/lock.h"

#define PIPELINE_NS 250000000ull
#define PIPELINE_FOREFATHERS 4
#define PIPELINE_FDS 64 /* the first of its descriptors that are looked at */

/* The pipe of a task's descriptor, if it has that mode, by its inode's address. */
static __always_inline u64 pipe_of(struct fdtable *fdt, u32 fd, fmode_t mode)
{
	struct inode *inode;
	struct file *file;
	u64 at = 0;

	bpf_probe_read_kernel(&at, sizeof(at), fdt->fd + fd);
	if (!at)
		return 0;
	file = CAST(struct file, at);
	inode = CAST(struct inode, address(file->f_inode));
	return file->f_mode & mode && (inode->i_mode & S_IFMT) == S_IFIFO ? address(inode) : 0;
}

/* Has this task a descriptor that reads what comes out of one of these pipes? */
static __noinline bool pipe_is_read(u64 task, u64 output, u64 error)
{
	struct task_struct *t = CAST(struct task_struct, task);
	struct fdtable *fdt;
	u32 i;

	if (!t->files)
		return false;
	fdt = CAST(struct files_struct, address(t->files))->fdt;
	bpf_for(i, 0, PIPELINE_FDS) {
		u64 pipe;

		if (i >= fdt->max_fds)
			break;
		pipe = pipe_of(fdt, i, FMODE_READ);
		if (pipe && (pipe == output || pipe == error))
			return true;
	}
	return false;
}

/* Would this thread fall with a writer of that level? */
static __always_inline bool pipe_drags(u32 pid, u8 to)
{
	struct task_struct *t = bpf_task_from_pid(pid);
	struct tg_label label;

	if (!t)
		return false;
	label = subject_label(t);
	bpf_task_release(t);
	return label.level > to && !(label.attrs & TG_NODEMOTE);
}

/* Is a forefather that would fall with the current task awake, and has what reads its output? */
__noinline bool pipeline_is_made(u8 to)
{
	struct task_struct *me = UNTRUSTED(bpf_get_current_task_btf()), *t = me;
	u64 output, error;
	bool made = false;
	u32 i;

	/* a parent that vfork keeps waiting cannot let go */
	if (!me->files || me->vfork_done)
		return false;
	bpf_rcu_read_lock();
	output = pipe_of(me->files->fdt, 1, FMODE_WRITE);
	error = pipe_of(me->files->fdt, 2, FMODE_WRITE);
	bpf_for(i, 0, PIPELINE_FOREFATHERS) {
		if (!output && !error)
			break;
		t = CAST(struct task_struct, address(t->real_parent));
		if (t->pid <= 1)
			break;
		/* a task that shares memory or descriptors with it falls with it in any case */
		if (t->exit_state || t->__state & (TASK_INTERRUPTIBLE | TASK_STOPPED) ||
		    address(t->mm) == address(me->mm) || address(t->files) == address(me->files))
			continue;
		made = pipe_is_read(address(t), output, error) && pipe_drags(t->pid, to);
		if (made)
			break;
	}
	bpf_rcu_read_unlock();
	return made;
}

/* Waits for that; a task that waits is at rest, and may fall meanwhile with whoever else falls. */
__noinline int pipeline_let_go(u8 to)
{
	struct tg_subject *s;
	u64 until;
	u32 i;

	if (!pipeline_is_made(to))
		return 0;
	s = subject_made(bpf_get_current_task_btf());
	if (!s)
		return 0;
	until = bpf_ktime_get_ns() + PIPELINE_NS;
	s->waited++;
	s->waits = 1;
	bpf_for(i, 0, WAIT_ROUNDS) {
		if (!wait_again(until, true) || !pipeline_is_made(to))
			break;
	}
	s->waits = 0;
	return 0;
}

#endif
