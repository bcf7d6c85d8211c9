/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The demotion transaction: all that must be true before a subject that falls
 * may see the low data that makes it fall.
 *
 * Invariants, which hold between transactions:
 *   - the tasks of one address space, of one descriptor table, of one working
 *     directory, root and umask (CLONE_FS), of one priority for disks (CLONE_IO) and
 *     of one list of semaphores to be undone (CLONE_SYSVSEM) have one level;
 *   - no reader of a channel (pipe, FIFO, socketpair, memfd) stands above any of
 *     its writers, so that pipe reads, splice, tee and vmsplice need no check;
 *   - no subject has a shared writable mapping of an object above it;
 *   - a descriptor through which a subject could write to a higher object exists
 *     only while the guard on file_permission is attached, and in the tables of tasks
 *     that are noted for it (held.h).
 *
 * Levels only fall and sharing arises only by fork or through a hook, so what a
 * fall touches is known when it happens. The demoting operation is held:
 *   1. find the tasks that fall with it: a fixpoint over channels, address spaces, tables, what calls
 *      have in hand (hand.h) and what else clone(2) shares; at its end also over what is moved about in a table
 *      while it is read (restless.h), if ends may be there that were not met (references.h),
 *      or if one of those that fall ran while their descriptors were looked at;
 *   2. refuse if one of them maps an object shared and writable, or has
 *      asynchronous I/O that could still write;
 *   3. if one of them has a descriptor open for writing, have the guard attached: a
 *      write that stalls may not begin when only the level is known. Each of them is
 *      noted as one that may hold what is revoked (held.h);
 *   4. publish the new levels: from here on every hook decides by them what is
 *      changed; a task that would observe waits for the end, as the levels may be put back.
 *      Wait until each of their other threads has left any system call that it entered
 *      under its old level (a write in flight, an open or a fork about to finish), then
 *      look again for tasks that were born meanwhile, and for descriptors: one that needs a
 *      guard that was not there puts the levels back, and 3 comes again;
 *   5. write the cause into the history, let the operation go on.
 * What cannot be completed in time puts the levels back and refuses. So does whoever takes the turn from one that has
 * had it long enough and waits (lock.h); that one tries again.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_TRANSACTION_H
#define TIDEGATE_LOMAC_DEMOTE_TRANSACTION_H

#include "core/wait.h"
#include "lomac/demote/fifo.h"
#include "lomac/demote/hand.h"
#include "lomac/demote/lock.h"
#include "lomac/demote/pipeline.h"
#include "lomac/demote/serve.h"

/*
 * Its step was not taken: the program that takes them is not attached, and what was begun stays as it is until somebody's turn
 * puts it back. Or there were more of them than could be.
 */
static __always_inline int tx_unserved(struct tg_note *n)
{
	tx.at = TX_AT_BACK;
	tx_serve();
	tx_abandon();
	n->reason = TG_R_BUSY;
	return -EAGAIN;
}

/* Waits for readers of a FIFO that are on their way from their hook. As all that waits: 0, or TX_LOST. */
static __always_inline int tx_fifo(struct tg_fifo *fifo, bool may_sleep, u32 mine)
{
	u64 until = bpf_ktime_get_ns() + TX_SPIN_NS;
	int err = 0;
	u32 i;

	if (CAST(struct file, tx.join)->f_mode & FMODE_WRITE) {
		bpf_for(i, 0, WAIT_ROUNDS) {
			if (!fifo_comes(fifo))
				break;
			err = tx_rest(until, may_sleep, mine);
			if (err == TX_LOST)
				return TX_LOST;
			if (err)
				break;
		}
	}
	fifo_look(fifo);
	return 0;
}

/*
 * Demotes the current subject to `to`. 0 when its operation may go on; -EACCES or
 * -EAGAIN, with the reason in the note, when it has to be refused; TX_LOST: nothing has come of it (lock.h).
 */
static __always_inline int tx_demote(u8 to, u64 join, u64 join_unix, u64 join_self,
				     struct tg_fifo *fifo, bool reopen, struct tg_note *n,
				     bool may_sleep)
{
	u32 mine = 0, failing, i;
	int err = 0;

	/* made here: where others make one at the same moment, the steps' program is given none by 6.12 */
	if (to == TX_STAY || subject_made(bpf_get_current_task_btf()))
		mine = may_sleep ? tx_lock_sleepable() : tx_lock_atomic();
	if (!mine) {
		n->reason = TG_R_BUSY;
		return -EAGAIN;
	}
	if (!tx_enter(mine))
		return TX_LOST;
	tx.to = to;
	tx.join = join;
	tx.join_unix = join_unix;
	tx.join_self = join_self;
	tx.reopen = reopen;
	tx.fifo = !!fifo;
	tx.may_sleep = may_sleep;
	tx_cause = *n;
	tx.at = TX_AT_BEGIN;
	if (!tx_serve())
		return tx_unserved(n);
	if (fifo && tx_fifo(fifo, may_sleep, mine))
		return TX_LOST;
	bpf_for(i, 0, WAIT_ROUNDS) {
		if (!tx_serve())
			return tx_unserved(n);
		if (tx.at == TX_AT_DONE)
			break;
		err = tx.rests ? tx_rest(tx.until, may_sleep, mine) : 0;
		if (err == TX_LOST)
			return TX_LOST;
		tx.over = !!err;
	}
	if (tx.at != TX_AT_DONE)
		return tx_unserved(n);
	n->reason = tx_cause.reason;
	err = tx.verdict;
	if (!err && fifo)
		err = fifo_join(fifo, n);
	failing = tx.failing;
	tx_unlock();
	if (may_sleep && failing)
		tx_stand_back();
	return err;
}

/* For hooks that may sleep, and for those that may not: they look again for five milliseconds. */
__noinline int demote_sleepable(u8 to, struct tg_note *n)
{
	pipeline_let_go(to);
	return n ? tx_demote(to, 0, 0, 0, NULL, false, n, true) : -EAGAIN;
}

__noinline int demote_atomic(u8 to, struct tg_note *n)
{
	return n ? tx_demote(to, 0, 0, 0, NULL, false, n, false) : -EAGAIN;
}

/* The current subject gets a descriptor of a channel: levels are made to fit first. */
__noinline int join_channel(u64 file, struct tg_fifo *fifo, bool reopen, struct tg_note *n)
{
	return n ? tx_demote(TX_STAY, file, 0, 0, fifo, reopen, n, true) : -EAGAIN;
}

/* It sends to a Unix socket, or connects to it; then `self` is its own, if somebody else may have that. */
__noinline int join_unix(u64 sock, u64 self, struct tg_note *n)
{
	return n ? tx_demote(TX_STAY, 0, sock, self, NULL, false, n, false) : -EAGAIN;
}

#endif
