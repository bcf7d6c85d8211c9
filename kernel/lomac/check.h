/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checks that lomac's hooks are written in: observe, modify, and what follows from
 * each. Each other model refuses by itself, in programs of its own.
 */
#ifndef TIDEGATE_LOMAC_CHECK_H
#define TIDEGATE_LOMAC_CHECK_H

#include "lib/file.h"
#include "lomac/demote/transaction.h"

static __always_inline struct lomac_subject lomac_subject_modifying(struct tg_subject *s)
{
	struct lomac_subject l = { .level = subject_level(s), .attrs = s ? s->attrs : 0 };

	return l;
}

/* A subject as what it observes is decided by. */
static __always_inline struct lomac_subject lomac_subject_observing(struct tg_subject *s)
{
	struct lomac_subject l = { .level = subject_observes(s), .attrs = s ? s->attrs : 0 };

	return l;
}

static __always_inline void count_query(u32 class)
{
	struct tg_stats *st = stats_of(class);

	if (st)
		st->queries++;
}

static __always_inline void note_object(struct tg_note *n, struct inode *inode, u64 dentry,
					u64 label)
{
	struct tg_inode *memo = bpf_inode_storage_get(&inodes, inode, 0, 0);

	n->inode = address(inode);
	n->dentry = dentry;
	n->object = label_level(label);
	n->source = memo ? memo->rule : ~0u;
	n->reason = label & LABEL_UNKNOWN ? TG_R_NO_LABEL : TG_R_RULE;
}

/* Lowers the current subject; the verdict of the operation that made it fall. */
static __always_inline int fall(struct tg_subject *s, u8 to, struct tg_note *n, bool may_sleep)
{
	int err = may_sleep ? TX_TRIED(demote_sleepable(to, n)) : TX_TRIED(demote_atomic(to, n));

	if (!err)
		return 0;
	if (err == TX_LOST)
		n->reason = TG_R_BUSY;
	return verdict_of(deny(s, n, n->reason == TG_R_BUSY ? -EAGAIN : -EACCES));
}

/* The verdict on what an object's label forbids, with its reason: not now, if it has none now. */
static __always_inline int refusal(struct tg_note *n, u64 label)
{
	if (!(label & LABEL_LATER))
		return -EPERM;
	n->reason = TG_R_BUSY;
	return -EAGAIN;
}

static __noinline int refuse(struct inode *inode, u64 dentry, u64 label, u8 op, u8 class)
{
	struct tg_note n = { .op = op, .class = class };
	struct tg_subject *s = subject_current();

	note_object(&n, inode, dentry, label);
	if (lomac_object_of_label(label).known &&
	    !lomac_open(lomac_subject_modifying(s), lomac_object_of_label(label), policy.top))
		n.reason = TG_R_NOOPEN;
	return deny(s, &n, refusal(&n, label));
}

/* What belongs to the top level. */
static __always_inline int top_only(u8 op)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = {
		.op = op, .class = TG_C_SYSTEM, .source = ~0u, .reason = TG_R_TOP_ONLY
	};

	if (subject_level(s) >= policy.top)
		return 0;
	count_query(TG_C_SYSTEM);
	n.object = policy.top;
	return deny(s, &n, -EPERM);
}

/* Lowers the current subject to what it is about to observe; `what` is its operation and class. */
static __always_inline int fall_to(struct inode *inode, u64 dentry, u64 label, u8 to, u16 what)
{
	struct tg_note n = { .op = what, .class = what >> 8 };

	note_object(&n, inode, dentry, label);
	return fall(subject_current(), to, &n, true);
}

/*
 * While the current subject waited for its fall, what it is about to observe, or itself,
 * became lower than was decided; or how low that is cannot be told now.
 */
__noinline int record_label_changed(u8 op, u8 class)
{
	struct tg_note n = { .op = op, .class = class, .source = ~0u, .reason = TG_R_BUSY };

	return deny(subject_current(), &n, -EAGAIN);
}

static __always_inline int refuse_label_changed(u8 op, u8 class)
{
	return verdict_of(record_label_changed(op, class));
}

/* modify(s, o), and the record of a refusal. */
static __always_inline int modify(struct lomac_subject who, struct inode *inode, u64 dentry,
				  u64 label, u8 op, u8 class)
{
	if (lomac_modify(who, lomac_object_of_label(label), policy.top))
		return 0;
	return refuse(inode, dentry, label, op, class);
}

/*
 * Is it too early to bind what has no label now? No task falls for that; it may be kept from every
 * task that anything is kept from.
 */
static __always_inline bool is_early(struct lomac_subject who, u64 label, u32 mode)
{
	return label & LABEL_LATER &&
	       (subject_level(subject_current()) < policy.top ||
		(mode & FMODE_READ &&
		 lomac_observe(who, lomac_object_of_label(label)) < who.level));
}

/* Is it too early to execute what has no label now, as that would lower the subject? */
__noinline bool exec_early(u64 label)
{
	return label & LABEL_LATER && subject_observes(subject_current()) &&
	       refuse_label_changed(TG_OP_EXEC, TG_C_EXEC);
}

/* The label that a file is bound by. What somebody else opened is not opened behind an overlay any more. */
static __always_inline u64 label_bound(struct inode *inode, u64 dentry, u16 what)
{
	if ((u8)what == TG_OP_RECEIVE_FD && is_of_overlay(address(inode)))
		return label_held(address(inode), dentry, NULL);
	return label_of(inode, dentry, what >> 8);
}

/* bind(), where the hint is not enough; `what` is its operation and class. */
static __noinline int bind_decide(struct file *file, u32 mode, u16 what)
{
	struct inode *inode = file->f_inode;
	u64 dentry = file_dentry(file), label = label_bound(inode, dentry, what);
	struct lomac_object o = lomac_object_of_label(label);
	struct lomac_subject who = lomac_subject_observing(subject_current());
	/*
	 * a task that opens from the top what has no label is not there any more when it has it;
	 * and a mapping opens nothing
	 */
	bool unknown =
		!o.known && ((u8)what == TG_OP_MMAP ||
			     lomac_open(lomac_subject_modifying(subject_current()), o, policy.top));

	if (is_early(who, label, mode))
		return refuse_label_changed(what, what >> 8);
	if (mode & FMODE_READ && (unknown || lomac_open(who, o, policy.top))) {
		u8 to = lomac_observe(who, o);

		if (to < who.level) {
			int err = fall_to(inode, dentry, label, to, what);

			if (err)
				return err;
			label = label_bound(inode, dentry, what);
			o = lomac_object_of_label(label);
			who = lomac_subject_observing(subject_current());
			if (is_early(who, label, mode) || lomac_observe(who, o) < who.level)
				return refuse_label_changed(what, what >> 8);
		}
	}
	who = lomac_subject_modifying(subject_current());
	if (!(unknown && !o.known) && !lomac_open(who, o, policy.top))
		return refuse(inode, dentry, label, what, what >> 8);
	if (!(mode & FMODE_WRITE) || lomac_modify(who, o, policy.top))
		return 0;
	return refuse(inode, dentry, label, (u8)what == TG_OP_OPEN_READ ? TG_OP_OPEN_WRITE : what,
		      what >> 8);
}

/*
 * Binds an object to the current subject: what every way of getting a
 * descriptor or a mapping has in common. `mode` is FMODE_READ and FMODE_WRITE.
 */
static __always_inline int bind(struct file *file, u32 mode, u8 op, u8 class)
{
	u64 label = label_hint(file->f_inode);
	struct lomac_subject who = { .level = policy.top };

	if (op == TG_OP_RECEIVE_FD && is_of_overlay(address(file->f_inode)))
		label = 0;
	if (label) {
		/* reading what is at the top changes nobody: no need to ask who it is */
		if (mode & FMODE_WRITE || label_level(label) < policy.top)
			who.level = level_current();
		if (who.level != LEVEL_UNSURE && lomac_plain(who, lomac_object_of_label(label),
							     mode & FMODE_READ, mode & FMODE_WRITE))
			return 0;
	}
	return bind_decide(file, mode, op | class << 8);
}

/* A mapping of memory that no path names: it may hold what its lowest writer knew. */
static __noinline int bind_memory(struct file *file, u32 mode)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP, .source = ~0u };
	struct inode *inode = file->f_inode;
	u64 dentry = file_dentry(file);
	struct lomac_object o = { .known = true };
	struct tg_subject *s;

	if (hand_note(address(file)))
		return -ENOMEM;
	if (hand_let_end())
		return refuse_label_changed(TG_OP_MMAP, TG_C_MMAP);
	s = subject_current();
	o.level = memory_level(inode, dentry, TG_C_MMAP);
	n.object = o.level;
	if (o.level == LEVEL_UNSURE)
		return refuse_label_changed(TG_OP_MMAP, TG_C_MMAP);
	if (mode & FMODE_READ) {
		u8 to = lomac_observe(lomac_subject_observing(s), o);

		if (to < subject_observes(s)) {
			int err = fall(s, to, &n, true);

			if (err)
				return err;
			s = subject_current();
			o.level = memory_level(inode, dentry, TG_C_MMAP);
			if (o.level == LEVEL_UNSURE ||
			    lomac_observe(lomac_subject_observing(s), o) < subject_observes(s) ||
			    (mode & FMODE_WRITE && subject_level(s) < to))
				return refuse_label_changed(TG_OP_MMAP, TG_C_MMAP);
		}
	}
	if (!(mode & FMODE_WRITE))
		return 0;
	/* a System V segment's level is its key's: ipc_permission has decided */
	if (!(inode->i_flags & S_PRIVATE) &&
	    !lomac_modify(lomac_subject_modifying(s), o, policy.top))
		return deny(s, &n, -EPERM);
	if (!floor_lower(address(inode), subject_level(subject_current())))
		return 0;
	n.reason = TG_R_TABLE_FULL;
	return deny(subject_current(), &n, -ENOSPC);
}

/*
 * Has the current subject, in a table of its own, what it opens again by a name in
 * /proc (`/dev/stdin` in a pipeline)? Then no task comes to read or write that did not,
 * and nobody but itself can close what it has before it has the other. (For the passes of a
 * transaction see tx_hand.) Only the first descriptors are looked at.
 */
__noinline bool has_end(u64 opened)
{
	struct files_struct *files = UNTRUSTED(bpf_get_current_task_btf())->files;
	struct file *file = CAST(struct file, opened);
	u32 mode = file->f_mode & (FMODE_READ | FMODE_WRITE), i;
	struct fdtable *fdt;
	struct file **fds;
	u64 open = 0;

	if (!files || files->count.counter != 1)
		return false;
	fdt = files->fdt;
	fds = fdt->fd;
	bpf_probe_read_kernel(&open, sizeof(open), fdt->open_fds);
	bpf_for(i, 0, 64) {
		u64 at = 0;

		if (!(open >> i))
			break;
		if (!(open >> i & 1))
			continue;
		bpf_probe_read_kernel(&at, sizeof(at), fds + i);
		if (!at || address(CAST(struct file, at)->f_inode) != address(file->f_inode))
			continue;
		mode &= ~CAST(struct file, at)->f_mode;
		if (!mode)
			return true;
	}
	return false;
}

/* May the current subject have memory that no path names, of a level like this, opened? */
static __noinline bool memory_opens(struct file *file, u8 floor)
{
	struct dentry *d = CAST(struct dentry, file_dentry(file));

	return !(file->f_mode & FMODE_WRITE) || subject_level(subject_current()) >= floor ||
	       (d->d_parent == d && !memory_is_mapped(address(file->f_inode)));
}

/*
 * The current subject gets an end of a channel. Pipes and memory have no name; a task that opens
 * them through /proc drags nobody down, but is refused.
 */
static __always_inline int join_decide(struct file *file, u8 op)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = op, .class = TG_C_FILE, .source = ~0u };
	struct inode *inode = file->f_inode;
	u64 key = address(inode), magic = fs_magic(inode);
	bool named = (inode->i_mode & S_IFMT) == S_IFIFO && magic != PIPEFS_MAGIC;
	bool memory = !named && inode_is_memory(inode), by_name = op == TG_OP_OPEN_READ && !named;
	bool received = op == TG_OP_RECEIVE_FD;
	struct tg_fifo *fifo = NULL;
	u8 floor = 0;
	int err;

	if (by_name && !memory && has_end(address(file)))
		return hand_let_end() ? refuse_label_changed(op, TG_C_FILE) : 0;
	if (named) {
		fifo = INODE_STORAGE_MADE(&fifos, inode);
		n.reason = TG_R_NO_LABEL;
		if (!fifo)
			return deny(s, &n, -EAGAIN);
	} else if (memory) {
		struct dentry *d = CAST(struct dentry, file_dentry(file));

		floor = memory_level(inode, file_dentry(file), TG_C_FILE);
		if (floor == LEVEL_UNSURE) {
			n.reason = TG_R_BUSY;
			return deny(s, &n, -EAGAIN);
		}
		/* a file that has lost its name keeps its level; the rest floats while nobody has it mapped */
		n.reason = d->d_parent != d ? TG_R_RULE : TG_R_MAPPING;
		n.object = floor;
		if (!memory_opens(file, floor))
			return deny(s, &n, -EPERM);
		if (floor_lower(key, floor)) {
			n.reason = TG_R_TABLE_FULL;
			return deny(s, &n, -ENOSPC);
		}
	}
	n.reason = TG_R_RULE;
	/*
	 * of two tasks that receive the two ends of a connection each has its own for the other,
	 * too
	 */
	if (received && s && s != &subject_lost)
		s->joins = address(file);
	err = TX_TRIED(join_channel(address(file), fifo, by_name, &n));
	if (err == TX_LOST)
		n.reason = TG_R_BUSY;
	if (received && s && s != &subject_lost)
		s->joins = 0;
	if (err)
		return deny(s, &n,
			    n.reason == TG_R_BUSY || (named && n.reason == TG_R_CHANNEL) ? -EAGAIN :
			    n.reason == TG_R_CHANNEL                                     ? -EPERM :
											   -EACCES);
	if (memory && !memory_opens(file, floor))
		return deny(subject_current(), &n, -EPERM);
	return 0;
}

/* From before it is asked the end counts as the subject's: see demote/hand.h. */
static __noinline int join(struct file *file, u8 op)
{
	int err = verdict_of(hand_note(address(file)));

	if (err)
		return err;
	err = join_decide(file, op);
	if (err)
		hand_empty();
	return err;
}

#endif
