/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: open files. selinux_file_*() of security/selinux/hooks.c. */
#ifndef TIDEGATE_TE_FILE_H
#define TIDEGATE_TE_FILE_H

#include "lib/file.h"
#include "lib/number.h"
#include "core/file_kind.h"
#include "te/cred.h"
#include "te/inode_sid.h"

/* Has it a label? */
static __always_inline bool te_is_file(struct inode *inode)
{
	u64 magic = inode->i_sb->s_magic;

	/* the kernel's own: System V shared memory, what is shared and anonymous, what all that is anonymous share */
	if (inode->i_flags & S_PRIVATE)
		return false;
	return magic != NSFS_MAGIC && magic != PIDFS_MAGIC && magic != DMA_BUF_MAGIC;
}

/* file_to_av() */
static __always_inline u32 te_file_request(struct file *file)
{
	u32 request = 0;

	if (file->f_mode & FMODE_READ)
		request |= FILE__READ;
	if (file->f_mode & FMODE_WRITE)
		request |= file->f_flags & O_APPEND ? FILE__APPEND : FILE__WRITE;
	return request ? request : FILE__IOCTL;
}

/* May the current task use a descriptor, and do this to its file? file_has_perm(); no request: the descriptor alone. */
static __noinline int te_file_asked(struct file *file, u32 request, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_FILE };
	struct inode *inode;
	int err;

	/* nobody's memory has a file: the verifier of some kernels takes that for impossible, and leaves the callers' tests out */
	if (!address(file))
		return 0;
	inode = file->f_inode;
	err = te_fd_has_perm(address(file), &n);
	if (err || !request || !te_is_file(inode))
		return err;
	return te_may_inode(inode, file_dentry(file), request, &n);
}

/* A file without a name gets its label when it is opened, as no hook is told of its making. */
static __noinline int te_unnamed(struct file *file)
{
	struct tg_note n = { .op = TG_OP_CREATE, .class = TG_C_FILE };
	struct dentry *dir = file->f_path.dentry->d_parent;
	struct te_who who = te_me();
	struct te_made made = { .class = SECCLASS_FILE };
	u64 sid = who.subject ? who.subject->create_sid : 0;
	int err;

	if (!who.subject)
		return 0;
	made.source = who.sid;
	made.target = te_inode_peek(address(dir->d_inode), address(dir));
	if (made.target == TE_LATER)
		return -EAGAIN;
	if (!sid)
		sid = te_new_label(TE_TRANSITION, &made);
	if (!sid)
		return -EACCES;
	/* the kernel asks for this as it looks the directory up */
	err = te_avc_has_perm(who.sid, made.target, SECCLASS_DIR, DIR__WRITE | DIR__SEARCH, &n);
	if (!err)
		err = te_avc_has_perm(who.sid, sid, SECCLASS_FILE, FILE__CREATE, &n);
	if (err)
		return err;
	n.inode = address(file->f_inode);
	n.dentry = file_dentry(file);
	return !te_gives() || te_give(file->f_inode, sid) ? te_full(&n) : 0;
}

SEC("lsm/file_open")
int BPF_PROG(te_file_open, struct file *file)
{
	u32 request;
	int err;

	if (!te_me().subject)
		return 0;
	if (file->f_flags & O_TMPFILE_FLAG) {
		err = te_unnamed(file);
		if (err)
			return err;
	}
	request = te_file_request(file) | FILE__OPEN;
	/* the kernel asks for this as it looks the file up */
	if (opened_to_execute(file))
		request |= FILE__EXECUTE;
	return te_file_asked(file, request,
			     file->f_mode & FMODE_WRITE ? TG_OP_OPEN_WRITE : TG_OP_OPEN_READ);
}

SEC("lsm/file_receive")
int BPF_PROG(te_file_receive, struct file *file)
{
	if (!te_me().subject)
		return 0;
	/* what a ring has in a table of its own would come along, and nobody sees it */
	if (tx_kind_of(file) == TX_RING)
		return -EACCES;
	return te_file_asked(file, te_file_request(file), TG_OP_RECEIVE_FD);
}

SEC("lsm/file_lock")
int BPF_PROG(te_file_lock, struct file *file)
{
	return te_me().subject ? te_file_asked(file, FILE__LOCK, TG_OP_LOCK) : 0;
}

/* An owner whose context cannot be asked for: refused, and the record of it. */
static __noinline int te_owner_unknown(void)
{
	struct tg_note n = {
		.op = TG_OP_SIGNAL, .class = TG_C_TASK, .source = ~0u, .reason = TG_R_NO_LABEL
	};

	return deny(NULL, &n, -EACCES);
}

/*
 * Whoever is ready first has the kernel send the owner of a descriptor a signal, in whose name cannot be told then. So a governed task
 * makes nobody an owner but its own process, and those that it may send every signal. In a PID namespace below the first no
 * helper of 6.12 finds a process by its number, so there it is its own process alone.
 */
static __noinline int te_owner_asked(unsigned long pid)
{
	u32 every = PROCESS__SIGNAL | PROCESS__SIGKILL | PROCESS__SIGSTOP | PROCESS__SIGCHLD;
	struct tg_note n = { .op = TG_OP_SIGNAL, .class = TG_C_TASK };
	struct te_who who = te_me();
	struct task_struct *owner;
	int err;

	if (!who.subject || !pid || (u32)pid == own_number())
		return 0;
	/* a process group, whoever comes to be in it */
	if ((int)pid < 0 || !numbers_are_first())
		return te_owner_unknown();
	owner = bpf_task_from_pid(pid);
	/* as the kernel will say, or it is born by then */
	if (!owner)
		return -ESRCH;
	n.peer = owner->tgid;
	/* a thread of its own */
	err = owner->tgid == bpf_get_current_pid_tgid() >> 32 ?
		      0 :
		      te_avc_has_perm(who.sid, te_sid_of(owner), SECCLASS_PROCESS, every, &n);
	bpf_task_release(owner);
	return err;
}

SEC("lsm/file_fcntl")
int BPF_PROG(te_file_fcntl, struct file *file, unsigned int cmd, unsigned long arg)
{
	int err;

	if (!te_me().subject)
		return 0;
	if (cmd == F_SETOWN) {
		err = te_file_asked(file, 0, TG_OP_TTY);
		return err ? err : te_owner_asked(arg);
	}
	/* the owner that it is about stands in memory, which may change meanwhile */
	if (cmd == F_SETOWN_EX)
		return te_owner_unknown();
	if (cmd == F_SETFL && file->f_flags & O_APPEND && !(arg & O_APPEND))
		return te_file_asked(file, FILE__WRITE, TG_OP_OPEN_WRITE);
	if ((cmd >= F_GETLK && cmd <= F_SETLKW) || (cmd >= F_OFD_GETLK && cmd <= F_OFD_SETLKW))
		return te_file_asked(file, FILE__LOCK, TG_OP_LOCK);
	if (cmd == F_GETFL || cmd == F_SETFL || (cmd >= F_GETOWN && cmd <= F_GETSIG) ||
	    cmd == F_GETOWNER_UIDS)
		return te_file_asked(file, 0, TG_OP_TTY);
	return 0;
}

#endif
