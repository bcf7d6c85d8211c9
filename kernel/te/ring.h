/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: anonymous inodes and io_uring. */
#ifndef TIDEGATE_TE_RING_H
#define TIDEGATE_TE_RING_H

#include "te/inode_sid.h"

/* An anonymous inode of a kind that has labels: userfaultfd, io_uring, secret memory. */
SEC("lsm/inode_init_security_anon")
int BPF_PROG(te_inode_init_security_anon, struct inode *inode, const struct qstr *name,
	     const struct inode *context_inode)
{
	struct tg_note n = { .op = TG_OP_CREATE, .class = TG_C_FILE };
	struct te_who who = te_me();
	struct te_made made = { .class = SECCLASS_ANON_INODE };
	struct qstr *text = CAST(struct qstr, address(name));
	u64 sid;
	int err;

	if (!who.subject)
		return 0;
	made.source = made.target = who.sid;
	made.name = address(text->name);
	made.len = text->len & 255;
	sid = te_new_label(TE_TRANSITION, &made);
	if (!sid)
		return -EACCES;
	err = te_avc_has_perm(who.sid, sid, SECCLASS_ANON_INODE, FILE__CREATE, &n);
	if (err)
		return err;
	return !te_has_room() || te_give(inode, sid) ? te_full(&n) : 0;
}

static __always_inline int te_ring_asked(u64 target, u32 request)
{
	struct tg_note n = { .op = TG_OP_SYSTEM, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	return who.subject ? te_avc_has_perm(who.sid, target ? target : who.sid, SECCLASS_IO_URING,
					     request, &n) :
			     0;
}

SEC("lsm/uring_override_creds")
int BPF_PROG(te_uring_override_creds, const struct cred *new)
{
	return te_ring_asked(0, IO_URING__OVERRIDE_CREDS);
}

SEC("lsm/uring_sqpoll")
int BPF_PROG(te_uring_sqpoll)
{
	return te_ring_asked(0, IO_URING__SQPOLL);
}

SEC("?lsm/uring_allowed")
int BPF_PROG(te_uring_allowed)
{
	return te_ring_asked(0, IO_URING__ALLOWED);
}

/* What a ring has a driver do that it alone knows. */
SEC("lsm/uring_cmd")
int BPF_PROG(te_uring_cmd, struct io_uring_cmd *cmd)
{
	struct file *file = CAST(struct file, address(cmd->file));
	struct te_who who = te_me();
	u64 sid;

	if (!who.subject)
		return 0;
	sid = te_inode_peek(address(file->f_inode), address(file->f_path.dentry));
	return sid == TE_LATER ? -EAGAIN : te_ring_asked(sid, IO_URING__CMD);
}

#endif
