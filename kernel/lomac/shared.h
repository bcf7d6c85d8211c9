/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The other tasks that have an open file. They share what belongs to the description: its flags,
 * its owner and that one's signal, its locks, and of a socket its peer and its options. This is
 * asked where one of them changes that, and the tables are looked through only if the file's
 * references say that somebody else may have it.
 */
#ifndef TIDEGATE_LOMAC_SHARED_H
#define TIDEGATE_LOMAC_SHARED_H

#include "lib/arch.h"
#include "lomac/check.h"

/* Is the file the descriptor that is the first argument of the call under way? Of whatever call: the table has it then. */
static __noinline bool call_names(u64 file)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct files_struct *files = CAST(struct files_struct, address(me->files));
	struct fdtable *fdt = CAST(struct fdtable, address(files->fdt));
	struct pt_regs *regs = call_regs(me);
	u32 fd = CALL_IS_32(me) ? CALL32_FIRST(regs) : CALL_FIRST(regs);
	struct file **fds = fdt->fd;

	return fd < fdt->max_fds && read_kernel_u64((u64)(fds + fd)) == file;
}

/*
 * May somebody else have it? One reference is the current task's: its table's, or that of a call whose descriptor another thread
 * has closed meanwhile, or of a ring, whose request by a registered file has none. Where threads share a table that has it, the
 * call under way has another one. With a ring it could come from there into the table between the two looks.
 */
static __always_inline bool file_is_shared(u64 file)
{
	struct files_struct *files = UNTRUSTED(bpf_get_current_task_btf())->files;
	s64 before = file_references(file), after;
	u32 own;

	in_order();
	own = files && files->count.counter > 1 && !may_be_request() && call_names(file) ? 2 : 1;
	in_order();
	after = file_references(file);
	return before > own || after > own;
}

/* How many descriptors are of the open file, or, if `what` is a pipe's inode, of its ends? TABLE_LARGE: they are too many to look at. */
#define TABLE_LARGE ~0u
__noinline u32 table_has(u64 table, u64 what)
{
	struct fdtable *fdt = CAST(struct fdtable, CAST(struct files_struct, table)->fdt);
	u32 max = fdt->max_fds, found = 0, i, j;
	struct file **fds = fdt->fd;
	unsigned long *open = fdt->open_fds;

	if (max > FDTABLE_MAX)
		return TABLE_LARGE;
	bpf_for(i, 0, max / 64) {
		u64 word = 0;

		bpf_probe_read_kernel(&word, sizeof(word), open + i);
		if (!word)
			continue;
		bpf_for(j, 0, 64) {
			u64 f = 0;

			if (!(word >> j & 1))
				continue;
			bpf_probe_read_kernel(&f, sizeof(f), fds + i * 64 + j);
			found += f && (f == what || address(CAST(struct file, f)->f_inode) == what);
		}
	}
	return found;
}

/* A task's table; 0: none of its own. Threads mostly have one table, which their first one shows. */
static __always_inline u64 table_shown(struct task_struct *t)
{
	struct task_struct *fields = UNTRUSTED(t), *leader = fields->group_leader;
	u64 table = address(fields->files);

	return fields->pid != fields->tgid && address(leader->files) == table ? 0 : table;
}

/* Is the task above the level, has it the file (as above), and has its program none of the `trusted` attributes? */
static __always_inline bool task_has_above(struct task_struct *t, u64 what, u32 level, u32 trusted)
{
	u64 table = table_shown(t);
	struct tg_label label;

	if (!table)
		return false;
	label = subject_label(t);
	return label.observes > level && !(label.attrs & trusted) && table_has(table, what);
}

/* Has somebody above the level the file, of those whose program has none of these attributes? */
__noinline bool file_is_above(u64 what, u32 level, u32 trusted)
{
	return ANY_TASK(t, task_has_above(t, what, level, trusted));
}

/*
 * Has somebody above the level the open file, too, as a pipe's or a socket's end, of which no label says whose it is? What
 * keeps its level whatever it hears does not count: process 1 has the sockets of all services that it starts.
 */
static __always_inline bool end_is_above(u64 file, u8 level)
{
	return file && file_is_shared(file) && file_is_above(file, level, TG_NODEMOTE);
}

/* The label of an open file, whoever opened it. */
static __always_inline u64 label_opened(struct file *file)
{
	struct inode *inode = file->f_inode;

	return is_of_overlay(address(inode)) ? label_held(address(inode), file_dentry(file), NULL) :
					       label_of(inode, file_dentry(file), TG_C_FILE);
}

/* By a descriptor, whatever it was opened for. Memory that no path names may be opened to be read, and waited for, from above. */
static __noinline int modify_opened(struct file *file, u8 op)
{
	struct tg_subject *s = subject_current();
	struct inode *inode = file->f_inode;
	u64 label;

	if (!s)
		return 0;
	count_query(TG_C_FILE);
	label = inode_is_memory(inode) ? memory_label(inode, file_dentry(file), TG_C_FILE) :
					 label_opened(file);
	return modify(lomac_subject_modifying(s), inode, file_dentry(file), label, op, TG_C_FILE);
}

/*
 * What is the description's changes for all that have it: where it writes and how, which task is
 * told of it, and which has it locked. In the log that a service and its fallen child have as their
 * output the child, without O_APPEND, chooses the place. A terminal is its session's (terminal.h).
 */
static __noinline int modify_shared(struct file *file, u8 op)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = op, .class = TG_C_FILE };
	struct inode *inode = file->f_inode;
	u64 label;

	if (!s || !file_is_shared(address(file)))
		return 0;
	count_query(TG_C_FILE);
	label = label_opened(file);
	if (label_attrs(label) & TG_NEUTRAL && (inode->i_mode & S_IFMT) != S_IFCHR) {
		if (!file_is_above(address(file), s->level, TG_NODEMOTE))
			return 0;
	} else if (lomac_modify(lomac_subject_modifying(s), lomac_object_of_label(label),
				policy.top) ||
		   !file_is_above(address(file), s->level, 0)) {
		return 0;
	}
	note_object(&n, inode, file_dentry(file), label);
	return deny(s, &n, refusal(&n, label));
}

#endif
