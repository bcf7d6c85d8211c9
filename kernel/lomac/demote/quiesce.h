/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When is a thread at rest: is nothing under way that it began under its old level? */
#ifndef TIDEGATE_LOMAC_DEMOTE_QUIESCE_H
#define TIDEGATE_LOMAC_DEMOTE_QUIESCE_H

#include "lib/arch.h"

/* Calls that only wait or observe. */
#define CALLS_AT_REST(word)                                                                       \
	CALL(word, read) | CALL(word, poll) | CALL(word, pread64) | CALL(word, readv) |           \
		CALL(word, select) | CALL(word, sched_yield) | CALL(word, pause) |                \
		CALL(word, nanosleep) | CALL(word, accept) | CALL(word, recvfrom) |               \
		CALL(word, wait4) | CALL(word, flock) | CALL(word, fsync) |                       \
		CALL(word, fdatasync) | CALL(word, rt_sigtimedwait) | CALL(word, rt_sigsuspend) | \
		CALL(word, futex) | CALL(word, restart_syscall) | CALL(word, clock_nanosleep) |   \
		CALL(word, epoll_wait) | CALL(word, waitid) | CALL(word, pselect6) |              \
		CALL(word, ppoll) | CALL(word, epoll_pwait) | CALL(word, accept4) |               \
		CALL(word, epoll_pwait2) | CALL(word, futex_waitv)
const u64 tx_calls_at_rest[CALLS / 64] = CALL_TABLE(CALLS_AT_REST);

/*
 * A thread is at rest if it is in user space, or in a call that can only wait
 * or observe: nothing it passed a hook for under its old level is under way.
 * A 32-bit call is not at rest. recvmsg is not among them: it may be about to install a descriptor, nor
 * connect: it may be about to join a socket.
 */
static __always_inline bool tx_at_rest(struct task_struct *t)
{
	s32 nr = CALL_NUMBER(call_regs(t));

	/* it writes its memory to a file */
	if (t->flags & PF_DUMPCORE)
		return false;
	/* a stop of its group is taken on the way back to user space, */
	if (nr < 0 || t->__state & TASK_STOPPED)
		return true;
	/* and so is a tracer's, but for the events that a call reports (exec, fork) */
	if (t->__state & TASK_TRACED &&
	    (!(t->exit_code >> 8) || t->exit_code >> 8 == PTRACE_EVENT_STOP))
		return true;
	if (CALL_IS_32(t))
		return false;
	return CALL_IS_IN(tx_calls_at_rest, nr);
}

/*
 * Since when a thread has had no processor, as how often it was taken off one, and 1; 0: it has
 * one. It is counted before it is off. So a thread that has the same number after a look at its
 * descriptors as before has not moved one meanwhile.
 */
static __always_inline u64 task_off(struct task_struct *t)
{
	u8 runs = 1;

	bpf_probe_read_kernel(&runs, sizeof(runs),
			      (void *)address(t) +
				      bpf_core_field_offset(struct task_struct, on_cpu));
	return runs ? 0 : t->nvcsw + t->nivcsw + 1;
}

/*
 * Has another process begun to trace it (PTRACE_ATTACH, PTRACE_SEIZE)? That asked about its level before, and has not got hold
 * of it yet. By an exec the lock is its own.
 */
static __always_inline bool tx_is_attached(struct task_struct *t)
{
	u64 owner = UNTRUSTED(t)->signal->cred_guard_mutex.owner.counter & ~7ull;

	return owner && CAST(struct task_struct, owner)->tgid != t->tgid;
}

/*
 * Is this thread only waiting for a child that vfork gave its memory to? What it waits at lies on its own stack. Its child
 * may be somebody else's by name (CLONE_PARENT).
 */
static __always_inline bool tx_waits_for(struct task_struct *t, struct task_struct *child)
{
	u64 at = (u64)UNTRUSTED(child)->vfork_done;

	return at > (u64)UNTRUSTED(t)->stack && at < (u64)bpf_task_pt_regs(t);
}

#endif
