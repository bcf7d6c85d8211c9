/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables that do not keep still, where the kernel counts more ends of the channels than the passes have met (references.h). A pass
 * reads a table without its lock, while its owner runs, and dup2(2) and close(2) pass no hook. So an end of a channel that is moved meanwhile, from where the pass has not been yet to where it has been, is not seen.
 *
 * Invariant: an end that a table has had since before this step began has been met by it, unless so many looks at random
 * have all missed it (lib/sampling.h).
 *   - A thread that had no processor while the whole table was read has moved nothing in it
 *     (task_off). That is nearly everybody, and nothing more is asked of them, whatever call they
 *     wait in.
 *   - Of anybody else's table 64 places at random are read, again and again. What is in it is somewhere in it at each moment,
 *     and its owner cannot know where the next look falls.
 *   - An end gets into another table by a hook, which knows of the transaction (hand.h), or in a copy of the whole table. A thread
 *     that leaves the table with a copy is looked at again. A child comes at the end of the list of tasks, and a thread at the end of
 *     its process's; one that comes there when the walk has chosen to go on elsewhere makes it begin again (tx_overtaken). One that is
 *     not there yet, of a process whose other threads may have closed the end since, is waited for (tx_bears).
 *   - An end that dup(2) has taken out, and another thread closes, is in no table until the call ends, which may take as long as to
 *     make the table larger. It is waited for; a process that goes on making such calls has as good as been found (tx_doubles).
 * Nobody is refused for what other calls refer to, and no busy process is waited for.
 *
 * Tables of tasks above the lowest level that a subject falls to are looked at, and of tasks above a subject that joins: they
 * might read. Tables of tasks below a subject that joins are, too, as they might write. So are those of a task that falls, if
 * one of its threads ran as nothing was to be moved (tx_still): it might move the end by which it writes, so that no pass
 * knows of the channel.
 *
 * Each account, a user's at a level, has a share of the looks, so that no user makes another's fall
 * dear by large tables, and the lower levels leave some of all looks to the higher ones. When a share
 * is used up, the account's other tables are not looked at. A task that has such a table, and stands
 * no higher than the current subject did, counts as a reader and falls. It does not if it stands as
 * high and others have used up what there was: then the current subject is refused, as for one that
 * stands higher. One that is below a subject that joins is passed over: no lower task keeps a higher
 * one waiting. A task that falls has to be looked at: else the fall is refused.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_RESTLESS_H
#define TIDEGATE_LOMAC_DEMOTE_RESTLESS_H

#include "lib/arch.h"
#include "lib/sampling.h"
#include "lomac/demote/lock.h"
#include "lomac/demote/scan.h"
#include "lomac/demote/spread.h"

#define TX_WALKS 64     /* over all tasks, of a transaction; most wait for a fork between */
#define TX_LARGE 64     /* times 64 places: from there on a table is */
#define TX_TRIES 4      /* looked at so often, before that is done at random */
#define TX_DOUBLES 32   /* walks in which dup(2) is waited for */
#define TX_THREADS 4096 /* that have come since a thread was met */

/*
 * No levels, but why a table is not looked at: the looks of its account have been used up, or what it
 * has in hand is not known; or others' tables have used up the looks of its level.
 */
#define TX_PAST 0xfe
#define TX_PAST_OTHERS 0xfd

/* What an account has taken of the looks of a walk: a user's at a level, as those of tables (lomac/budget.h). */
struct tx_taken {
	u32 walk;
	u32 looks;
} tx_taken[TG_LEVELS * TG_ACCOUNTS];
u32 tx_walk; /* the number of the last one, of all transactions' */

/* The table looked at last, */
struct tx_last {
	u64 table;
	u64 task;    /* by which it was met, */
	u64 behind;  /* the same, as long as the walk has not gone on from there, */
	u32 tgid;    /* of which process, */
	u64 since;   /* and when */
	u32 threads; /* of that process have it, */
	u32 run;     /* of these have a processor, */
	u32 bear;    /* and are about to have a child (tx_bears), */
	u32 doubles; /* or, at any look so far, have in hand what they put there again (tx_doubles) */
	u64 still;   /* since when they have done nothing, all in one number */
	u64 before;  /* the same before a look, */
	u32 tries;   /* of so many as yet */
	u32 payer;   /* whose share the looks are taken from, */
	u32 level;   /* and at which level */
	u64 samples; /* looks at random still to be taken, */
	u64 places;  /* of this array: it is another one, once it has grown */
} tx_last;

/* Calls that have a child. */
#define CALLS_BEAR(word) \
	CALL(word, fork) | CALL(word, vfork) | CALL(word, clone) | CALL(word, clone3)
#define CALLS32_BEAR(word) \
	CALL32(word, fork) | CALL32(word, vfork) | CALL32(word, clone) | CALL32(word, clone3)
const u64 tx_calls_bear[2][CALLS / 64] = { CALL_TABLE(CALLS_BEAR), CALL_TABLE(CALLS32_BEAR) };

/* Calls that leave a table which others have, too, with a copy. */
#define CALLS_EXEC(word) CALL(word, execve) | CALL(word, execveat)
#define CALLS32_EXEC(word) CALL32(word, execve) | CALL32(word, execveat)
const u64 tx_calls_exec[2][CALLS / 64] = { CALL_TABLE(CALLS_EXEC), CALL_TABLE(CALLS32_EXEC) };

static __always_inline bool tx_table_is_shared(struct task_struct *t)
{
	struct files_struct *files = UNTRUSTED(t)->files;

	return files && files->count.counter > 1;
}

/*
 * May it have a copy of its table in hand, which it will have itself (unshare, close_range)? What is closed between, or made with it,
 * may take as long as a server of FUSE likes. An exec makes its copy its own at once, unless it is preempted there.
 */
static __always_inline bool tx_copies(struct task_struct *t, struct pt_regs *regs, u32 nr, u32 abi)
{
	if (CALL_MAY_BE_IN(tx_calls_exec[BOUND(abi, 2)], nr) && t->__state == TASK_RUNNING &&
	    tx_table_is_shared(t))
		return true;
	if (abi)
		return (nr == NR32_unshare && CALL32_FIRST(regs) & CLONE_FILES) ||
		       (nr == NR32_close_range && CALL32_THIRD(regs) & CLOSE_RANGE_UNSHARE);
	return (nr == NR_unshare && CALL_FIRST(regs) & CLONE_FILES) ||
	       (nr == NR_close_range && CALL_THIRD(regs) & CLOSE_RANGE_UNSHARE);
}

/*
 * The current task begins to have a child. Will that get a copy of a table that somebody else has, too, and may close things in
 * meanwhile, and have left before anybody looks? 0; -ENOMEM.
 */
static __always_inline int bears_note(u64 child, unsigned long clone_flags)
{
	struct task_struct *me = bpf_get_current_task_btf(), *fields = UNTRUSTED(me);
	bool own = clone_flags & CLONE_FILES || fields->flags & PF_KTHREAD || !fields->files ||
		   fields->files->count.counter == 1;
	struct tg_subject *s = own ? subject_stored(me) : subject_made(me);

	if (s)
		WRITE_ONCE(s->bears, own ? 0 : child);
	return s || own ? 0 : -ENOMEM;
}

/* Is this task in the list of tasks? What is about to be made has no number of its own yet. */
__noinline bool tx_is_listed(u64 task)
{
	struct task_struct *t = bpf_task_from_pid(CAST(struct task_struct, task)->pid);
	bool is;

	if (!t)
		return false;
	is = address(t) == task;
	bpf_task_release(t);
	return is;
}

/* Is it frozen by its control group? That is done to a task that is on its way back to user space, or waits for a child by vfork. */
static __always_inline bool tx_is_frozen(struct task_struct *t)
{
	struct task_struct *fields = UNTRUSTED(t);

	return bpf_core_field_exists(fields->frozen) &&
	       BPF_CORE_READ_BITFIELD_PROBED(fields, frozen);
}

/*
 * Has this thread begun to have a child that may be in no list yet, with a copy of a table that was not its own alone? It is
 * not so any more if the child is in the list; if the thread only waits for it (vfork), whoever is its parent by name; or if the
 * thread has stopped, or been frozen, on its way back. What makes a child may wait for others: clone3(2) tells the child's pidfd in
 * memory that a server of FUSE may have.
 */
static __always_inline bool tx_bears(struct task_struct *t, struct tg_subject *s)
{
	struct pt_regs *regs = call_regs(t);
	u32 nr = CALL_NUMBER(regs), abi = !!CALL_IS_32(t);
	u64 child;

	if (t->__state & (TASK_STOPPED | TASK_TRACED))
		return false;
	if (tx_copies(t, regs, nr, abi))
		return true;
	/* a task that waits for the turn there (task_alloc) has copied nothing yet */
	if (!CALL_MAY_BE_IN(tx_calls_bear[BOUND(abi, 2)], nr) || !s || s->waits || tx_is_frozen(t))
		return false;
	child = READ_ONCE(s->bears);
	return child && !tx_waits_for(t, CAST(struct task_struct, child)) && !tx_is_listed(child);
}

/*
 * May it have in hand what it has taken out of its table to put it there once more (dup, fcntl with F_DUPFD)? Before it does the table
 * may have to be made larger, for which it waits for memory, for all processors, or for another thread that does the same: no
 * signal ends that. dup2(2) and dup3(2) take it out when there is room.
 */
static __always_inline bool tx_doubles(struct task_struct *t)
{
	struct pt_regs *regs = call_regs(t);
	u32 nr = CALL_NUMBER(regs), command;

	if (t->__state & (TASK_INTERRUPTIBLE | TASK_STOPPED | TASK_TRACED))
		return false;
	if (CALL_IS_32(t)) {
		command = CALL32_SECOND(regs);
		if (nr != NR32_fcntl && nr != NR32_fcntl64)
			return nr == NR32_dup;
	} else {
		command = CALL_SECOND(regs);
		if (nr != NR_fcntl)
			return nr == NR_dup;
	}
	return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

/* Adds to tx_last what a thread that may have this table is about to do with it, and since when it has done nothing. */
__noinline int tx_thread_still(struct task_struct *t __arg_trusted, u64 table, bool shared)
{
	struct tg_subject *s;
	u64 off;

	if (address(UNTRUSTED(t)->files) != table)
		return 0;
	tx_last.threads++;
	/* the thread that looks moves nothing */
	if ((u32)t->pid == (u32)bpf_get_current_pid_tgid())
		return 0;
	s = subject_stored(t);
	off = tx_idle_since(t, s);
	tx_last.run += !off;
	tx_last.bear += tx_bears(t, s);
	/* what is taken out of a table that is nobody else's is in it still */
	tx_last.doubles += shared && tx_doubles(t);
	/* its highest bit tells a thread that waits from one that was taken off a processor as often */
	off = (off ^ (u64)(u32)t->pid << 40) * 0x9e3779b97f4a7c15ull;
	tx_last.still += (off ^ off >> 29) * 0x9e3779b97f4a7c15ull;
	return 0;
}

/* Since when the threads that have this table have done nothing; 0: one of them has a processor, or another process has it, too. */
__noinline u64 tx_table_still(u32 tgid, u64 table)
{
	struct task_struct *leader = bpf_task_from_pid(tgid), *t;
	bool shared = CAST(struct files_struct, table)->count.counter > 1;

	tx_last.threads = tx_last.run = tx_last.bear = tx_last.still = 0;
	if (!leader)
		return 0;
	bpf_rcu_read_lock();
	bpf_for_each(task, t, leader, BPF_TASK_ITER_PROC_THREADS)
		tx_thread_still(t, table, shared);
	bpf_rcu_read_unlock();
	bpf_task_release(leader);
	if (tx_last.threads != CAST(struct files_struct, table)->count.counter)
		tx_last.run++;
	return tx_last.run ? 0 : tx_last.still | 1;
}

/* Takes looks out of the share of that table's owner. */
static __always_inline enum samples_left tx_take_looks(u32 more)
{
	u32 at = tx_last.level * TG_ACCOUNTS + BOUND(tx_last.payer, TG_ACCOUNTS);
	struct tx_taken *own = &tx_taken[BOUND(at, TG_LEVELS * TG_ACCOUNTS)];
	enum samples_left left;

	if (own->walk != tx_walk) {
		own->walk = tx_walk;
		own->looks = 0;
	}
	left = samples_ask(tx_last.level, policy.top, tx.samples, own->looks, more);
	if (left == SAMPLES_LEFT) {
		own->looks += more;
		tx.samples += more;
	}
	return left;
}

/* Looks at random at a table whose owners run. */
__noinline u8 tx_sample(u64 table, u8 level, bool falls)
{
	u8 low = level;
	u32 i;

	/* of one change the passes tell more */
	tx_last.places = 0;
	bpf_for(i, 0, SAMPLES_OF_ALL) {
		struct files_struct *files = CAST(struct files_struct, table);
		struct fdtable *fdt = CAST(struct fdtable, files->fdt);
		u32 n = fdt->max_fds / 64;
		u64 dice;

		/* a task that has ended has no table any more */
		tx.changed |= !n || n > FDTABLE_MAX / 64;
		if (tx.changed)
			break;
		if (tx_last.places != address(fdt)) {
			enum samples_left left = tx_take_looks(samples_of(n));

			if (left != SAMPLES_LEFT)
				return left == SAMPLES_OWN_USED ? TX_PAST : TX_PAST_OTHERS;
			tx_last.places = address(fdt);
			tx_last.samples = samples_of(n);
		}
		if (!tx_last.samples || tx.failed)
			break;
		tx_last.samples--;
		/* a filter of a socket's may tell the one (SKF_AD_RANDOM), and nobody the other */
		dice = (bpf_get_prandom_u32() ^ bpf_ktime_get_ns()) * 0x9e3779b97f4a7c15ull;
		low = tx_places_of(fdt, sample_at(dice >> 32, n), level, falls);
		if (low < level)
			break;
	}
	return low;
}

/* Is the table to be looked at as a whole (once more)? Of a large one that costs a 24th of what looks at random do, out of the same share. */
static __always_inline bool tx_tries(u64 table)
{
	u32 n = CAST(struct fdtable, CAST(struct files_struct, table)->fdt)->max_fds / 64;

	return !tx_last.tries++ || (n > TX_LARGE && tx_take_looks(n) == SAMPLES_LEFT);
}

/* After a look at a table in which nothing was found: is something on its way into it, or into a copy of it? */
static __always_inline u8 tx_comes(u8 level)
{
	tx.births |= tx_last.bear;
	if (!tx_last.doubles)
		return level;
	if (tx.walks > TX_DOUBLES)
		return TX_PAST;
	tx.births = 1;
	return level;
}

/* The level that a table's owner has to fall to by what is moved about in it, or TX_PAST. */
static __always_inline u8 tx_watch(u32 tgid, u64 table, u8 level, bool falls)
{
	u8 low;
	u32 i;

	tx_last.tries = tx_last.doubles = 0;
	bpf_for(i, 0, TX_TRIES) {
		if (!tx_tries(table))
			break;
		tx_last.before = tx_table_still(tgid, table);
		if (!tx_last.before)
			continue;
		low = tx_files(table, level, falls);
		if (low < level || tx.failed)
			return low;
		if (tx_table_still(tgid, table) == tx_last.before)
			return tx_comes(level);
	}
	low = tx_sample(table, level, falls);
	if (low != level)
		return low;
	tx_table_still(tgid, table);
	return tx_comes(level);
}

/*
 * The level of a task whose table is not looked at, by why (`past`). Where others have used up what there was for a level, a subject
 * that falls from that level takes nobody of it along for that, and is refused.
 */
static __always_inline u8 tx_past(u8 level, bool falls, u8 past)
{
	u8 lowest = tx.lowest < tx.level ? tx.lowest : tx.level;

	if (level > lowest && (level > tx.stood || (level == tx.stood && past != TX_PAST)))
		tx.failed = 1;
	if (falls && tx.moved)
		tx.failed = 1;
	return level > tx.stood || level <= lowest ? level : lowest;
}

/*
 * Has this thread the table that was looked at last, and had it then? One that was there and has
 * not left has the same one.
 */
static __always_inline bool tx_watched(struct task_struct *t, u64 table)
{
	return table == tx_last.table && t->tgid == tx_last.tgid &&
	       t->start_boottime < tx_last.since &&
	       address(CAST(struct task_struct, tx_last.task)->files) == table;
}

/*
 * Might what is hidden in this table be read by a task above, or written by one below, or by one
 * that falls?
 */
static __always_inline bool tx_may_hide(u8 level, bool falls)
{
	if (falls && tx.moved)
		return true;
	if (!tx.missed)
		return false;
	if (level > tx.lowest || level > tx.level)
		return !tx.trusted;
	return (tx.join || tx.join_unix) && level < tx.level;
}

/*
 * The walk chooses the next task before this one is looked at. It has gone on to another process, or, `last`, has ended: has a
 * thread with a table of its own, or a child, come behind this task meanwhile, to which this table's owner has handed what it had?
 */
__noinline bool tx_overtaken(u64 task, bool last)
{
	struct task_struct *t = CAST(struct task_struct, task), *other;
	u64 head = address(t->signal) + bpf_core_field_offset(struct signal_struct, thread_head);
	u64 own = address(t->files), first = address(t->group_leader->files), at, table;
	u32 i;

	at = address(t->thread_node.next);
	bpf_for(i, 0, TX_THREADS) {
		if (at == head)
			break;
		other = CAST(struct task_struct,
			     at - bpf_core_field_offset(struct task_struct, thread_node));
		table = address(other->files);
		if (table && table != own && table != first)
			return true;
		at = address(other->thread_node.next);
	}
	if (at != head || !last)
		return at != head;
	/* the list begins with the idle task */
	at = address(t->group_leader->tasks.next) -
	     bpf_core_field_offset(struct task_struct, tasks);
	return CAST(struct task_struct, at)->pid != 0;
}

/* The walk is at a task of this process; 0: it has ended. */
static __always_inline void tx_goes_on(u32 tgid)
{
	if (tx_last.behind && tgid != tx_last.tgid)
		tx.births |= tx_overtaken(tx_last.behind, !tgid);
	tx_last.behind = 0;
}

/* The walk is at this task: is its table to be looked at, and has it to fall by what is moved about there? */
__noinline int tx_restless_at(struct task_struct *t __arg_trusted)
{
	struct task_struct *fields = UNTRUSTED(t);
	u64 table = address(fields->files);
	struct tg_subject *s;
	u8 level, low;
	bool falls;

	tx_goes_on(t->tgid);
	if (!fields->mm || fields->flags & PF_KTHREAD || !table)
		return 0;
	/* itself moves nothing now, but a thread that has ended since may have */
	if ((u32)t->pid == (u32)bpf_get_current_pid_tgid() && !tx.moved)
		return 0;
	falls = tx_meet(t, &s, &level);
	tx.makes = falls;
	if (!tx_may_hide(level, falls) || tx_watched(fields, table))
		return 0;
	tx_last.table = table;
	tx_last.task = tx_last.behind = address(t);
	tx_last.tgid = t->tgid;
	tx_last.since = bpf_ktime_get_boot_ns();
	tx_last.payer = payer_of(t);
	tx_last.level = tx.was;
	low = tx_watch(t->tgid, table, level, falls);
	if (low == TX_PAST || low == TX_PAST_OTHERS)
		low = tx_past(level, falls, low);
	if (tx.failed)
		return 0;
	if (low < level)
		tx_mark(t, low);
	/* it has left that table, with a copy of it */
	if (address(fields->files) && address(fields->files) != table)
		tx.changed = 1;
	return 0;
}

/* Looks for what is moved about in tables, when the passes have found all that keeps still. */
__noinline int tx_restless(void)
{
	struct task_struct *t;

	tx.changed = tx.births = tx.pending = tx.samples = 0;
	tx_walk++;
	tx_last.table = tx_last.behind = 0;
	tx.walks++;
	tx.failed |= tx.walks > TX_WALKS;
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		tx_restless_at(t);
		if (tx.failed)
			break;
	}
	tx_goes_on(0);
	tx.trusted = 0;
	bpf_rcu_read_unlock();
	return 0;
}

#endif
