/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whose turn it is: transactions run one at a time, system-wide, and wait for the
 * lock and for others' threads where their hook may sleep.
 *
 * The lock's word is 0, a ticket of the kernel's with TX_KERNEL, or, while user space has it, a
 * process's id, and above it a number that tells its turns apart (crates/monitor/src/turn.rs).
 * While its holder works, TX_INSIDE is set, and nobody else touches what is in `tx`. While it waits
 * for others that bit is not set, and the first in turn may take the lock once the holder's time is
 * over, whether that one runs or not (turn_ends of lib/budget.h): it puts back what was begun, and
 * the holder finds another ticket when it wants to go on. So whoever is given no processor, or
 * whose threads do not come to rest, keeps nobody.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_LOCK_H
#define TIDEGATE_LOMAC_DEMOTE_LOCK_H

#include "lib/preempt.h"
#include "core/wait.h"
#include "lomac/budget.h"
#include "lomac/demote/serve.h"
#include "lomac/demote/state.h"

#define TX_KERNEL (1u << 31)
#define TX_INSIDE (1u << 30)
#define TX_LOST (-EBUSY) /* the turn went to another: everything is as before it */

/* Once more, and again, as a turn may be lost. Written out: a counter takes room on the stack. */
#define TX_TRIED(call)                \
	({                            \
		int tried = call;     \
		if (tried == TX_LOST) \
			tried = call; \
		if (tried == TX_LOST) \
			tried = call; \
		if (tried == TX_LOST) \
			tried = call; \
		tried;                \
	})

/* Begins to work, or goes on after a wait; false: the turn has been lost meanwhile. */
static __always_inline bool tx_enter(u32 mine)
{
	work_begin();
	if (__sync_val_compare_and_swap(&tx.lock, mine, mine | TX_INSIDE) == mine)
		return true;
	work_end();
	return false;
}

/* Is about to wait. */
static __always_inline void tx_leave(u32 mine)
{
	__sync_lock_test_and_set(&tx.lock, mine);
	work_end();
}

/*
 * As wait_again(), for a task that has the turn. 0: there is to be another look; -EAGAIN: the time is over, or the current task is being
 * killed; TX_LOST: the turn is another's, and nothing of `tx` is to be touched any more.
 */
static __always_inline int tx_rest(u64 until, bool may_sleep, u32 mine)
{
	bool alive;

	if (bpf_ktime_get_ns() > until)
		return -EAGAIN;
	if (!may_sleep)
		return 0;
	tx_leave(mine);
	alive = wait_moment();
	if (!tx_enter(mine))
		return TX_LOST;
	return alive ? 0 : -EAGAIN;
}

/*
 * The next turn, for tasks that cannot wait for it: the hooks of Unix sockets may not sleep, but
 * the system calls that lead to them begin with one that does. A task that can wait lets the turn
 * pass, unless it is higher; it is over when it has been used, and soon if it is not. Nobody needs
 * one unless transactions are about.
 */
#define TX_TURN_NS 50000000ull
#define TX_RECENT_NS 200000000ull
u64 tx_turn_until;
u32 tx_turn_of; /* thread */
u32 tx_turn_level;

static __always_inline bool tx_is_free(u32 level)
{
	return tx_turn_of == (u32)bpf_get_current_pid_tgid() || level > tx_turn_level ||
	       bpf_ktime_get_ns() > tx_turn_until;
}

/* Of each level the next of the tasks that wait. One that does not say so again soon has gone. */
#define TX_BEAT_NS 20000000ull
struct tx_waiter {
	u64 beat;
	u32 ticket;
	u32 user;
} tx_waiters[TG_LEVELS];

static __always_inline bool tx_is_next(const struct turn_claim *asks, u32 mine, u64 now)
{
	struct tx_waiter *w;
	u32 i;

	bpf_for(i, asks->level + 1, TG_LEVELS)
		if (now < tx_waiters[BOUND(i, TG_LEVELS)].beat + TX_BEAT_NS)
			return false;
	w = &tx_waiters[BOUND(asks->level, TG_LEVELS)];
	if (w->ticket != mine && now < w->beat + TX_BEAT_NS &&
	    !turn_before(asks->user, mine, w->user, w->ticket, tx.last_user))
		return false;
	w->ticket = mine;
	w->user = asks->user;
	w->beat = now;
	return true;
}

/* Takes the lock, if it is free or its holder's time is over. The holder does not work yet: see tx_enter. */
static __always_inline bool tx_take(const struct turn_claim *asks, u32 mine, bool may_sleep)
{
	u64 now = bpf_ktime_get_ns();
	u32 lock = READ_ONCE(tx.lock);

	if (may_sleep && (!tx_is_free(asks->level) || !tx_is_next(asks, mine, now)))
		return false;
	if (lock && (lock & TX_INSIDE || !turn_ends(&tx.turn, asks, now)))
		return false;
	if (__sync_val_compare_and_swap(&tx.lock, lock, mine) != lock)
		return false;
	tx.turn.since = now;
	tx.turn.level = asks->level;
	tx.turn.user = tx.last_user = asks->user;
	if (tx_waiters[BOUND(asks->level, TG_LEVELS)].ticket == mine)
		tx_waiters[BOUND(asks->level, TG_LEVELS)].beat = 0;
	return true;
}

static __always_inline u32 tx_ticket(void)
{
	return TX_KERNEL | (__sync_fetch_and_add(&tx.tickets, 1) & (TX_INSIDE - 1));
}

static __always_inline struct turn_claim tx_claim(void)
{
	struct turn_claim asks = { .level = subject_level(subject_current()),
				   .user = payer_current() };

	return asks;
}

/* Takes the lock, if it is to be had at once. */
__noinline bool tx_try(u32 mine, bool may_sleep)
{
	struct turn_claim asks = tx_claim();

	return tx_take(&asks, mine, may_sleep);
}

/*
 * Waits for the lock, or, if that is not `wanted`, only so long; false: it was not to be
 * had in time. A task that waits is at rest, and may fall meanwhile with whoever has the lock: all
 * that its operation changes is to be decided after that.
 */
__noinline bool tx_queue(u64 ns, u32 mine, bool wanted)
{
	struct tg_subject *s = subject_made(bpf_get_current_task_btf());
	u64 until = bpf_ktime_get_ns() + ns;
	bool got = false;
	u32 i;

	if (!s)
		return false;
	s->waited++;
	s->waits = 1;
	bpf_for(i, 0, WAIT_ROUNDS) {
		got = wanted && tx_try(mine, true);
		if (got || !wait_again(until, true))
			break;
	}
	s->waits = 0;
	return got;
}

/* Takes the lock: its ticket; 0: it was not to be had in time. */
static __always_inline u32 tx_lock_sleepable(void)
{
	u32 mine = tx_ticket();

	return tx_try(mine, true) || tx_queue(TX_QUEUE_NS, mine, true) ? mine : 0;
}

__noinline u32 tx_lock_atomic(void)
{
	u64 until = bpf_ktime_get_ns() + TX_SPIN_NS;
	u32 i, mine = tx_ticket();

	bpf_for(i, 0, WAIT_ROUNDS) {
		if (tx_try(mine, false))
			return mine;
		if (!wait_again(until, false))
			break;
	}
	return 0;
}

/* Whose threads do not come to rest leaves the others as much time as it took from them. */
static __always_inline void tx_stand_back(void)
{
	tx_queue(TX_SETTLE_NS, 0, false);
}

/* For the task that is inside. */
static __always_inline void tx_unlock(void)
{
	tx.ended = bpf_ktime_get_ns();
	tx.recent = 1;
	tx.open = 0;
	__sync_lock_test_and_set(&tx.lock, 0);
	work_end();
}

/* The same where what was begun is neither ended nor put back: the next turn begins with that. */
static __always_inline void tx_abandon(void)
{
	__sync_lock_test_and_set(&tx.lock, 0);
	work_end();
}

/* Gives back a turn in which nothing has been begun. What an earlier turn left, which was lost, is put back; false: it is not. */
static __always_inline bool tx_let_go(u32 mine)
{
	bool whole;

	if (!tx_enter(mine))
		return true;
	if (tx.open) {
		tx.at = TX_AT_BACK;
		tx_serve();
	}
	whole = !tx.open;
	tx_abandon();
	return whole;
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
	u32 mine;

	if (!(tx.lock || tx_is_recent()))
		return 0;
	mine = tx_lock_sleepable();
	if (!mine)
		return 0;
	tx_turn_of = bpf_get_current_pid_tgid();
	tx_turn_level = tx.turn.level;
	tx_turn_until = bpf_ktime_get_ns() + TX_TURN_NS;
	tx_let_go(mine);
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
	u32 mine;

	if (!s || !s->from)
		return true;
	mine = tx_lock_sleepable();
	if (!mine)
		return false;
	return tx_let_go(mine);
}

#endif
