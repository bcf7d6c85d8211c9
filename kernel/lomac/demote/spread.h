/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The passes of a demotion over all tasks. tx_spread() is one pass: each task that shares something with one that falls
 * is marked by tx_mark() to fall with it. Passes are made until one marks none.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_SPREAD_H
#define TIDEGATE_LOMAC_DEMOTE_SPREAD_H

#include "lomac/demote/descriptors.h"
#include "lomac/demote/fifo.h"
#include "lomac/demote/hand.h"

/* Marks a task to fall with this transaction. */
static __always_inline void tx_mark(struct task_struct *t, u8 level)
{
	struct tg_subject *s = subject_made(t);

	if (!s) {
		tx.failed = 1;
		return;
	}
	if (s->tx != tx.id) {
		s->tx = tx.id;
		s->tx_old = s->level;
		s->tx_level = s->level;
		s->settled = 0;
	}
	if (level < tx.lowest)
		tx.lowest = level;
	if (level < s->tx_level) {
		s->tx_level = level;
		s->settled = 0;
		tx.changed = 1;
		tx.born++;
		if (t->tgid != bpf_get_current_task_btf()->tgid)
			tx.others = 1;
	}
}

/* What the subject is about to get counts as if it had it. */
static __always_inline u8 tx_joins(u8 level)
{
	if (tx.join) {
		level = tx_file(tx.join, level, false);
		tx_count_by(tx.join);
	}
	if (tx.join_unix) {
		struct sock *sk = CAST(struct sock, tx.join_unix);

		channel_send(tx.join_unix, level, false);
		tx_count_socket(tx.join_unix);
		if (sk->sk_type == SOCK_STREAM || sk->sk_type == SOCK_SEQPACKET)
			level = channel_level_for_reader(tx.join_unix + 1, level);
	}
	return level;
}

/* Whatever both change for each other: tasks that share it have one level. */
static __always_inline u8 tx_shares(u64 what, u8 level, u8 low)
{
	channel_note_writer(what, level);
	return channel_level_for_reader(what, low);
}

/* What clone(2) shares with another process, apart from memory and descriptors (CLONE_FS, CLONE_IO, CLONE_SYSVSEM); 0: not. */
static __always_inline u64 tx_shared_fs(struct task_struct *t)
{
	struct fs_struct *fs = CAST(struct fs_struct, address(t->fs));

	return t->fs && fs->users > 1 ? address(fs) : 0;
}

static __always_inline u64 tx_shared_io(struct task_struct *t)
{
	struct io_context *io = CAST(struct io_context, address(t->io_context));

	return t->io_context && io->active_ref.counter > 1 ? address(io) : 0;
}

static __always_inline u64 tx_shared_undo(struct task_struct *t)
{
	u64 undo = address(t->sysvsem.undo_list);

	return undo && CAST(struct sem_undo_list, undo)->refcnt.refs.counter > 1 ? undo : 0;
}

/*
 * The level a task has to fall to by what it shares, and by what it has open. A trusted one treats as data what it hears; but
 * whoever writes its memory, or all that it does by a path, does not speak to it.
 */
static __always_inline u8 tx_holds(u64 task, u8 level, bool falls)
{
	struct task_struct *t = CAST(struct task_struct, task);
	u32 trusted = tx.trusted;
	u64 shared;
	u8 low = level;

	/* a tracer reads and writes its tracee's memory without a hook; the tracee's data a trusted one may see */
	if (t->ptraced.next != &t->ptraced) {
		channel_note_writer(task, level);
		low = channel_level_for_reader(task + 1, low);
	}
	tx.trusted = 0;
	if (t->ptrace) {
		shared = address(t->parent);
		channel_note_writer(shared + 1, level);
		low = channel_level_for_reader(shared, low);
	}
	low = tx_shares(address(t->mm), level, low);
	/*
	 * what one opens by a relative name, and which users may open what it makes, the other
	 * chooses
	 */
	shared = tx_shared_fs(t);
	if (shared)
		low = tx_shares(shared, level, low);
	/* how soon a disk answers */
	shared = tx_shared_io(t);
	if (shared)
		low = tx_shares(shared, level, low);
	/* what is to be undone at one's end waits for the other's */
	shared = tx_shared_undo(t);
	if (shared)
		low = tx_shares(shared, level, low);
	shared = address(t->files);
	if (shared)
		low = tx_shares(shared, level, low);
	tx.trusted = trusted;
	return shared ? tx_table(shared, low, falls) : low;
}

/*
 * Has user space given it a level below the top (at the start), and no transaction since then made what it shares fit?
 * Until then its channels are looked at as if it fell.
 */
static __always_inline bool tx_unsettled(struct tg_subject *s)
{
	if (!s->labelled_tx)
		s->labelled_tx = tx.id;
	if (tx.good >= s->labelled_tx)
		s->labelled = 0;
	return s->labelled;
}

/*
 * Does the task that a walk is at fall in this transaction? `s` gets its storage, NULL if it has
 * none, and `level` the level that it has by now. tx.trusted and tx.was are about this task then.
 */
static __always_inline bool tx_meet(struct task_struct *t, struct tg_subject **s, u8 *level)
{
	struct tg_label label = subject_label(t);
	bool falls;

	*s = subject_stored(t);
	falls = *s && (*s)->tx == tx.id;
	tx.trusted = label.attrs & TG_NODEMOTE;
	*level = falls ? (*s)->tx_level : label.level;
	tx.was = falls ? (*s)->tx_old : *level;
	return falls;
}

/*
 * One task of a pass: has it to fall, by what it shares and has open? What a loop over tasks does is a
 * global function, so that the verifier looks at it once. In the loop 6.12's looks at it a hundred
 * times.
 */
__noinline int tx_spread_to(struct task_struct *t __arg_trusted)
{
	struct task_struct *me = bpf_get_current_task_btf(), *fields = UNTRUSTED(t);
	struct tg_subject *s;
	u8 level, low;
	u32 waits;
	u64 hand;
	bool falls;

	if (!fields->mm || fields->flags & PF_KTHREAD)
		return 0;
	falls = tx_meet(t, &s, &level);
	tx.makes = falls || (level < policy.top && s && s->labelled && tx_unsettled(s)) ||
		   (tx.itself && t->tgid == me->tgid);
	tx.looker = t->start_boottime < tx.since ? address(t) : 0;
	tx.uncounted |= falls && READ_ONCE(s->opened);
	hand = t->pid == me->pid ? 0 : hand_of(t, s);
	low = hand ? tx_hand(hand, level, falls) : level;
	low = tx_holds(address(t), low, falls);
	if (fields->io_uring && fields->io_uring->xa.xa_head) {
		tx.rings += !falls;
		tx.above += tx.was > tx.level;
	}
	if (t->pid == me->pid) {
		tx.makes = 1;
		low = tx_joins(low);
	} else if (s && s->joins)
		low = tx_file(s->joins, low, falls);
	waits = fifo_waits(t->pid);
	if (waits) {
		tx.fifo_seen |= 1 << (waits - 1);
		low = channel_level_for_reader(tx.join_key, low);
		/* once woken it may have left the pipe's count */
		tx.join_readers += t->__state & TASK_INTERRUPTIBLE;
	}
	if (low < level)
		tx_mark(t, low);
	return 0;
}

/* One pass over every task: which have to fall with which. */
__noinline int tx_spread(void)
{
	struct task_struct *t;

	tx.level = subject_level(subject_current());
	tx_counts_begin();
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS)
		tx_spread_to(t);
	tx.trusted = 0;
	tx.looker = 0;
	bpf_rcu_read_unlock();
	return 0;
}

#endif
