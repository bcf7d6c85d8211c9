/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Does any table that no pass has met hold an end of a channel of this transaction? The kernel counts the references to each
 * opening, and the openings of each pipe and of memory. Where a pass has met as many as there are, the answer is no, whatever is
 * moved in tables meanwhile, and nothing is looked for at random (restless.h).
 *
 * Lemma: let a count be read before a pass, and let n tables be met in that pass in which the opening is. If the count is n,
 * no other table had the opening as the count was read. For
 *   - a table that a task has had since before the transaction gains no opening of somebody else's while that lasts: a message, and
 *     whatever else brings one, waits for the lock in its hook. So what is met in it later was in it as the count was read;
 *   - each of the n is met by a task of its own, which began before the transaction, and had that table in an earlier pass
 *     (tx_holders). Tasks that had different tables once never have the same one again. So they had n tables then;
 *   - each of these had a reference of its own.
 * Whatever had none then has a copy by a fork from one that had, and that one has been met. The same holds for openings: one that an
 * earlier pass knew, and that is met, was open as they were counted.
 *
 * Calls have references, too (poll, and all calls of a process with threads), and so have mappings and messages; a
 * descriptor that is twice in a table counts once. Then a count is larger than what is met, and only that is known.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_REFERENCES_H
#define TIDEGATE_LOMAC_DEMOTE_REFERENCES_H

#include "core/file_kind.h"
#include "core/subject.h"
#include "lomac/demote/channels.h"

/* References to an open file. Since Linux 6.13 the first one counts as none. */
static __always_inline u64 file_references(u64 file)
{
	struct file *f = CAST(struct file, file);

	if (bpf_core_field_exists(((struct file___6_12 *)0)->f_count))
		return ((struct file___6_12 *)f)->f_count.counter;
	return ((struct file___6_13 *)f)->f_ref.refcnt.counter + 1;
}

/* What is counted: references to an opening, or openings of a channel, in the last bits of its address. */
enum tx_counted { TX_C_OPENING, TX_C_READERS, TX_C_WRITERS, TX_C_MEMORY };

#define TX_COUNTS 256
#define TX_PROBES 8
struct tx_count {
	u64 tx;
	u64 at;    /* the opening, the pipe's inode, or the memory's name; and enum tx_counted */
	u64 of;    /* an opening's channel: inode or name; 0: it is counted by references alone */
	u64 table; /* in which the pass met it last */
	s64 there; /* counted by the kernel before the pass, */
	u32 met;   /* and met in it */
	u32 first; /* the pass that knew of it first */
	u32 mode;
} tx_counts[TX_COUNTS];

/* By which task each table is met that holds such an opening. */
#define TX_HOLDERS 256
struct tx_holder {
	u64 tx;
	u64 table;
	u64 task;
	u32 first; /* the pass that met it first, */
	u32 last;  /* and last */
} tx_holders[TX_HOLDERS];

/* Where an opening or a channel is counted; 0: it is not. `make`: it is to be from now on. */
__noinline u32 tx_count_of(u64 at, bool make)
{
	u32 i, hash = at * 0x9e3779b97f4a7c15ull >> 40, bit;

	if (!make && !filter_has(at & ~3ull))
		return 0;
	bpf_for(i, 0, TX_PROBES) {
		u32 k = BOUND(hash + i, TX_COUNTS);
		struct tx_count *c = &tx_counts[k];

		if (c->tx == tx.id && c->at == at)
			return k + 1;
		if (c->tx == tx.id)
			continue;
		if (!make)
			return 0;
		__builtin_memset(c, 0, sizeof(*c));
		c->tx = tx.id;
		c->at = at;
		c->first = tx.pass;
		bit = filter_bit(at & ~3ull);
		tx_filter[BOUND(bit >> 6, TX_FILTER / 64)] |= 1ull << (bit & 63);
		/* the next pass counts it */
		tx.changed = 1;
		return k + 1;
	}
	tx.uncounted |= make;
	return 0;
}

/*
 * Of a channel of a task that falls those openings are counted that read from it, and of one that is joined those that write to it as well.
 * Memory is mapped by whoever has it open in any way; a socket that is no Unix socket has one opening; and how many a POSIX queue has
 * nobody counts.
 */
static __always_inline void tx_count_channel(struct file *f, u64 key, bool memory)
{
	u16 type = CAST(struct inode, f->f_inode)->i_mode & S_IFMT;
	u64 of = memory ? address(f->f_path.dentry) : key;
	u32 mode = f->f_mode & (FMODE_READ | FMODE_WRITE), counted = 0, k;
	bool joined = key == tx.join_key;

	if (memory) {
		counted = tx_count_of(of | TX_C_MEMORY, tx.makes);
		mode = 0;
	} else if (type == S_IFIFO) {
		if (tx_count_of(of | TX_C_READERS, tx.makes && (mode & FMODE_WRITE || joined)))
			counted = mode & FMODE_READ;
		if (tx_count_of(of | TX_C_WRITERS, tx.makes && joined))
			counted |= mode & FMODE_WRITE;
	} else if (type == S_IFSOCK) {
		tx_count_of(address(f), tx.makes);
	} else {
		tx.uncounted |= tx.makes;
	}
	k = counted ? tx_count_of(address(f), true) : 0;
	if (k) {
		tx_counts[BOUND(k - 1, TX_COUNTS)].of = of;
		tx_counts[BOUND(k - 1, TX_COUNTS)].mode = mode;
	}
}

/*
 * The opening of a Unix socket by which others hear, or speak to, a task that falls or joins. One
 * that is not accepted yet has none: the task that will have it has the listener, which is not
 * counted.
 */
static __always_inline void tx_count_socket(u64 sock)
{
	struct sock *sk = CAST(struct sock, sock);
	struct socket *socket = CAST(struct socket, address(sk->sk_socket));

	if (!tx.makes || !sock)
		return;
	if (!address(sk->sk_socket))
		tx.uncounted |= sk->sk_shutdown != SHUTDOWN_BOTH;
	else if (address(socket->file))
		tx_count_of(address(socket->file), true);
}

/* An opening has been met, of whomever: what is to be counted by it? */
__noinline int tx_count_by(u64 file)
{
	struct file *f = CAST(struct file, file);
	enum tx_kind kind = tx_kind_of(f);
	u64 key = channel_key(f);

	if ((tx.stage != TX_SPREAD && tx.stage != TX_VERIFY) || !key)
		return 0;
	if (kind == TX_PIPE || kind == TX_MEMORY)
		tx_count_channel(f, key, kind == TX_MEMORY);
	else if (kind == TX_UNIX)
		tx_count_socket(address(CAST(struct unix_sock, key)->peer));
	else if (kind == TX_SHARED && tx.makes && file_references(file) > 1)
		tx_count_of(file, true);
	return 0;
}

/* How many there are, by the kernel's own count. What is closed has none, or less. */
static __always_inline s64 tx_there(u64 at)
{
	struct inode *inode;

	switch (at & 3) {
	case TX_C_OPENING:
		return file_references(at);
	case TX_C_MEMORY:
		return CAST(struct dentry, at & ~3ull)->d_lockref.count;
	}
	inode = CAST(struct inode, at & ~3ull);
	if ((inode->i_mode & S_IFMT) != S_IFIFO || !inode->i_pipe)
		return 0;
	return (at & 3) == TX_C_READERS ? CAST(struct pipe_inode_info, inode->i_pipe)->readers :
					  CAST(struct pipe_inode_info, inode->i_pipe)->writers;
}

static __always_inline void tx_met_one(u64 at)
{
	u32 k = tx_count_of(at, false);

	if (k)
		tx_counts[BOUND(k - 1, TX_COUNTS)].met++;
}

/* An opening of a channel has been met for the first time in this pass. */
static __always_inline void tx_met_opening(u64 of, u32 mode)
{
	if (!mode)
		tx_met_one(of | TX_C_MEMORY);
	if (mode & FMODE_READ)
		tx_met_one(of | TX_C_READERS);
	if (mode & FMODE_WRITE)
		tx_met_one(of | TX_C_WRITERS);
}

/* Before a pass: how many there are. What is received, or opened, is in the hands of the call that asks. */
__noinline int tx_counts_begin(void)
{
	u32 i;

	bpf_for(i, 0, TX_COUNTS) {
		struct tx_count *c = &tx_counts[BOUND(i, TX_COUNTS)];

		if (c->tx != tx.id)
			continue;
		c->there = tx_there(c->at);
		c->met = 0;
		c->table = 0;
	}
	i = tx.join ? tx_count_of(tx.join, false) : 0;
	if (i) {
		struct tx_count *c = &tx_counts[BOUND(i - 1, TX_COUNTS)];

		c->met = 1;
		/* what is being opened no pipe counts yet */
		if (c->of && c->first < tx.pass &&
		    CAST(struct file, tx.join)->f_mode & FMODE_OPENED)
			tx_met_opening(c->of, c->mode);
	}
	return 0;
}

/* May what is met in this table be counted, in the look that begins? See the lemma. */
__noinline bool tx_holds_since(u64 table)
{
	struct tx_holder *h = &tx_holders[BOUND(table >> 6 ^ table >> 15, TX_HOLDERS)];
	bool same = h->tx == tx.id && h->table == table;

	if (!tx.looker)
		return false;
	if (same && h->task == tx.looker && h->last != tx.pass) {
		h->last = tx.pass;
		return h->first < tx.pass;
	}
	/* somebody has met it in this pass; or another table is remembered in this place */
	if (h->tx == tx.id && (same ? h->last == tx.pass : h->last + 1 >= tx.pass))
		return false;
	h->tx = tx.id;
	h->table = table;
	h->task = tx.looker;
	h->first = h->last = tx.pass;
	return false;
}

/*
 * Is it still the opening that its first pass knew? Where one was closed the kernel puts the next one at once, of anything. Another one
 * of the same pipe or memory is none: its open waits for the lock, and none that its call has in hand is in a table. (Of one that does
 * not wait for it see tx_hand.)
 */
static __always_inline bool tx_is_same(struct tx_count *c)
{
	struct file *f = CAST(struct file, c->at);

	if (!c->of)
		return true;
	if (!c->mode)
		return address(f->f_path.dentry) == c->of;
	return address(f->f_inode) == c->of && (f->f_mode & c->mode) == c->mode;
}

/* An opening that is counted has been met in the table that is looked at. */
__noinline int tx_met(u32 k, u64 table)
{
	struct tx_count *c = &tx_counts[BOUND(k - 1, TX_COUNTS)];

	if (!tx_is_same(c))
		return 0;
	if (tx.look == TX_LOOK_BEGINS)
		tx.look = tx_holds_since(table) ? TX_LOOK_COUNTS : TX_LOOK_ONLY;
	if (tx.look != TX_LOOK_COUNTS || c->tx != tx.id || c->table == table || c->first >= tx.pass)
		return 0;
	c->table = table;
	c->met++;
	if (c->met == 1 && c->of)
		tx_met_opening(c->of, c->mode);
	return 0;
}

/* The memory of the process that an inode of procfs is about; 0: it has gone. */
__noinline u64 memory_named(u64 inode)
{
	u64 at = inode - bpf_core_field_offset(struct proc_inode, vfs_inode), mm;
	struct pid *pid = CAST(struct proc_inode, at)->pid;
	struct task_struct *whose;

	if (!pid)
		return 0;
	whose = bpf_task_from_pid(pid->numbers[0].nr);
	if (!whose)
		return 0;
	mm = address(UNTRUSTED(whose)->mm);
	bpf_task_release(whose);
	return mm;
}

/*
 * A process's memory is opened (/proc/PID/mem): nothing counts these openings. So it is noted of each task that has that memory,
 * and of each that comes to have it (task_alloc). 0: it is; -ENOMEM.
 */
__noinline int memory_opened(u64 inode)
{
	u64 mm = memory_named(inode);
	struct task_struct *t;
	int err = 0;

	if (!mm)
		return 0;
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct tg_subject *s;

		if (address(UNTRUSTED(t)->mm) != mm)
			continue;
		s = subject_made(t);
		if (s)
			WRITE_ONCE(s->opened, 1);
		else
			err = -ENOMEM;
	}
	bpf_rcu_read_unlock();
	return err;
}

/* A child that has its parent's memory. */
static __always_inline int memory_stays_open(struct task_struct *child, unsigned long clone_flags)
{
	struct tg_subject *s;

	if (!(clone_flags & CLONE_VM))
		return 0;
	s = subject_stored(bpf_get_current_task_btf());
	if (!s || !READ_ONCE(s->opened))
		return 0;
	s = subject_made(child);
	if (!s)
		return -ENOMEM;
	WRITE_ONCE(s->opened, 1);
	return 0;
}

/* After a pass: has it met all that there is? */
__noinline bool tx_all_met(void)
{
	u32 i;

	if (tx.uncounted)
		return false;
	bpf_for(i, 0, TX_COUNTS) {
		struct tx_count *c = &tx_counts[BOUND(i, TX_COUNTS)];

		if (c->tx == tx.id && (c->first >= tx.pass || c->there > (s64)c->met))
			return false;
	}
	return true;
}

#endif
