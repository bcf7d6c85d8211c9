/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The checks the hooks are written in: observe, modify, and what follows from
 * each. Every enabled model decides here; the verdict is their conjunction.
 */
#ifndef TIDEGATE_DECIDE_H
#define TIDEGATE_DECIDE_H

static __always_inline struct lomac_subject subject(struct tg_subject *s)
{
	struct lomac_subject l = { .level = subject_level(s), .attrs = s ? s->attrs : 0 };

	return l;
}

static __always_inline void count_query(u32 class)
{
	struct tg_stats *st = stats_of(class);

	if (st)
		st->queries++;
}

static __always_inline void note_object(struct tg_note *n, struct inode *inode, u64 dentry, u64 label)
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
	int err = may_sleep ? demote_held(to, n) : demote_now(to, n);

	if (!err)
		return 0;
	return deny(s, n, n->reason == TG_R_BUSY ? -EAGAIN : -EACCES);
}

/* modify(s, o), and the record of a refusal. */
static __always_inline int modify(struct tg_subject *s, struct inode *inode, u64 dentry, u64 label,
				  u8 op, u8 class)
{
	struct tg_note n = { .op = op, .class = class };

	if (lomac_modify(subject(s), object(label), policy.top))
		return 0;
	note_object(&n, inode, dentry, label);
	return deny(s, &n, -EPERM);
}

/*
 * Binds an object to the current subject: what every way of getting a
 * descriptor or a mapping has in common. `mode` is FMODE_READ and FMODE_WRITE.
 */
static __noinline int bind(struct inode *inode, u64 dentry, u32 mode, u8 op, u8 class)
{
	struct tg_note n = { .op = op, .class = class };
	u64 label = label_of(inode, dentry, class);
	struct lomac_object o = object(label);
	struct lomac_subject who;
	struct tg_subject *s;
	u8 to;
	int err;

	/* reading what is at the top changes nobody: no need to ask who it is */
	if (!(mode & FMODE_WRITE) && o.known && o.level >= policy.top && !(o.attrs & TG_LOWNOOPEN))
		return 0;
	s = subject_current();
	who = subject(s);
	if (!lomac_open(who, o)) {
		note_object(&n, inode, dentry, label);
		n.reason = TG_R_NOOPEN;
		return deny(s, &n, -EPERM);
	}
	to = mode & FMODE_READ ? lomac_observe(who, o) : who.level;
	if (to < who.level) {
		note_object(&n, inode, dentry, label);
		err = fall(s, to, &n, true);
		if (err)
			return err;
		s = subject_current();
	}
	if (mode & FMODE_WRITE)
		return modify(s, inode, dentry, label, op == TG_OP_OPEN_READ ? TG_OP_OPEN_WRITE : op, class);
	return 0;
}

/*
 * The current subject gets an end of a channel. A FIFO's reader that still waits
 * in open() has no descriptor to be found by: the inode remembers how high its
 * readers were.
 */
static __noinline int join(struct file *file, u8 op)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = op, .class = TG_C_FILE, .source = ~0u };
	struct inode *inode = file->f_inode;
	u8 level;

	if (join_channel(address(file), &n))
		return deny(s, &n, n.reason == TG_R_BUSY ? -EAGAIN : -EACCES);
	level = subject_level(subject_current());
	if ((inode->i_mode & S_IFMT) == S_IFIFO) {
		struct pipe_inode_info *pipe = inode->i_pipe;
		u32 readers = pipe ? pipe->readers : 0;
		struct tg_inode *memo = bpf_inode_storage_get(&inodes, inode, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

		n.reason = TG_R_NO_LABEL;
		if (!memo)
			return deny(s, &n, -EAGAIN);
		if (!readers)
			memo->node = 0;
		n.reason = TG_R_CHANNEL;
		if (file->f_mode & FMODE_WRITE && readers > tx.join_readers && memo->node > level + 1u)
			return deny(s, &n, -EAGAIN);
		if (file->f_mode & FMODE_READ && level + 1u > memo->node)
			memo->node = level + 1;
	}
	return 0;
}

#endif
