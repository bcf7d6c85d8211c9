/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: open files. */
#ifndef TIDEGATE_LOMAC_FILE_H
#define TIDEGATE_LOMAC_FILE_H

#include "lomac/network.h"

/* O_TMPFILE makes a file without asking for a name: its level is that of a creation. */
static __noinline int create_unnamed(struct file *file)
{
	struct tg_note n = { .op = TG_OP_CREATE, .class = TG_C_FILE };
	struct tg_subject *s = subject_current();
	struct inode *inode = file->f_inode;
	struct dentry *dir = UNTRUSTED(file)->f_path.dentry->d_parent;
	struct lomac_object place;
	u64 label;
	u8 level;

	if (!s)
		return 0;
	label = label_peek(address(dir->d_inode), address(dir), &n.source);
	if (!lomac_names(lomac_subject_modifying(s), lomac_object_of_label(label), policy.top)) {
		n.inode = address(dir->d_inode);
		n.dentry = address(dir);
		n.object = label_level(label);
		return deny(s, &n, refusal(&n, label));
	}
	label = label_of(inode, file_dentry(file), TG_C_FILE);
	if (label & LABEL_LATER)
		return refuse_label_changed(TG_OP_CREATE, TG_C_FILE);
	place = lomac_object_of_label(label);
	level = lomac_create(lomac_subject_modifying(s), place);
	if (!place.known || place.attrs & TG_NEUTRAL || level == place.level)
		return 0;
	note_object(&n, inode, file_dentry(file), label);
	n.reason = TG_R_NO_CREATOR;
	if (level == LOMAC_REFUSED)
		return deny(s, &n, -EPERM);
	n.reason = TG_R_TABLE_FULL;
	return !given_has_room(s->level) || label_give(inode, file_dentry(file), level) ?
		       deny(s, &n, -ENOSPC) :
		       0;
}

/* An open that creates and fails leaves its note behind; it is not good for long: 25 to 250 ms. */
#define CREATE_TO_OPEN_TICKS 25

/*
 * Is it the object that the subject's creat() has just made? The creation was
 * decided, so the open for writing that is part of it need not be.
 */
static __always_inline bool just_created(struct tg_subject *s, struct inode *inode)
{
	struct tg_given_key key = given_key(inode);
	bool same = s->created.ino && s->created.ino == key.ino &&
		    s->created.generation == key.generation && s->created.dev == key.dev &&
		    s->level >= s->created_level &&
		    bpf_jiffies64() - s->created_at < CREATE_TO_OPEN_TICKS;

	s->created.ino = 0;
	return same;
}

/* Opens what has no name: CHANNEL, it is memory; CHANNEL_OWN, and made just now; 0, it is not. */
enum { CHANNEL = 1, CHANNEL_OWN };

static __noinline int open_unnamed(struct file *file)
{
	bool memory = inode_is_memory(file->f_inode);
	int err;

	if (!(file->f_flags & O_TMPFILE_FLAG))
		return memory ? CHANNEL : 0;
	err = create_unnamed(file);
	/* it can get a name, though the inode does not say so yet */
	if (err || !memory || !(file->f_flags & O_EXCL_FLAG))
		return err;
	return CHANNEL_OWN;
}

/* The label of a program; a memfd is trusted as far as its lowest writer. */
static __always_inline u64 exec_label(struct file *file)
{
	struct inode *inode = file->f_inode;

	if (fs_magic(inode) == OVERLAYFS_MAGIC) {
		struct tg_subject *s = subject_current();

		if (s && s->exec_behind)
			return label_make(s->exec_behind - 1, 0, TG_FROM_KIND, policy.seqno);
	}
	if (inode_is_memory(inode))
		return memory_label(inode, file_dentry(file), TG_C_EXEC);
	return label_of(inode, file_dentry(file), TG_C_EXEC);
}

/*
 * An exec is observed by the new program, not by the one that asks for it: also an ELF interpreter,
 * whatever of it is mapped, as its headers alone say where the program begins. (What the program's
 * own file has lowered here, bprm_creds_for_exec begins anew.) Of an overlay's file that is
 * whatever lies behind it, which is opened to be executed, too, right after it.
 */
static __noinline int open_executed(struct file *file)
{
	struct inode *inode = file->f_inode;
	struct tg_subject *s = subject_current();
	struct lomac_subject who = {};
	struct lomac_object o;
	bool fresh;
	u64 label;
	u8 level;

	if (fs_magic(inode) == OVERLAYFS_MAGIC) {
		if (s)
			s->exec_behind = 0;
		return 0;
	}
	label = exec_label(file);
	if (exec_early(label))
		return -EAGAIN;
	o = lomac_object_of_label(label);
	/* of a program that is trusted its interpreter is code, too */
	if (s && s != &subject_lost && !lomac_is_code(o, policy.top))
		s->exec_attrs = 0;
	level = o.known ? o.level : 0;
	if (level >= policy.top || o.attrs & TG_NEUTRAL)
		return 0;
	fresh = !s;
	s = subject_made(bpf_get_current_task_btf());
	if (!s)
		return -ENOMEM;
	if (fresh)
		s->exec_level = policy.top;
	who.level = s->exec_level;
	s->exec_level = lomac_observe(who, o);
	if (!s->exec_behind || level + 1 < s->exec_behind)
		s->exec_behind = level + 1;
	return 0;
}

/* What comes by a FIFO floats, but it has a place, which may be `lownoopen`. */
static __always_inline int binds_place(struct file *file, u8 op)
{
	struct inode *inode = file->f_inode;

	if ((inode->i_mode & S_IFMT) != S_IFIFO || fs_magic(inode) == PIPEFS_MAGIC)
		return 0;
	return bind(file, 0, op, TG_C_FILE);
}

/* A process's memory: see demote/references.h and demote/hand.h. At what level that one is ptrace_access_check asks after this. */
static __noinline int open_process(struct file *file)
{
	int err = verdict_of(memory_opened(address(file->f_inode)));

	if (!err)
		err = verdict_of(hand_note(address(file)));
	if (!err && hand_let_end())
		err = refuse_label_changed(TG_OP_OPEN_READ, TG_C_FILE);
	return err;
}

/* open, openat, O_TMPFILE, reopening through /proc; io_uring's opens too. */
SEC("lsm.s/file_open")
int BPF_PROG(lomac_file_open, struct file *file)
{
	struct inode *inode = file->f_inode;
	u16 type = inode->i_mode & S_IFMT;
	u32 mode = file->f_mode & (FMODE_READ | FMODE_WRITE);
	int channel = type == S_IFIFO ? CHANNEL : 0;

	if (type == S_IFDIR)
		return 0;
	if (!inode->i_nlink && !channel)
		channel = open_unnamed(file);
	/* what is just being made is nobody else's */
	if (channel < 0 || channel == CHANNEL_OWN)
		return channel < 0 ? channel : 0;
	if (opened_to_execute(file)) {
		int err = open_executed(file);

		/* memory has no place that may be `lownoopen`: what it holds, the exec observes */
		if (err || channel)
			return err;
		mode = 0;
	} else if (channel) {
		int err = binds_place(file, TG_OP_OPEN_READ);

		return err ? err : join(file, TG_OP_OPEN_READ);
	}
	if (mode == FMODE_WRITE) {
		struct tg_subject *s = subject_current();

		if (!s || just_created(s, inode))
			return 0;
	}
	if (type == S_IFCHR) {
		int err = observe_tap(file);

		if (err)
			return err;
	}
	if (fs_magic(inode) == PROC_MAGIC && is_process_memory(file_dentry(file))) {
		int err = open_process(file);

		if (err)
			return err;
	}
	count_query(TG_C_FILE);
	return bind(file, mode_bound(inode, mode), TG_OP_OPEN_READ, TG_C_FILE);
}

#endif
