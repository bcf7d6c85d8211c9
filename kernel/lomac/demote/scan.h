/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The steps of a demotion for each task that falls: the count of threads that are not at rest, the look at mappings and asynchronous
 * I/O, and the fall itself.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_SCAN_H
#define TIDEGATE_LOMAC_DEMOTE_SCAN_H

#include "lomac/demote/descriptors.h"
#include "lomac/demote/fifo.h"
#include "lomac/demote/hand.h"
#include "lomac/demote/quiesce.h"

/* Has it a ring that is not torn down, or an AIO context? */
__noinline bool tx_asynchronous(u64 task)
{
	struct task_struct *t = CAST(struct task_struct, task);
	struct kioctx_table *contexts;
	u32 i;

	if (t->io_uring && t->io_uring->xa.xa_head)
		return true;
	contexts = t->mm ? t->mm->ioctx_table : NULL;
	if (!contexts)
		return false;
	contexts = CAST(struct kioctx_table, contexts);
	bpf_for(i, 0, 1 << 16) {
		u64 context = 1;

		if (i >= contexts->nr)
			return false;
		bpf_probe_read_kernel(&context, sizeof(context), &contexts->table[i]);
		if (context)
			return true;
	}
	return true;
}

/* The record of a process that fell with another's channel. */
static __always_inline u64 tx_dragged(struct task_struct *t, struct tg_subject *s,
				      struct task_struct *me)
{
	if (tx.drag_tgid == t->tgid)
		return tx.drag_cause;
	__builtin_memset(&tx_note, 0, sizeof(tx_note));
	tx_note.kind = TG_E_DEMOTED;
	tx_note.op = TG_OP_PIPE;
	tx_note.class = TG_C_TASK;
	tx_note.reason = TG_R_CHANNEL;
	tx_note.source = ~0u;
	tx_note.other = 1;
	audit_other.task = address(t);
	audit_other.prev = s->cause;
	audit_other.from = s->tx_old;
	tx_note.to = s->tx_level;
	tx_note.object = s->tx_level;
	tx_note.peer = me->tgid;
	tx.drag_tgid = t->tgid;
	tx.drag_cause = audit(&tx_note);
	return tx.drag_cause;
}

/*
 * Is it to be taken for one that holds what is revoked? After its level: a look reads this before
 * that.
 */
static __always_inline void tx_note_held(struct tg_subject *s, bool committed)
{
	if (tx.writable || tx.guards)
		WRITE_ONCE(s->clear, MAY_HOLD | (u32)tx.id);
	else if (committed && s->tx_old >= policy.top)
		WRITE_ONCE(s->clear, tx.began);
}

/* Does one step for every task that falls. */
__noinline int tx_each(u32 step, u64 cause)
{
	struct task_struct *t, *me = bpf_get_current_task_btf();

	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct tg_subject *s = subject_stored(t);

		if (!s || s->tx != tx.id)
			continue;
		if (step == TX_PUBLISH) {
			subject_set_level(address(t), s, s->tx_level, s->tx_old + 1);
			tx_note_held(s, false);
		} else if (step == TX_BACK) {
			subject_set_level(address(t), s, s->tx_old, 0);
			s->settled = 0;
		} else {
			subject_set_level(address(t), s, s->tx_level, 0);
			tx_note_held(s, true);
			/* a task that was at rest receives nothing that it was asked about before */
			if (!s->waits && !(tx.receives && t->pid == me->pid))
				__sync_val_compare_and_swap(&s->received, MAY_HOLD, 0);
			s->cause = t->tgid == me->tgid ? cause : tx_dragged(t, s, me);
		}
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* Counts the threads that fall and are not at rest yet, or are about to be traced. */
__noinline int tx_wait(void)
{
	struct task_struct *t, *me = bpf_get_current_task_btf();

	tx.busy = 0;
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct tg_subject *s = subject_stored(t);

		if (!s || s->tx != tx.id || s->settled || t->exit_state)
			continue;
		if (tx_is_attached(t)) {
			tx.busy++;
			continue;
		}
		if (t->pid == me->pid)
			continue;
		/* a ring's worker counts where rings are looked for */
		if (t->flags & (PF_EXITING | PF_IO_WORKER) || s->waits || tx_at_rest(t) ||
		    tx_waits_for(t, me) || fifo_waits(t->pid))
			s->settled = 1;
		else
			tx.busy++;
	}
	bpf_rcu_read_unlock();
	return 0;
}

/*
 * Since when a thread has done nothing, as a number; 0: it has a processor. A thread that waits for
 * the turn does nothing else.
 */
static __always_inline u64 tx_idle_since(struct task_struct *t, struct tg_subject *s)
{
	return s && s->waits ? 1ull << 63 | s->waited : task_off(t);
}

/* Before a look at descriptors, and after it: has one of the other threads that fall run meanwhile, or ended? */
__noinline int tx_still(bool begins)
{
	struct task_struct *t, *me = bpf_get_current_task_btf();

	if (begins)
		tx.moved = tx.still = 0;
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct tg_subject *s = subject_stored(t);
		u64 off;

		if (!s || s->tx != tx.id || t->pid == me->pid || !address(UNTRUSTED(t)->files))
			continue;
		off = tx_idle_since(t, s);
		if (begins) {
			s->tx_off = off;
			tx.still++;
		} else {
			tx.moved |= !off || off != s->tx_off;
			tx.still--;
		}
	}
	bpf_rcu_read_unlock();
	if (!begins && tx.still)
		tx.moved = 1;
	return 0;
}

/* Is another task's call reading the memory of one that falls (process_vm_readv, /proc/PID/mem)? */
__noinline int tx_readers(u64 mm)
{
	struct tg_channel *c = channel(mm);

	if (!c)
		return 0;
	if (tx.stage == TX_COUNT) {
		if (c->maps_pass != tx.pass)
			c->maps = 0;
		c->maps_pass = tx.pass;
		c->maps++;
	} else if (tx.stage == TX_VERIFY &&
		   CAST(struct mm_struct, mm)->mm_users.counter > c->maps) {
		tx.overflow = 1;
	}
	return 0;
}

/* Looks at a task, if it falls. A function of its own, as tx_spread_to(). */
__noinline int tx_scan_faller(struct task_struct *t __arg_trusted)
{
	struct tg_subject *s = subject_stored(t);
	u64 mm, files, hand;

	if (!s || s->tx != tx.id)
		return 0;
	tx.async += tx_asynchronous(address(t));
	tx.was = s->tx_old;
	tx.payer = payer_of(t);
	mm = address(UNTRUSTED(t)->mm);
	files = address(UNTRUSTED(t)->files);
	if (mm)
		tx_readers(mm);
	if (mm && channel_first(mm)) {
		if (tx.stage == TX_COUNT || tx.stage == TX_SAME)
			tx_mapped_as(mm, tx.stage == TX_COUNT);
		if (tx.stage != TX_SAME)
			tx_mappings(t, s->level);
	}
	if (tx.stage == TX_COUNT || tx.stage == TX_SAME)
		return 0;
	if (tx.stage == TX_VERIFY)
		tx_reaches(opened_reach(address(t), s->level));
	hand = t->pid == bpf_get_current_task_btf()->pid ? 0 : hand_of(t, s);
	if (hand)
		tx_hand(hand, s->level, true);
	if (files)
		tx_table(files, s->level, true);
	return 0;
}

/*
 * Looks at the mappings and the asynchronous I/O of the tasks that fall, and but to count at the
 * descriptors.
 */
__noinline int tx_scan_fallers(u32 stage)
{
	struct task_struct *t;

	tx.stage = stage;
	tx.pass++;
	tx.makes = 1;
	if (stage == TX_COUNT) {
		tx.counted = tx.pass;
		tx.sequences = 0;
	}
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS)
		tx_scan_faller(t);
	bpf_rcu_read_unlock();
	tx.payer = tx.own;
	tx.stage = TX_SPREAD;
	return 0;
}

#endif
