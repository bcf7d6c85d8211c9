/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How an operation waits: for a guard, for its turn, for other threads. */
#ifndef TIDEGATE_CORE_WAIT_H
#define TIDEGATE_CORE_WAIT_H

#include "core/subject.h"

#define GUARD_WAIT_NS 10000000000ull /* for the daemon to attach the guard */

/*
 * Waits a moment; false: it is being killed, and has to go. Reading another process's
 * memory lets others run under every preemption model. It is the daemon's, which blocks
 * its readers at times: RCU tasks waits for every task to have blocked, or to be outside
 * the kernel, and until then nothing is detached from a hook, nor attached to it again
 * (crates/monitor/src/quiescent.rs). A task that is being killed does not block any more.
 * Without a daemon it is init's memory, and never that of a process below the top level,
 * which could keep it locked, and with it whoever waits here and everybody's turn.
 * A loop has at most WAIT_ROUNDS rounds of 64 steps: they outlast every deadline.
 */
#define WAIT_ROUNDS (1 << 23)
#define WAIT_KILLED (1ul << 8) /* SIGKILL, in a set of signals */
__noinline bool wait_moment(void)
{
	struct task_struct *whose = bpf_task_from_pid(policy.daemon);
	u64 word;
	u32 i;

	if (whose && (!UNTRUSTED(whose)->mm || subject_label(whose).level < policy.top)) {
		bpf_task_release(whose);
		whose = NULL;
	}
	if (!whose)
		whose = bpf_task_from_pid(1);
	if (whose) {
		if (UNTRUSTED(whose)->mm && subject_label(whose).level == policy.top) {
			u64 there = UNTRUSTED(whose)->mm->arg_start;

			bpf_for(i, 0, 64)
				bpf_copy_from_user_task(&word, sizeof(word), (void *)there, whose,
							0);
		}
		bpf_task_release(whose);
	}
	return !(bpf_get_current_task_btf()->pending.signal.sig[0] & WAIT_KILLED);
}

/* Is there to be another look before `until`? A hook that may not sleep looks at once. */
static __always_inline bool wait_again(u64 until, bool may_sleep)
{
	return bpf_ktime_get_ns() <= until && (!may_sleep || wait_moment());
}

/* Waits until user space has attached a guard, which it says in `armed`; false: it was not in time. */
static __always_inline bool guard_wait(u32 *armed)
{
	u64 until = bpf_ktime_get_ns() + GUARD_WAIT_NS;
	u32 i;

	bpf_for(i, 0, WAIT_ROUNDS) {
		if (READ_ONCE(*armed))
			return true;
		if (!wait_again(until, true))
			break;
	}
	return false;
}

#endif
