/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When is a thread at rest: is nothing under way that it began under its old level? */
#ifndef TIDEGATE_LOMAC_DEMOTE_QUIESCE_H
#define TIDEGATE_LOMAC_DEMOTE_QUIESCE_H

#include "lib/call.h"
#include "lib/verifier.h"

#define TX_CALL(nr) (1ull << ((nr) & 63))
const u64 tx_calls_at_rest[8] = {
	/* read, poll, pread64, readv, select, sched_yield, pause, nanosleep, accept, recvfrom, wait4 */
	TX_CALL(0) | TX_CALL(7) | TX_CALL(17) | TX_CALL(19) | TX_CALL(23) | TX_CALL(24) |
		TX_CALL(34) | TX_CALL(35) | TX_CALL(43) | TX_CALL(45) | TX_CALL(61),
	/* flock, fsync, fdatasync */
	TX_CALL(73) | TX_CALL(74) | TX_CALL(75),
	/* rt_sigtimedwait, rt_sigsuspend */
	TX_CALL(128) | TX_CALL(130),
	/* futex, restart_syscall, clock_nanosleep, epoll_wait, waitid */
	TX_CALL(202) | TX_CALL(219) | TX_CALL(230) | TX_CALL(232) | TX_CALL(247),
	/* pselect6, ppoll, epoll_pwait, accept4 */
	TX_CALL(270) | TX_CALL(271) | TX_CALL(281) | TX_CALL(288),
	0,
	/* epoll_pwait2 */
	TX_CALL(441),
	/* futex_waitv */
	TX_CALL(449),
};

/*
 * A thread is at rest if it is in user space, or in a call that can only wait
 * or observe: nothing it passed a hook for under its old level is under way.
 * The numbers are x86-64's: a 32-bit call is not at rest. recvmsg is not among them: it may be about to install a descriptor, nor
 * connect: it may be about to join a socket.
 */
static __always_inline bool tx_at_rest(struct task_struct *t)
{
	s32 nr = call_of(t);

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
	if (t->thread_info.status & TS_COMPAT)
		return false;
	return nr < 512 && tx_calls_at_rest[BOUND(nr >> 6, 8)] >> (nr & 63) & 1;
}

/*
 * Since when a thread has had no processor, as how often it was taken off one, and 1; 0: it has one. It is counted
 * before it is off. So who has the same number after a look at its descriptors as before has not moved one meanwhile.
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
