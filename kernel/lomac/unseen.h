/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Holders of an open file that no table shows: a ring that has it registered, and a call whose descriptor was closed meanwhile, as
 * a splice(2) that waits for room. They are found by what is left of the file's references.
 *
 * Lemma: let a pass over all tasks note the tables that have the file, each by one task; let the references be counted then, and a
 * second pass meet m of these tasks whose table is the same and still has the file. Then m of the references are these tables'. A
 * table that had it in both passes had it between: it comes into a table from itself, with a reference of the call that copies it,
 * or by a hook (file_receive). And no two of the m are one table that was copied meanwhile, as the copy's task was not noted.
 */
#ifndef TIDEGATE_LOMAC_UNSEEN_H
#define TIDEGATE_LOMAC_UNSEEN_H

#include "lib/preempt.h"
#include "core/wait.h"
#include "lomac/shared.h"

#define HOLDERS 8 /* where there are more of them, the rest count as unseen */

struct holders {
	u64 file;
	u32 noted;
	u32 met;
	u64 tasks[HOLDERS];
	u64 tables[HOLDERS];
};

/* One that is too large to be looked at shows nothing. */
static __always_inline u32 table_shows(u64 table, u64 file)
{
	u32 n = table_has(table, file);

	return n == TABLE_LARGE ? 0 : n;
}

/* Notes a task that has the file, or, in the second pass, meets it again. */
__noinline int holder_look(struct holders *h __arg_nonnull, struct task_struct *t __arg_trusted,
			   bool again)
{
	u64 table = table_shown(t);
	u32 i, at;

	if (!table)
		return 0;
	bpf_for(i, 0, HOLDERS) {
		if (h->tables[BOUND(i, HOLDERS)] != table)
			continue;
		h->met += again && h->tasks[BOUND(i, HOLDERS)] == address(t) &&
			  table_shows(table, h->file);
		return 0;
	}
	if (again || h->noted == HOLDERS || !table_shows(table, h->file))
		return 0;
	at = BOUND(h->noted++, HOLDERS);
	h->tasks[at] = address(t);
	h->tables[at] = table;
	return 0;
}

/*
 * Has the call under way a reference to the file of its own? Where threads share the table; and a ring's request, beside what has the
 * file registered. A task with rings can also make a call itself, which names the file. (32-bit programs name it otherwise.)
 */
static __always_inline bool call_refers(u64 file)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct files_struct *files = CAST(struct files_struct, address(me->files));

	return files->count.counter > 1 ||
	       (may_be_request() && !CALL_IS_32(me) && !call_names(file));
}

/* Further descriptors that the current task has of the file: while nobody else has its table, they stay. */
static __always_inline u32 own_further(u64 file)
{
	struct files_struct *files =
		CAST(struct files_struct, address(bpf_get_current_task_btf()->files));
	u32 n = files->count.counter > 1 ? 0 : table_shows(address(files), file);

	return n ? n - 1 : 0;
}

/* `own` of the references are known to be the current call's, and its further descriptors'. */
static __noinline bool is_unseen_now(u64 file, s64 own)
{
	struct holders h = { .file = file };
	s64 references, after;

	ANY_TASK(t, holder_look(&h, t, false));
	/* a table that lost the file cannot have it back by then: to receive it takes passes of a transaction */
	work_begin();
	references = file_references(file);
	in_order();
	ANY_TASK(t, holder_look(&h, t, true));
	after = file_references(file);
	work_end();
	return references > h.met + own || after > h.met + own;
}

/*
 * Has the current call's file a holder that no table shows, for longer than a moment? A look at /proc/PID/fd has a reference for an
 * instant, and a birth has a table's until the child is in the list. For hooks that may sleep.
 */
static __noinline bool is_held_unseen(u64 file)
{
	s64 own = call_refers(file) + own_further(file);
	u64 until = bpf_ktime_get_ns() + TX_LOOK_NS;
	u32 i;

	bpf_for(i, 0, WAIT_ROUNDS) {
		if (!is_unseen_now(file, own))
			return false;
		if (!wait_again(until, true))
			break;
	}
	return true;
}

#endif
