/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptors that reach a task, whoever has them. By a performance counter one says when, and how often, the task is looked at or
 * gets a signal (sigtrap); a pidfd of CLONE_PIDFD_AUTOKILL kills its process as it is closed for the last time. The kernel asks about
 * the task only as they are made. Nobody below the task keeps or gets such a descriptor.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_REACH_H
#define TIDEGATE_LOMAC_DEMOTE_REACH_H

#include "core/policy.h"
#include "core/subject.h"
#include "lib/inode_kind.h"
#include "lomac/demote/state.h"

#define COUNTERS 4096 /* of one list that are looked at; what is longer counts as above */

/* Where what a descriptor reaches is. */
enum reach {
	REACH_BELOW,
	REACH_ABOVE,
	REACH_UNSURE, /* it changed while it was looked at */
};

#define COUNTER_COSTS 64 /* as places of a table */
#define PIDFD_AUTOKILL O_TRUNC

/* Is the task that is counted above the level? One that has ended is not; all that a processor runs is. */
static __always_inline bool counted_is_above(u64 task, u32 level)
{
	struct task_struct *t;
	bool above;

	if (!task)
		return true;
	t = bpf_task_from_pid(CAST(struct task_struct, task)->pid);
	if (!t)
		return false;
	above = address(t) == task && !(t->flags & PF_EXITING) && subject_label(t).level > level;
	bpf_task_release(t);
	return above;
}

/*
 * Is it a counter of a task above the level? With `inherit` it has copies of that task's children, which are set as it is. In an
 * RCU section what has left such a list is there still, and leads to itself: then the rest of the list was not seen.
 */
__noinline u32 event_reach(u64 event, u32 level)
{
	struct perf_event *counter = CAST(struct perf_event, event);
	u64 head = event + bpf_core_field_offset(struct perf_event, child_list);
	struct list_head *at;
	u32 i;

	if (counted_is_above(address(counter->hw.target), level))
		return REACH_ABOVE;
	at = counter->child_list.next;
	bpf_for(i, 0, COUNTERS) {
		struct list_head *next;
		struct perf_event *copy;

		if (!at || address(at) == head)
			return REACH_BELOW;
		copy = CAST(struct perf_event,
			    address(at) - bpf_core_field_offset(struct perf_event, child_list));
		if (counted_is_above(address(copy->hw.target), level))
			return REACH_ABOVE;
		next = CAST(struct list_head, address(at))->next;
		if (next == at)
			return REACH_UNSURE;
		at = next;
	}
	return REACH_ABOVE;
}

/*
 * Has a faller opened one, whoever has its descriptor now? By PR_TASK_PERF_EVENTS_ENABLE it switches that on and off. As all that a
 * transaction looks at, these are counted.
 */
__noinline u32 opened_reach(u64 task, u32 level)
{
	u64 head = task + bpf_core_field_offset(struct task_struct, perf_event_list);
	struct list_head *at = CAST(struct task_struct, task)->perf_event_list.next, *next;
	u32 i, reach;

	bpf_for(i, 0, COUNTERS) {
		if (!at || address(at) == head)
			return REACH_BELOW;
		reach = event_reach(
			address(at) - bpf_core_field_offset(struct perf_event, owner_entry), level);
		tx.looked += COUNTER_COSTS;
		if (reach || tx.looked > TX_LOOKS)
			return reach ? reach : REACH_UNSURE;
		next = CAST(struct list_head, address(at))->next;
		if (next == at)
			return REACH_UNSURE;
		at = next;
	}
	return REACH_ABOVE;
}

/* A task that reaches above does not fall; what is not sure is looked at again. */
static __always_inline void tx_reaches(u32 reach)
{
	tx.mapping += reach == REACH_ABOVE;
	tx.overflow |= reach == REACH_UNSURE;
}

/* Where it reaches, if the file is a counter. */
__noinline u32 counter_reach(u64 file, u32 level)
{
	struct file *f = CAST(struct file, file);
	char name[8] = {};

	if (level >= policy.top ||
	    CAST(struct inode, f->f_inode)->i_sb->s_magic != ANON_INODE_MAGIC)
		return REACH_BELOW;
	bpf_probe_read_kernel(name, sizeof(name),
			      CAST(struct dentry, address(f->f_path.dentry))->d_name.name);
	return __builtin_memcmp(name, "[perf_ev", sizeof(name)) ?
		       REACH_BELOW :
		       event_reach(address(f->private_data), level);
}

/* Is the file a pidfd whose end is that of a process above the level? Of no other pidfd the flag stays, as an open takes it away. */
__noinline bool pidfd_kills_above(u64 file, u32 level)
{
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, f->f_inode);
	struct task_struct *t;
	bool above;
	u64 pid;

	if (level >= policy.top || !(f->f_flags & PIDFD_AUTOKILL) ||
	    inode->i_sb->s_magic != PIDFS_MAGIC)
		return false;
	pid = address(inode->i_private);
	t = bpf_task_from_pid(CAST(struct pid, pid)->numbers[0].nr);
	if (!t)
		return false;
	above = address(t->thread_pid) == pid && subject_label(t).level > level;
	bpf_task_release(t);
	return above;
}

#endif
