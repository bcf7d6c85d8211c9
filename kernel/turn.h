/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whose turn it is: transactions run one at a time, system-wide, and wait for the
 * lock and for others' threads where their hook may sleep.
 */
#ifndef TIDEGATE_TURN_H
#define TIDEGATE_TURN_H

/* A step for hooks that may sleep, and the same for those that may not. */
#define TX_TWICE(type, step)               \
	__noinline type step##_held(void)  \
	{                                  \
		return step##_body(true);  \
	}                                  \
	__noinline type step##_now(void)   \
	{                                  \
		return step##_body(false); \
	}

/*
 * Waits a moment; false: it is being killed, and has to go. Reading another process's
 * memory lets others run under every preemption model. It is the daemon's, which blocks
 * its readers at times: RCU tasks waits for every task to have blocked, or to be outside
 * the kernel, and until then nothing is detached from a hook, nor attached to it again
 * (crates/monitor/src/quiescent.rs). Who is being killed does not block any more.
 * Without a daemon it is init's memory, and never that of a process below the top level,
 * which could keep it locked, and with it whoever waits here and everybody's turn.
 * A loop has at most TX_PAUSES rounds of 64 steps: they outlast every deadline.
 */
#define TX_PAUSES (1 << 23)
#define TX_KILLED (1ul << 8) /* SIGKILL, in a set of signals */
__noinline bool tx_pause(void)
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
	return !(bpf_get_current_task_btf()->pending.signal.sig[0] & TX_KILLED);
}

/* Is there to be another look before `until`? A hook that may not sleep looks at once. */
static __always_inline bool tx_again(u64 until, bool may_sleep)
{
	return bpf_ktime_get_ns() <= until && (!may_sleep || tx_pause());
}

/*
 * The next turn, for whom cannot wait for it: the hooks of Unix sockets may not sleep,
 * but the system calls that lead to them begin with one that does. Who can wait lets
 * the turn pass; it is over when it has been used, and soon if it is not. Nobody needs
 * one unless transactions are about.
 */
#define TX_TURN_NS 50000000ull
#define TX_RECENT_NS 200000000ull
u64 tx_turn_until;
u32 tx_turn_of; /* thread */

static __always_inline bool tx_is_free(bool may_sleep)
{
	return !may_sleep || tx_turn_of == (u32)bpf_get_current_pid_tgid() ||
	       bpf_ktime_get_ns() > tx_turn_until;
}

static __always_inline bool tx_take(bool may_sleep)
{
	return tx_is_free(may_sleep) && !__sync_val_compare_and_swap(&tx.lock, 0, 1);
}

/*
 * Waits for the lock, or, if that is not `wanted`, only so long; false: it was not to be
 * had in time. Who waits is at rest, and may fall meanwhile with whoever has the lock: all
 * that its operation changes is to be decided after that.
 */
__noinline bool tx_queue(u64 ns, bool wanted)
{
	struct tg_subject *s = subject_made(bpf_get_current_task_btf());
	u64 until = bpf_ktime_get_ns() + ns;
	bool got = false;
	u32 i;

	if (!s)
		return false;
	s->waits = 1;
	bpf_for(i, 0, TX_PAUSES) {
		got = wanted && tx_take(true);
		if (got || !tx_again(until, true))
			break;
	}
	s->waits = 0;
	return got;
}

/* Takes the lock; false: it was not to be had in time. */
static __always_inline bool tx_lock_held(void)
{
	return tx_take(true) || tx_queue(TX_QUEUE_NS, true);
}

__noinline bool tx_lock_now(void)
{
	u64 until = bpf_ktime_get_ns() + TX_SPIN_NS;
	u32 i;

	bpf_for(i, 0, TX_PAUSES) {
		if (tx_take(false))
			return true;
		if (!tx_again(until, false))
			break;
	}
	return false;
}

/* Whose threads do not come to rest leaves the others as much time as it took from them. */
static __always_inline void tx_stand_back(void)
{
	tx_queue(TX_SETTLE_NS, false);
}

static __always_inline void tx_unlock(void)
{
	tx.ended = bpf_ktime_get_ns();
	tx.recent = 1;
	__sync_lock_test_and_set(&tx.lock, 0);
}

static __always_inline bool tx_is_recent(void)
{
	if (tx.recent && bpf_ktime_get_ns() - tx.ended > TX_RECENT_NS)
		tx.recent = 0;
	return tx.recent;
}

/* Lets a running transaction finish, and takes the next turn. */
__noinline int tx_take_turn(void)
{
	if (!(tx.lock || tx_is_recent()) || !tx_lock_held())
		return 0;
	tx_turn_of = bpf_get_current_pid_tgid();
	tx_turn_until = bpf_ktime_get_ns() + TX_TURN_NS;
	__sync_lock_test_and_set(&tx.lock, 0);
	return 0;
}

static __always_inline void tx_turn_used(void)
{
	if (tx_turn_of == (u32)bpf_get_current_pid_tgid())
		tx_turn_until = 0;
}

/* May the current subject's level still be put back? Then waits for that; false: in vain. */
__noinline bool tx_let_end(void)
{
	struct tg_subject *s = subject_current();

	if (!s || !s->from)
		return true;
	if (!tx_lock_held())
		return false;
	__sync_lock_test_and_set(&tx.lock, 0);
	return true;
}

#endif
