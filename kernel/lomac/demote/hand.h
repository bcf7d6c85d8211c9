/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ends that calls have in hand: a hook has let one through, and it is in no table yet, nor mapped. What the call does then may take as
 * long as others like: it tells a number, or an address, in memory that a server of FUSE has; it waits for a pipe's lock, for
 * its own process's memory, or until its table is larger.
 *
 * Invariant: a task that has an end in hand counts as one that has it, from before its hook decides until it is in another call.
 *   - Its hook notes the end (hand_note), and then takes the transaction's lock, or lets a transaction that runs end
 *     (hand_let_end). So the passes find the note, or the hook decides by what came of them.
 *   - A note counts while its task is in the call that made it, and what it notes is still the same file. A pass looks at it before it
 *     looks at the task's table: what is not in hand any more is in the table then.
 *   - A call that waits for a message makes no note before one has come; a note of an earlier call is taken back as it begins (hand_empty).
 *
 * An accept(2) has its connection's file in hand before there is a connection, which the file has as soon as nobody else does.
 * For dup(2), which passes no hook, see restless.h.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_HAND_H
#define TIDEGATE_LOMAC_DEMOTE_HAND_H

#include "lib/arch.h"
#include "lomac/demote/descriptors.h"
#include "lomac/demote/lock.h"

/* The current task is about to have this file. 0; -ENOMEM. */
__noinline int hand_note(u64 file)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct tg_subject *s = subject_made(me);

	if (!s)
		return -ENOMEM;
	s->hand_inode = CAST(struct inode, CAST(struct file, file)->f_inode)->i_ino;
	s->hand_call = CALL_NUMBER(call_regs(me));
	/* a full barrier: before anybody's lock is looked at */
	__sync_lock_test_and_set(&s->hand, file);
	return 0;
}

/* What the current task was asked about it has not got, or had in an earlier call. */
static __always_inline void hand_empty(void)
{
	struct tg_subject *s = subject_stored(bpf_get_current_task_btf());

	if (s)
		WRITE_ONCE(s->hand, 0);
}

/* Lets a transaction end that may have looked at the current task before that noted what it has in hand. 0; -EAGAIN: not in time. */
__noinline int hand_let_end(void)
{
	u32 mine;

	if (!READ_ONCE(tx.lock))
		return 0;
	mine = tx_lock_sleepable();
	if (!mine)
		return -EAGAIN;
	return tx_let_go(mine) ? 0 : -EAGAIN;
}

/* What a task has in hand; 0: nothing. A task that is stopped on its way back to user space has it in its table. */
static __always_inline u64 hand_of(struct task_struct *t, struct tg_subject *s)
{
	u64 file = s ? READ_ONCE(s->hand) : 0;
	struct file *f = CAST(struct file, file);

	if (!file || t->__state & (TASK_STOPPED | TASK_TRACED) ||
	    s->hand_call != CALL_NUMBER(call_regs(t)))
		return 0;
	/* what was closed has no references, and another file at its place another inode */
	if ((s64)file_references(file) <= 0 ||
	    CAST(struct inode, address(f->f_inode))->i_ino != s->hand_inode)
		return 0;
	return file;
}

/* The level that a task has to fall to by what it has in hand. */
__noinline u8 tx_hand(u64 file, u8 level, bool falls)
{
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, address(f->f_inode));
	u32 readers = tx.join_readers;

	if (!tx.makes && !tx_may_matter(file))
		return level;
	/*
	 * A task that has a pipe's end opens that anew without the lock (has_end), and may get the place of an opening that the
	 * passes knew and that has been closed: they would take the one for the other.
	 */
	tx.uncounted |= inode->i_sb->s_magic == PIPEFS_MAGIC && filter_has(address(inode));
	/* a process's memory that is being opened is not the file's yet */
	if (tx_kind_of(f) == TX_PROCESS && !address(f->private_data))
		return f->f_mode & FMODE_READ ?
			       channel_level_for_reader(memory_named(address(inode)), level) :
			       level;
	level = tx_file(file, level, falls);
	/* its pipe may not count it yet: it stands for no other reader */
	tx.join_readers = readers;
	return level;
}

#endif
