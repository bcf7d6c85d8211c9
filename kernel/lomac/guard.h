/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guard: revokes what was bound before a demotion. Attached by the daemon
 * only while somebody may hold such a descriptor (demote/transaction.h, step 3; held.h),
 * so that read() and write() cost nothing otherwise.
 */
#ifndef TIDEGATE_LOMAC_GUARD_H
#define TIDEGATE_LOMAC_GUARD_H

#include "lomac/shared.h"
#include "lomac/terminal.h"

/*
 * Of an overlay's file what is behind it is asked about here: for splice(2) and sendfile(2) the kernel asks about the file that they
 * name, and not again as it writes behind it.
 */
SEC("lsm/file_permission")
int BPF_PROG(lomac_guard_file_permission, struct file *file, int mask)
{
	struct tg_subject *s;
	struct inode *inode;
	struct tg_note n = { .op = TG_OP_WRITE_REVOKED, .class = TG_C_FILE };
	u64 label;
	u16 type;

	if (!(mask & (MAY_WRITE | MAY_APPEND)))
		return 0;
	s = subject_current();
	if (!s || s->level >= policy.top)
		return 0;
	inode = file->f_inode;
	type = inode->i_mode & S_IFMT;
	if (type != S_IFREG && type != S_IFBLK && type != S_IFCHR)
		return 0;
	if (writes_memory(address(inode), file_dentry(file), s->level))
		return 0;
	label = label_opened(file);
	if (lomac_modify(lomac_subject_modifying(s), lomac_object_of_label(label), policy.top) &&
	    !(type == S_IFCHR && device_is_master(inode->i_rdev) &&
	      master_is_higher(file, s->level)))
		return 0;
	note_object(&n, inode, file_dentry(file), label);
	return deny(s, &n, refusal(&n, label) == -EAGAIN ? -EAGAIN : -EIO);
}

/* A connection to a named socket that the sender could not make any more. */
static __noinline int guard_unix(struct sock *sk, int err)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_SEND, .class = TG_C_UNIX, .source = ~0u };
	struct unix_sock *u;

	if (!s || s->level >= policy.top)
		return 0;
	u = CAST(struct unix_sock, address(sk));
	if (!u->peer || s->level >= unix_admits(address(u->peer)))
		return 0;
	return err == -EIO ? deny(s, &n, -EIO) : deny(s, &n, -EPERM);
}

#endif
