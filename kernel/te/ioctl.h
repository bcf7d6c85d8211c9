/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: ioctl(2). */
#ifndef TIDEGATE_TE_IOCTL_H
#define TIDEGATE_TE_IOCTL_H

#include "te/file.h"

/* What a request to a device or a file is, where that is told by its number. */
static __always_inline u32 te_ioctl_request(u32 cmd)
{
	switch (cmd) {
	case FIONREAD:
	case FIBMAP:
	case FIGETBSZ:
	case FS_IOC_GETFLAGS:
	case FS_IOC_GETVERSION:
	case FS_IOC32_GETFLAGS:
	case FS_IOC32_GETVERSION:
		return FILE__GETATTR;
	case FS_IOC_SETFLAGS:
	case FS_IOC_SETVERSION:
	case FS_IOC32_SETFLAGS:
	case FS_IOC32_SETVERSION:
		return FILE__SETATTR;
	case FIONBIO:
	case FIOASYNC:
		return 0;
	}
	return FILE__IOCTL;
}

/* The policy capability ioctl_skip_cloexec. */
#define TE_CAP_SKIP_CLOEXEC 7

/* ioctl_has_perm(), under a policy with rules on single ioctls. */
static __noinline int te_single_ioctl(struct file *file, u32 cmd)
{
	struct tg_note n = { .op = TG_OP_TTY, .class = TG_C_FILE };
	struct inode *inode = file->f_inode;
	struct te_who who = te_me();
	struct te_query q = { .source = who.sid, .request = FILE__IOCTL };
	int err = te_fd_has_perm(address(file), &n);

	if (err || !te_is_file(inode))
		return err;
	n.dentry = file_dentry(file);
	n.inode = address(inode);
	q.target = te_inode_sid(inode, n.dentry);
	q.class = te_class_of_inode(address(inode));
	if (q.target == TE_LATER)
		return verdict_of(te_no_decision(&q, &n));
	return verdict_of(te_single_asked(&q, cmd & 0xffff, &n));
}

static __always_inline int te_ioctl_asked(struct file *file, u32 cmd)
{
	struct tg_note n = { .op = TG_OP_CAPABLE, .class = TG_C_SYSTEM };
	u32 request = te_ioctl_request(cmd), p = te_tables(policy_seqno());
	struct te_who who = te_me();

	if (!who.subject || !p)
		return 0;
	if (cmd == FIOSETOWN || cmd == SIOCSPGRP)
		return te_owner_unknown();
	if (cmd == KDSKBENT || cmd == KDSKBSENT)
		return te_avc_has_perm(who.sid, who.sid, SECCLASS_CAPABILITY,
				       CAPABILITY__SYS_TTY_CONFIG, &n);
	if ((cmd == FIOCLEX || cmd == FIONCLEX) && te_in(TE(p)->capabilities, TE_CAP_SKIP_CLOEXEC))
		return 0;
	if (request == FILE__IOCTL && TE(p)->extended)
		return te_single_ioctl(file, cmd);
	return te_file_asked(file, request, TG_OP_TTY);
}

SEC("lsm/file_ioctl")
int BPF_PROG(te_file_ioctl, struct file *file, unsigned int cmd)
{
	return te_ioctl_asked(file, cmd);
}

SEC("lsm/file_ioctl_compat")
int BPF_PROG(te_file_ioctl_compat, struct file *file, unsigned int cmd)
{
	return te_ioctl_asked(file, cmd);
}

#endif
