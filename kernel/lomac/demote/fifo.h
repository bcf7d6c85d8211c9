/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A FIFO's readers that are still inside open(): no table shows them, and between its hook
 * and its wait the pipe does not count one. The FIFO remembers whose opens were let through,
 * and of those it has no room for, or that are over, how high they were.
 *
 * Invariant: a reader that a writer's pass does not see is above that writer only if the
 * writer is refused. All this is read and written under the transaction's lock, so that
 * meanwhile no other open passes its hook.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_FIFO_H
#define TIDEGATE_LOMAC_DEMOTE_FIFO_H

#include "lib/arch.h"
#include "lomac/demote/state.h"

#define TX_CROWD_NS 10000000000ull /* for a reader that found no room to be counted by its pipe */

/*
 * How far a reader's open has come. Its file's memory may be another file's by now: one that is
 * inside the FIFO's own open (FMODE_STREAM) has passed its hook, where it took over what stood here.
 */
enum fifo_open { FIFO_GONE, FIFO_COMES, FIFO_WAITS };

__noinline u32 fifo_open(u64 file)
{
	struct file *f = CAST(struct file, file);
	u32 mode;

	if (!file || address(f->f_inode) != tx.join_key)
		return FIFO_GONE;
	/* a later user of its memory writes the mode before the inode */
	in_order();
	mode = f->f_mode;
	if (!(mode & FMODE_READ) || mode & FMODE_OPENED)
		return FIFO_GONE;
	return mode & FMODE_STREAM ? FIFO_WAITS : FIFO_COMES;
}

/* Which of the readers that wait in open() is this thread? Its number, and 1; 0: none. */
__noinline u32 fifo_waits(u32 thread)
{
	u32 i;

	if (!tx.fifo)
		return 0;
	bpf_for(i, 0, TG_FIFO_OPENS) {
		u32 k = BOUND(i, TG_FIFO_OPENS);

		if (tx.fifo_waits[k].thread == thread &&
		    fifo_open(tx.fifo_waits[k].file) == FIFO_WAITS)
			return k + 1;
	}
	return 0;
}

static __always_inline u32 pipe_readers(void)
{
	struct inode *inode = CAST(struct inode, tx.join_key);

	return inode->i_pipe ? CAST(struct pipe_inode_info, inode->i_pipe)->readers : 0;
}

static __always_inline void fifo_raise(struct tg_fifo *memo, u32 level)
{
	if (level > memo->highest)
		memo->highest = level;
}

/* No room for a reader: until its pipe counts it, nothing shows it. */
static __always_inline void fifo_lose(struct tg_fifo *memo, u32 level)
{
	fifo_raise(memo, level);
	memo->crowd[BOUND(level - 1, TG_LEVELS)] = bpf_ktime_get_ns();
}

/* The highest level of readers that nothing may show yet, and 1. */
static __noinline u32 fifo_crowd(struct tg_fifo *memo)
{
	u64 now = bpf_ktime_get_ns();
	u32 i, highest = 0;

	bpf_for(i, 0, TG_LEVELS) {
		u64 came = memo->crowd[BOUND(i, TG_LEVELS)];

		if (came && now - came < TX_CROWD_NS)
			highest = i + 1;
	}
	return highest;
}

/* Is a reader above the current subject on its way from its hook to its wait? */
static __noinline bool fifo_comes(struct tg_fifo *memo)
{
	u32 over = subject_level(subject_current()) + 1, i;

	bpf_for(i, 0, TG_FIFO_OPENS) {
		struct tg_fifo_open *o = &memo->opens[BOUND(i, TG_FIFO_OPENS)];

		if (o->level > over && o->file != tx.join && fifo_open(o->file) == FIFO_COMES)
			return true;
	}
	return false;
}

/* Before the passes: the tasks that wait in open(). A writer waits for fifo_comes a moment before. */
static __noinline int fifo_look(struct tg_fifo *memo)
{
	u32 i, there = 0;

	bpf_for(i, 0, TG_FIFO_OPENS) {
		u32 k = BOUND(i, TG_FIFO_OPENS), open;
		struct tg_fifo_open *o = &memo->opens[k];

		open = o->file == tx.join ? FIFO_GONE : fifo_open(o->file);
		if (open == FIFO_GONE) {
			fifo_raise(memo, o->level);
			o->file = o->level = 0;
		}
		there |= open;
		tx.fifo_waits[k].file = o->file;
		tx.fifo_waits[k].thread = open == FIFO_WAITS ? o->thread : 0;
	}
	if (!there && !pipe_readers())
		memo->highest = fifo_crowd(memo);
	return 0;
}

/* May a reader above `over` (a level, and 1) have been missed by the last pass? */
static __noinline bool fifo_escapes(struct tg_fifo *memo, u32 over, u32 readers)
{
	u32 unseen = memo->highest, i;

	bpf_for(i, 0, TG_FIFO_OPENS) {
		u32 k = BOUND(i, TG_FIFO_OPENS);
		struct tg_fifo_open *o = &memo->opens[k];

		if (tx.fifo_seen >> k & 1)
			continue;
		if (o->level > over && fifo_open(o->file) != FIFO_GONE)
			return true;
		if (o->level > unseen)
			unseen = o->level;
	}
	return fifo_crowd(memo) > over || (unseen > over && readers > tx.join_readers);
}

/* Remembers the current reader's open; what is lower makes room. */
static __noinline int fifo_remember(struct tg_fifo *memo, u32 level)
{
	u32 i, slot = TG_FIFO_OPENS, lowest = level;
	struct tg_fifo_open *o;

	bpf_for(i, 0, TG_FIFO_OPENS) {
		u32 k = BOUND(i, TG_FIFO_OPENS);

		if (memo->opens[k].level < lowest) {
			lowest = memo->opens[k].level;
			slot = k;
		}
	}
	if (lowest)
		fifo_lose(memo, lowest);
	if (slot == TG_FIFO_OPENS)
		return 0;
	o = &memo->opens[BOUND(slot, TG_FIFO_OPENS)];
	o->file = tx.join;
	o->thread = bpf_get_current_pid_tgid();
	o->level = level;
	return 0;
}

/* The levels fit. A writer is refused that a reader above it may have escaped; a reader is remembered. */
static __noinline int fifo_join(struct tg_fifo *memo, struct tg_note *n)
{
	struct tg_subject *s = subject_current();
	u32 mode = CAST(struct file, tx.join)->f_mode, level = subject_observes(s) + 1;
	/* a descriptor that is received counts among the pipe's readers already */
	bool reads = mode & FMODE_READ, received = mode & FMODE_OPENED;

	if (mode & FMODE_WRITE &&
	    fifo_escapes(memo, subject_level(s) + 1, tx.pipe_readers - (reads && received))) {
		n->reason = TG_R_CHANNEL;
		return -EAGAIN;
	}
	if (reads && received)
		fifo_raise(memo, level);
	else if (reads)
		fifo_remember(memo, level);
	return 0;
}

#endif
