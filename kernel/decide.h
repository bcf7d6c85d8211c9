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

#endif
