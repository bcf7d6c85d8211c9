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
#include "lomac/demote/pipeline.h"
#include "lomac/demote/restless.h"
#include "lomac/demote/scan.h"
#include "lomac/demote/spread.h"

#define TX_ROUNDS 16
#define TX_STAY 0xff /* the level it has */

static __always_inline int tx_fail(u8 reason, struct tg_note *n)
{
	tx_each(TX_BACK, 0);
	n->reason = reason == TG_R_BUSY && tx.crowded ? TG_R_TABLE_FULL : reason;
	return reason == TG_R_MAPPING || reason == TG_R_ASYNC ? -EACCES : -EAGAIN;
}

static __always_inline bool tx_armed(void)
{
	return READ_ONCE(tx.guard_armed);
}

/* Has the guard attached. The order is the daemon's in reverse: see guard.rs. As all that waits: 0, or what tx_rest says. */
static __always_inline int tx_guard(bool may_sleep, u32 mine)
{
	int err;
	u32 i;

	__builtin_memset(&tx_note, 0, sizeof(tx_note));
	tx_note.kind = TG_E_GUARD;
	tx_note.source = ~0u;
	audit(&tx_note);
	if (!may_sleep)
		return -EAGAIN;
	tx.deadline = bpf_ktime_get_ns() + GUARD_WAIT_NS;
	bpf_for(i, 0, WAIT_ROUNDS) {
		if (tx_armed()) {
			tx.deadline = bpf_ktime_get_ns() + TX_SETTLE_NS;
			return 0;
		}
		err = tx_rest(tx.deadline, true, mine);
		if (err)
			return err;
	}
	return -EAGAIN;
}

/* Looks up the named sockets that the pass met first; then another pass is due. */
static __always_inline void tx_admit(void)
{
	u32 i;

	tx.makes = 1;
	bpf_for(i, 0, tx.pending) {
		u64 key = tx_pending[BOUND(i, TX_PENDING)];
		u8 admits = unix_admits(key);
		struct tg_channel *c = channel(key);

		/* whether its reader falls is not known */
		if (admits == UNIX_LATER)
			tx.failed = 1;
		if (c)
			c->admits = admits;
		tx.changed = 1;
	}
}

/* Which tasks fall: passes over all tasks until one changes nothing. */
static __always_inline bool tx_fixpoint(void)
{
	u32 i;

	bpf_for(i, 0, TX_ROUNDS) {
		tx.changed = 0;
		tx.pass++;
		tx.writable = tx.join_readers = tx.fifo_seen = tx.pending = tx.overflow = 0;
		tx.rings = tx.above = tx.relays = 0;
		/* counted before they are looked for: one that leaves meanwhile stands for no other */
		tx.pipe_readers = tx.piped ? pipe_readers() : 0;
		tx_spread();
		tx_admit();
		if (tx.failed)
			return false;
		if (!tx.changed)
			return true;
	}
	return false;
}

/* Waits until the other threads that fall are at rest. */
static __always_inline int tx_settle(bool may_sleep, u32 mine)
{
	int err;
	u32 i;

	bpf_for(i, 0, WAIT_ROUNDS) {
		tx_wait();
		if (!tx.busy)
			return 0;
		err = tx_rest(tx.deadline, may_sleep, mine);
		if (err)
			return err;
	}
	return -EAGAIN;
}

/*
 * Looks for mappings and asynchronous I/O that nothing could revoke. A process that
 * exits, or a call about to return, hides for a moment what it holds, and whose lock
 * somebody has (ps and the like) cannot be looked at: such a moment is waited for.
 * Descriptors are looked at once more while nobody moves them: for a moment such a moment is waited for, too, as without one
 * the guard is needed.
 */
static __always_inline int tx_irrevocable(bool may_sleep, u32 mine, bool alone)
{
	u64 until = bpf_ktime_get_ns() + (may_sleep ? TX_LOOK_NS : TX_SPIN_NS);
	int err;
	u32 i, k;

	bpf_for(i, 0, WAIT_ROUNDS) {
		tx.overflow = tx.async = tx.mapping = 0;
		tx_scan_fallers(TX_COUNT);
		tx.pending = tx.channels = tx.memory = tx.floors = tx.floors_others = 0;
		if (!alone)
			tx_still(true);
		tx_scan_fallers(TX_VERIFY);
		if (!alone)
			tx_still(false);
		bpf_for(k, 0, tx.pending)
			tx_check_unnamed_memory(tx_pending[BOUND(k, TX_PENDING)]);
		if (tx.memory) {
			tx_scan_fallers(TX_SAME);
			tx.overflow |= !!tx.sequences;
		}
		if (!tx.overflow &&
		    (!tx.moved || tx.writable || tx.guards || tx.guarded ||
		     bpf_ktime_get_ns() + (may_sleep ? TX_LOOK_NS - TX_SPIN_NS : 0) > until))
			return 0;
		err = tx_rest(until, may_sleep, mine);
		if (err)
			return err;
	}
	return -EAGAIN;
}

/* Why a fall cannot be, after that look; TG_R_RULE: it can. */
static __always_inline u8 tx_why_not(void)
{
	return tx.overflow || tx.failed ? TG_R_BUSY :
	       tx.async                 ? TG_R_ASYNC :
	       tx.mapping               ? TG_R_MAPPING :
					  TG_R_RULE;
}

/*
 * Is there room for the floors that a fall from one level to another needs: in the table, of which the higher level has
 * more, and for the current user's own in its share?
 */
static __always_inline bool tx_floors_fit(u8 from, u8 to)
{
	u32 own = READ_ONCE(*share_of(TG_T_FLOORS, to, tx.own));

	return share_has_room(TG_T_FLOORS, from, tx.own, tx.floors + tx.floors_others,
			      BUDGET_LAST | BUDGET_OTHER) &&
	       budget_admits(to, policy.top, table_room(TG_T_FLOORS), 0, own, tx.floors,
			     BUDGET_LAST);
}

/*
 * Is there no table that shows which task has this socket, nor a message that carries it, whose
 * receiver file_receive asks?
 */
static __always_inline bool tx_unix_hidden(u64 sock)
{
	struct tg_channel *c = channel(sock);

	return !address(CAST(struct unix_sock, sock)->vertex) && (!c || !c->seen);
}

/*
 * Is there an end of what the subject is about to get that no table shows: in a ring alone, or in a
 * call that is under way? The task that reads what the subject comes to write, or that writes what
 * it will read, is not known then. What had been written before has its floor. For a FIFO fifo.h
 * looks.
 */
__noinline bool tx_hidden(void)
{
	u8 level = subject_level(subject_current());
	struct unix_sock *u;
	struct file *f;

	tx.makes = 0;
	if (tx.join_unix) {
		u = CAST(struct unix_sock, tx.join_unix);
		/* to a datagram nobody answers */
		return address(u->sk.sk_socket) &&
		       (level < policy.top || u->sk.sk_type != SOCK_DGRAM) &&
		       tx_unix_hidden(tx.join_unix);
	}
	if (!tx.join || tx.fifo || level >= policy.top)
		return false;
	f = CAST(struct file, tx.join);
	if (tx.piped) {
		u32 own = f->f_mode & FMODE_READ && f->f_mode & FMODE_OPENED;

		/* a message that carries an end is not told from a ring, where there are any */
		return tx.above && f->f_mode & FMODE_WRITE &&
		       tx.pipe_readers > tx.join_readers + own;
	}
	/* each opening has a reference to the name, and so for a moment have others */
	if (tx_kind_of(f) == TX_MEMORY)
		return tx.above && CAST(struct dentry, address(f->f_path.dentry))->d_lockref.count >
					   tx.join_readers + 1;
	if (tx_kind_of(f) != TX_UNIX)
		return false;
	u = CAST(struct unix_sock, address(CAST(struct unix_sock, tx.join_key)->peer));
	return address(u) && u->sk.sk_shutdown != SHUTDOWN_BOTH && tx_unix_hidden(address(u));
}

/* Has it one thread, and does nobody else have its memory, its table or what else clone(2) shares, nor trace it? */
static __always_inline bool tx_alone(struct task_struct *me)
{
	struct task_struct *t = UNTRUSTED(me);

	return t->mm && t->mm->mm_users.counter == 1 && t->mm->mm_count.counter == 1 && t->files &&
	       t->files->count.counter == 1 && t->fs && !tx_shared_fs(t) && !tx_shared_io(t) &&
	       !tx_shared_undo(t) && !t->ptrace && t->ptraced.next == &t->ptraced;
}

/* The whole of it, for the task that has the turn and works. */
static __always_inline int tx_run(struct task_struct *me, u8 to, struct tg_note *n, bool may_sleep,
				  u32 mine)
{
	struct tg_subject *s;
	bool alone;
	u32 round;
	u8 reason;
	int err;

	/* it may have fallen as far while it waited */
	s = subject_of(me);
	if (to != TX_STAY && s != &subject_lost && subject_level(s) <= to)
		return 0;
	tx.mapping = tx.async = tx.failed = tx.writable = tx.channels = 0;
	tx.born = tx.published = tx.guarded = tx.others = tx.memory = tx.rings = tx.relays = 0;
	tx.guards = tx.moved = 0;
	tx.lowest = 0xff;
	tx.stood = subject_level(s);
	tx.restless = 1;
	tx.receives = n->op == TG_OP_RECEIVE_FD;
	if (to != TX_STAY)
		tx_mark(me, to);
	/* one thread, no channel: nobody else can be touched */
	alone = !(s && s->labelled) && !tx.join && !tx.join_unix && tx_alone(me);
	tx.pass++;
	tx.makes = 1;
	if (alone)
		tx_files(address(UNTRUSTED(me)->files), to, true);
	alone = alone && !tx.channels;
	bpf_for(round, 0, TX_ROUNDS) {
		/* until the levels were published others could come to trace it, or to read its memory */
		alone = alone && tx_alone(me);
		if (!alone && !tx_fixpoint())
			return tx_fail(TG_R_BUSY, n);
		if ((tx.others && tx.reopen) || tx.relays)
			return tx_fail(TG_R_CHANNEL, n);
		if ((tx.writable || tx.guards) && !(tx.published ? tx.guarded : tx_armed())) {
			if (tx.published)
				tx_each(TX_BACK, 0);
			err = tx_guard(may_sleep, mine);
			if (err == TX_LOST)
				return TX_LOST;
			if (err)
				return tx_fail(TG_R_BUSY, n);
			/* other tasks may fall by now */
			alone = false;
			tx.published = 0;
			tx.born = 1;
			continue;
		}
		if (!tx.born) {
			if (!tx_hidden()) {
				tx.restless = 0;
				tx.missed = !alone && !tx_all_met();
				if (!tx.missed && !tx.moved)
					break;
				err = tx_seek(may_sleep, mine);
				if (err == TX_LOST)
					return TX_LOST;
				tx_admit();
				if (err || tx.failed)
					return tx_fail(TG_R_BUSY, n);
				if (!tx.changed)
					break;
				tx.restless = 1;
				continue;
			}
			err = tx_rest(tx.deadline, may_sleep, mine);
			if (err == TX_LOST)
				return TX_LOST;
			if (err)
				break;
			continue;
		}
		tx.born = 0;
		if (!tx.published)
			tx.guarded = tx_armed();
		tx.published = 1;
		tx_each(TX_PUBLISH, 0);
		err = tx_settle(may_sleep, mine);
		if (err == TX_LOST)
			return TX_LOST;
		if (err) {
			tx.failing = may_sleep;
			return tx_fail(TG_R_BUSY, n);
		}
		tx.changed = 0;
		err = tx_irrevocable(may_sleep, mine, alone);
		if (err == TX_LOST)
			return TX_LOST;
		reason = tx_why_not();
		if (reason)
			return tx_fail(reason, n);
		if (tx.writable || tx.moved)
			tx.guards = 1;
		if (tx.changed)
			alone = false;
	}
	if (tx.born || tx.restless || tx_hidden())
		return tx_fail(TG_R_BUSY, n);
	/* a ring may read memory by a descriptor that no table shows */
	if (tx.published && tx.memory && tx.rings)
		return tx_fail(TG_R_ASYNC, n);
	s = subject_of(me);
	if (tx.published && !tx_floors_fit(s ? s->tx_old : policy.top, subject_level(s)))
		return tx_fail(TG_R_TABLE_FULL, n);
	if (!alone)
		tx.good = tx.id;
	if (!tx.published && !tx.join && !tx.join_unix)
		return 0;
	if (tx.published || tx.join)
		epoch++;
	if (tx.published)
		tx_scan_fallers(TX_FLOORS);
	if (tx.join && subject_level(s) < policy.top) {
		tx.stage = TX_FLOORS;
		tx_file(tx.join, subject_level(s), true);
		tx.stage = TX_SPREAD;
	}
	/* what has no floor must not be written by a task that has fallen */
	if (tx.failed)
		return tx_fail(TG_R_TABLE_FULL, n);
	tx.drag_tgid = 0;
	if (s && s->tx == tx.id) {
		tx_note = *n;
		tx_note.kind = TG_E_DEMOTED;
		tx_note.other = 1;
		audit_other.task = address(me);
		audit_other.prev = s->cause;
		audit_other.from = s->tx_old;
		tx_note.to = s->tx_level;
		tx_each(TX_COMMIT, audit(&tx_note));
	} else {
		tx_each(TX_COMMIT, 0);
	}
	return 0;
}

struct bpf_map;

static long tx_forget(struct bpf_map *map, u64 *key, struct tg_channel *c, void *ctx)
{
	bpf_map_delete_elem(map, key);
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
	u32 mine = may_sleep ? tx_lock_sleepable() : tx_lock_atomic();
	u32 failing, i;
	int err;

	if (!mine) {
		n->reason = TG_R_BUSY;
		return -EAGAIN;
	}
	if (!tx_enter(mine))
		return TX_LOST;
	tx_close();
	tx.open = 1;
	tx.failing = tx.crowded = tx.made = 0;
	tx.looked = tx.walks = tx.uncounted = 0;
	tx.since = bpf_ktime_get_boot_ns();
	tx.began = held_now();
	tx.stage = TX_SPREAD;
	tx.own = tx.payer = payer_current();
	__builtin_memset(tx_filter, 0, sizeof(tx_filter));
	tx.id++;
	tx.deadline = bpf_ktime_get_ns() + (may_sleep ? TX_SETTLE_NS : TX_SPIN_NS);
	if (tx.channels_used > TX_CHANNELS) {
		bpf_for_each_map_elem(&channels, tx_forget, NULL, 0);
		tx.channels_used = 0;
	}
	tx.join = join;
	tx.join_unix = join_unix;
	tx.join_self = join_self;
	tx.reopen = reopen;
	tx.itself = to == TX_STAY && !join && !join_unix;
	tx.join_key = join ? channel_key(CAST(struct file, join)) : 0;
	tx.join_peer = 0;
	if (tx.join_key && tx_kind_of(CAST(struct file, join)) == TX_UNIX)
		tx.join_peer = address(CAST(struct unix_sock, tx.join_key)->peer);
	tx.piped = join && is_pipe(CAST(struct file, join));
	tx.fifo = !!fifo;
	if (fifo && CAST(struct file, join)->f_mode & FMODE_WRITE) {
		u64 until = bpf_ktime_get_ns() + TX_SPIN_NS;

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
	if (fifo)
		fifo_look(fifo);
	err = tx_run(bpf_get_current_task_btf(), to, n, may_sleep, mine);
	if (err == TX_LOST)
		return TX_LOST;
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
