/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The steps of a demotion, which the head of transaction.h explains, and the program that takes them. Between two steps the task may
 * wait, and may lose the turn; then nothing more is done, and the next one puts back what was begun. What one step leaves to
 * the next is in `tx`.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_STEPS_H
#define TIDEGATE_LOMAC_DEMOTE_STEPS_H

#include "lomac/demote/restless.h"
#include "lomac/demote/scan.h"
#include "lomac/demote/serve.h"
#include "lomac/demote/spread.h"

#define TX_ROUNDS 16

/* It cannot be: the levels go back. */
__noinline int tx_fail(u8 reason)
{
	tx_each(TX_BACK, 0);
	tx_cause.reason = reason == TG_R_BUSY && tx.crowded ? TG_R_TABLE_FULL : reason;
	tx.verdict = reason == TG_R_MAPPING || reason == TG_R_ASYNC ? -EACCES : -EAGAIN;
	return TX_AT_DONE;
}

/* This step comes after a wait. */
static __always_inline int tx_after_rest(u64 until, u32 at)
{
	tx.until = until;
	tx.rests = 1;
	return at;
}

static __always_inline bool tx_armed(void)
{
	return READ_ONCE(tx.guard_armed);
}

static long tx_forget(struct bpf_map *map, u64 *key, struct tg_channel *c, void *ctx)
{
	bpf_map_delete_elem(map, key);
	return 0;
}

static __always_inline int tx_put_back(void)
{
	if (tx.open)
		tx_each(TX_BACK, 0);
	tx.open = 0;
	return TX_AT_DONE;
}

__noinline int tx_at_begin(void)
{
	tx_put_back();
	tx.open = 1;
	tx.failing = tx.crowded = tx.made = 0;
	tx.looked = tx.walks = tx.uncounted = 0;
	tx.since = bpf_ktime_get_boot_ns();
	tx.began = held_now();
	tx.stage = TX_SPREAD;
	tx.own = tx.payer = payer_current();
	__builtin_memset(tx_filter, 0, sizeof(tx_filter));
	tx.id++;
	tx.deadline = bpf_ktime_get_ns() + (tx.may_sleep ? TX_SETTLE_NS : TX_SPIN_NS);
	if (tx.channels_used > TX_CHANNELS) {
		bpf_for_each_map_elem(&channels, tx_forget, NULL, 0);
		tx.channels_used = 0;
	}
	tx.itself = tx.to == TX_STAY && !tx.join && !tx.join_unix;
	tx.join_key = tx.join ? channel_key(CAST(struct file, tx.join)) : 0;
	tx.join_peer = 0;
	if (tx.join_key && tx_kind_of(CAST(struct file, tx.join)) == TX_UNIX)
		tx.join_peer = address(CAST(struct unix_sock, tx.join_key)->peer);
	tx.piped = tx.join && is_pipe(CAST(struct file, tx.join));
	return TX_AT_ENTER;
}

/* Has it one thread, and does nobody else have its memory, its table or what else clone(2) shares, nor trace it? */
static __always_inline bool tx_alone(struct task_struct *me)
{
	struct task_struct *t = UNTRUSTED(me);

	return t->mm && t->mm->mm_users.counter == 1 && t->mm->mm_count.counter == 1 && t->files &&
	       t->files->count.counter == 1 && t->fs && !tx_shared_fs(t) && !tx_shared_io(t) &&
	       !tx_shared_undo(t) && !t->ptrace && t->ptraced.next == &t->ptraced;
}

/* The current subject, as the first that falls. */
__noinline int tx_at_enter(void)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct tg_subject *s = subject_of(me);
	u8 to = tx.to;

	tx.verdict = 0;
	/* it may have fallen as far while it waited */
	if (to != TX_STAY && s != &subject_lost && subject_level(s) <= to)
		return TX_AT_DONE;
	tx.mapping = tx.async = tx.failed = tx.writable = tx.channels = 0;
	tx.born = tx.published = tx.guarded = tx.others = tx.memory = tx.rings = tx.relays = 0;
	tx.guards = tx.moved = tx.round = 0;
	tx.lowest = 0xff;
	tx.stood = subject_level(s);
	tx.restless = 1;
	tx.receives = tx_cause.op == TG_OP_RECEIVE_FD;
	if (to != TX_STAY)
		tx_mark(me, to);
	/* one thread, no channel: nobody else can be touched */
	tx.alone = !(s && s->labelled) && !tx.join && !tx.join_unix && tx_alone(me);
	tx.pass++;
	tx.makes = 1;
	if (tx.alone)
		tx_files(address(UNTRUSTED(me)->files), to, true);
	tx.alone = tx.alone && !tx.channels;
	return TX_AT_ROUND;
}

__noinline int tx_at_round(void)
{
	if (tx.round++ >= TX_ROUNDS)
		return TX_AT_END;
	/* until the levels were published others could come to trace it, or to read its memory */
	tx.alone = tx.alone && tx_alone(bpf_get_current_task_btf());
	tx.passes = 0;
	return tx.alone ? TX_AT_FOUND : TX_AT_PASS;
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
__noinline int tx_at_pass(void)
{
	if (tx.passes++ >= TX_ROUNDS)
		return tx_fail(TG_R_BUSY);
	tx.changed = 0;
	tx.pass++;
	tx.writable = tx.join_readers = tx.fifo_seen = tx.pending = tx.overflow = 0;
	tx.rings = tx.above = tx.relays = 0;
	/* counted before they are looked for: one that leaves meanwhile stands for no other */
	tx.pipe_readers = tx.piped ? pipe_readers() : 0;
	tx_spread();
	tx_admit();
	if (tx.failed)
		return tx_fail(TG_R_BUSY);
	return tx.changed ? TX_AT_PASS : TX_AT_FOUND;
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

/* Has the guard attached. The order is the daemon's in reverse: see guard.rs. */
static __always_inline int tx_guard(void)
{
	if (tx.published)
		tx_each(TX_BACK, 0);
	__builtin_memset(&tx_note, 0, sizeof(tx_note));
	tx_note.kind = TG_E_GUARD;
	tx_note.source = ~0u;
	audit(&tx_note);
	if (!tx.may_sleep)
		return tx_fail(TG_R_BUSY);
	tx.deadline = bpf_ktime_get_ns() + GUARD_WAIT_NS;
	return TX_AT_GUARD;
}

static __always_inline u64 tx_look_ns(void)
{
	return tx.may_sleep ? TX_LOOK_NS : TX_SPIN_NS;
}

/* Before levels are published for those that were marked last; or if none was, before the end. */
__noinline int tx_at_found(void)
{
	if ((tx.others && tx.reopen) || tx.relays)
		return tx_fail(TG_R_CHANNEL);
	if ((tx.writable || tx.guards) && !(tx.published ? tx.guarded : tx_armed()))
		return tx_guard();
	if (!tx.born) {
		if (tx_hidden())
			return tx_after_rest(tx.deadline, TX_AT_HIDDEN);
		tx.restless = 0;
		tx.missed = !tx.alone && !tx_all_met();
		if (!tx.missed && !tx.moved)
			return TX_AT_END;
		tx.seeks = 0;
		tx.until = bpf_ktime_get_ns() + tx_look_ns();
		if (!tx.walks)
			return TX_AT_SEEK;
		/* it has found somebody: others run before it is made again, and what cannot wait ends soon */
		if (!tx.may_sleep && tx.walks >= 4)
			return tx_fail(TG_R_BUSY);
		return tx_after_rest(tx.until, TX_AT_SEEK);
	}
	tx.born = 0;
	if (!tx.published)
		tx.guarded = tx_armed();
	tx.published = 1;
	tx_each(TX_PUBLISH, 0);
	return TX_AT_SETTLE;
}

__noinline int tx_at_guard(void)
{
	if (tx.over)
		return tx_fail(TG_R_BUSY);
	if (!tx_armed())
		return tx_after_rest(tx.deadline, TX_AT_GUARD);
	tx.deadline = bpf_ktime_get_ns() + TX_SETTLE_NS;
	/* other tasks may fall by now */
	tx.alone = 0;
	tx.published = 0;
	tx.born = 1;
	return TX_AT_ROUND;
}

/*
 * Does what is moved about in tables change which tasks fall (tx.changed)? Waits for children that may have a copy, and are
 * in no list yet.
 */
__noinline int tx_at_seek(void)
{
	if (tx.over || tx.seeks++ >= TX_WALKS)
		return tx_fail(TG_R_BUSY);
	tx_restless();
	if (!tx.changed && !tx.failed && tx.births) {
		tx.seek_next = bpf_ktime_get_ns() + tx_look_ns() / TX_WALKS;
		return tx_after_rest(tx.until, TX_AT_PAUSE);
	}
	tx_admit();
	if (tx.failed)
		return tx_fail(TG_R_BUSY);
	if (!tx.changed)
		return TX_AT_END;
	tx.restless = 1;
	return TX_AT_ROUND;
}

static __always_inline int tx_at_pause(void)
{
	if (tx.over)
		return tx_fail(TG_R_BUSY);
	if (bpf_ktime_get_ns() > tx.seek_next)
		return TX_AT_SEEK;
	return tx_after_rest(tx.until, TX_AT_PAUSE);
}

/* Are the other threads that fall at rest? */
__noinline int tx_at_settle(void)
{
	if (tx.over) {
		tx.failing = tx.may_sleep;
		return tx_fail(TG_R_BUSY);
	}
	tx_wait();
	if (tx.busy)
		return tx_after_rest(tx.deadline, TX_AT_SETTLE);
	tx.changed = 0;
	tx.until = bpf_ktime_get_ns() + tx_look_ns();
	return TX_AT_LOOK;
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
 * Looks for mappings and asynchronous I/O that nothing could revoke; true: there is to be no other look. A process that
 * exits, or a call about to return, hides for a moment what it holds, and whose lock
 * somebody has (ps and the like) cannot be looked at: such a moment is waited for.
 * Descriptors are looked at once more while nobody moves them: for a moment such a moment is waited for, too, as without one
 * the guard is needed.
 */
static __always_inline bool tx_irrevocable(void)
{
	u32 k;

	tx.overflow = tx.async = tx.mapping = 0;
	tx_scan_fallers(TX_COUNT);
	tx.pending = tx.channels = tx.memory = tx.floors = tx.floors_others = 0;
	if (!tx.alone)
		tx_still(true);
	tx_scan_fallers(TX_VERIFY);
	if (!tx.alone)
		tx_still(false);
	bpf_for(k, 0, tx.pending)
		tx_check_unnamed_memory(tx_pending[BOUND(k, TX_PENDING)]);
	if (tx.memory) {
		tx_scan_fallers(TX_SAME);
		tx.overflow |= !!tx.sequences;
	}
	return !tx.overflow &&
	       (!tx.moved || tx.writable || tx.guards || tx.guarded ||
		bpf_ktime_get_ns() + (tx.may_sleep ? TX_LOOK_NS - TX_SPIN_NS : 0) > tx.until);
}

__noinline int tx_at_look(void)
{
	u8 reason;

	if (!tx.over && !tx_irrevocable())
		return tx_after_rest(tx.until, TX_AT_LOOK);
	reason = tx_why_not();
	if (reason)
		return tx_fail(reason);
	if (tx.writable || tx.moved)
		tx.guards = 1;
	if (tx.changed)
		tx.alone = 0;
	return TX_AT_ROUND;
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

__noinline int tx_at_end(void)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct tg_subject *s;

	/* somebody has no room for a level */
	if (tx.failed)
		return tx_fail(TG_R_BUSY);
	if (tx.born || tx.restless || tx_hidden())
		return tx_fail(TG_R_BUSY);
	/* a ring may read memory by a descriptor that no table shows */
	if (tx.published && tx.memory && tx.rings)
		return tx_fail(TG_R_ASYNC);
	s = subject_of(me);
	if (tx.published && !tx_floors_fit(s ? s->tx_old : policy.top, subject_level(s)))
		return tx_fail(TG_R_TABLE_FULL);
	if (!tx.alone)
		tx.good = tx.id;
	if (!tx.published && !tx.join && !tx.join_unix)
		return TX_AT_DONE;
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
		return tx_fail(TG_R_TABLE_FULL);
	tx.drag_tgid = 0;
	if (s && s->tx == tx.id) {
		tx_note = tx_cause;
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
	return TX_AT_DONE;
}

static __always_inline int tx_at_step(void)
{
	switch (tx.at) {
	case TX_AT_BACK:
		return tx_put_back();
	case TX_AT_BEGIN:
		return tx_at_begin();
	case TX_AT_ENTER:
		return tx_at_enter();
	case TX_AT_ROUND:
		return tx_at_round();
	case TX_AT_PASS:
		return tx_at_pass();
	case TX_AT_FOUND:
		return tx_at_found();
	case TX_AT_GUARD:
		return tx_at_guard();
	case TX_AT_HIDDEN:
		return tx.over ? TX_AT_END : TX_AT_ROUND;
	case TX_AT_SEEK:
		return tx_at_seek();
	case TX_AT_PAUSE:
		return tx_at_pause();
	case TX_AT_SETTLE:
		return tx_at_settle();
	case TX_AT_LOOK:
		return tx_at_look();
	case TX_AT_END:
		return tx_at_end();
	}
	return TX_AT_DONE;
}

/* Takes the step that the current task asks for: see serve.h. */
SEC("fentry/bpf_map_sum_elem_count")
int BPF_PROG(lomac_transaction, struct bpf_map *map)
{
	if (!IS_SERVED(map, serves) || READ_ONCE(tx.asks) != address(bpf_get_current_task_btf()))
		return 0;
	tx.at = tx_at_step();
	WRITE_ONCE(tx.served, 1);
	return 0;
}

#endif
