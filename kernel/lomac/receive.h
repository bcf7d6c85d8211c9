/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: descriptors that arrive from another process, or would by binder. */
#ifndef TIDEGATE_LOMAC_RECEIVE_H
#define TIDEGATE_LOMAC_RECEIVE_H

#include "lomac/file.h"
#include "lomac/net.h"

/* A connection handed over: to a network, its data is read without any further hook; to a higher server, it is a connect. */
static __noinline int receive_socket(struct file *file)
{
	struct socket *sock = CAST(struct socket, address(file->private_data));
	struct sock *sk = CAST(struct sock, address(sock->sk));
	u16 family = sk->__sk_common.skc_family;
	struct net_peer p = {};

	if (family == AF_UNIX)
		return guard_unix(sk, -EPERM);
	if (family != AF_INET && family != AF_INET6)
		return family_is_told(family) ? 0 : observe_net(&p, TG_OP_RECEIVE_FD);
	if (!protocol_is_known(sk->sk_type, sk->sk_protocol))
		return observe_net(&p, TG_OP_RECEIVE_FD);
	net_peer_of(sk, &p);
	return p.known ? observe_net(&p, TG_OP_RECEIVE_FD) : 0;
}

/*
 * Anybody sends descriptors to the daemon. It takes those whose end waits for nobody: memory, Unix sockets, processes, and what only
 * names an object (O_PATH). Of any other, whoever serves the file is told of its end and may never answer, not even to SIGKILL.
 */
static __noinline bool daemon_takes(struct file *file)
{
	struct inode *inode = CAST(struct inode, address(file->f_inode));
	u64 magic = fs_magic(inode);
	struct socket *sock;

	if (file->f_mode & FMODE_PATH || magic == PIDFS_MAGIC)
		return true;
	if (magic == SOCKFS_MAGIC) {
		sock = CAST(struct socket, address(file->private_data));
		return CAST(struct sock, address(sock->sk))->__sk_common.skc_family == AF_UNIX;
	}
	return magic != SECRETMEM_MAGIC && inode_is_memory(inode);
}

/*
 * Rings and listeners act for the task that made them, a pty's master types for its session, and the end of a pidfd may be that of
 * its process.
 */
static __noinline bool acts_for_others(struct file *file, enum tx_kind kind)
{
	u8 level = subject_level(subject_current());

	return (kind == TX_RING && level < policy.top) ||
	       (kind == TX_MASTER && file->f_mode & FMODE_WRITE && master_is_higher(file, level)) ||
	       (kind == TX_FILE && pidfd_kills_above(address(file), level));
}

/* Is what has been received a counter of somebody above, as its sender has not kept it and did not fall? */
static __noinline int receive_counter(struct file *file)
{
	u32 reach;

	bpf_rcu_read_lock();
	reach = counter_reach(address(file), subject_level(subject_current()));
	bpf_rcu_read_unlock();
	if (reach == REACH_UNSURE)
		return -EAGAIN;
	return reach ? refuse(file->f_inode, file_dentry(file),
			      label_make(policy.top, 0, TG_FROM_KIND, policy.seqno),
			      TG_OP_RECEIVE_FD, TG_C_FILE) :
		       0;
}

/*
 * Does somebody put it there by a seccomp listener (SECCOMP_IOCTL_NOTIF_ADDFD), while the thread waits for that in a call which
 * counts as at rest (demote/quiesce.h)? No fall would wait for its end. With a ring a message is received in any call, and nobody falls.
 */
static __always_inline bool comes_at_rest(enum tx_kind kind)
{
	struct task_struct *me = bpf_get_current_task_btf(), *fields = UNTRUSTED(me);

	return kind != TX_OTHER && !(fields->io_uring && fields->io_uring->xa.xa_head) &&
	       !(me->flags & PF_IO_WORKER) && tx_at_rest(me);
}

/*
 * close(2) of a file of FUSE waits for its server, which may never answer, not even to SIGKILL (fuse_flush). A task that falls by the
 * file is no higher than the server then. One that does not fall (`nodemote`) takes none, unless a rule names where it is mounted.
 */
static __noinline int refuse_served(struct file *file)
{
	struct tg_note n = { .op = TG_OP_RECEIVE_FD, .class = TG_C_FILE };
	u64 inode = address(file->f_inode), dentry = file_dentry(file), label = LABEL_UNKNOWN;
	struct tg_subject *s = subject_current();

	if (!s || !(s->attrs & TG_NODEMOTE) || file->f_mode & FMODE_PATH)
		return 0;
	/* an overlay's file is flushed as the file behind it */
	if (!is_of_overlay(inode) || look_behind(&inode, &dentry)) {
		if (fs_magic(CAST(struct inode, inode)) != FUSE_MAGIC)
			return 0;
		label = label_peek(inode, dentry, NULL);
	}
	if ((!(label & LABEL_UNKNOWN) && label_origin(label) != TG_FROM_KIND) ||
	    label_level(label) >= subject_observes(s))
		return 0;
	note_object(&n, file->f_inode, file_dentry(file), label);
	n.reason = TG_R_CHANNEL;
	return deny(s, &n, refusal(&n, label));
}

/* A descriptor received through a socket or by pidfd_getfd binds what it names. */
SEC("lsm.s/file_receive")
int BPF_PROG(lomac_file_receive, struct file *file)
{
	struct tg_subject *s = subject_current();
	struct inode *inode = file->f_inode;
	u16 type = inode->i_mode & S_IFMT;
	enum tx_kind kind;

	/* before anything is asked: see held.h */
	if (s)
		WRITE_ONCE(s->received, held_now());

	if (policy.daemon == bpf_get_current_pid_tgid() >> 32 && !daemon_takes(file))
		return -EPERM;
	count_query(TG_C_FILE);
	if (type == S_IFDIR)
		return 0;
	kind = tx_kind_of(CAST(struct file, address(file)));
	if (acts_for_others(file, kind) || comes_at_rest(kind))
		return refuse(inode, file_dentry(file),
			      label_make(policy.top, 0, TG_FROM_KIND, policy.seqno),
			      TG_OP_RECEIVE_FD, TG_C_FILE);
	/* what only names a socket (O_PATH) is none */
	if (type == S_IFSOCK && file->f_mode & FMODE_PATH)
		type = 0;
	if (type == S_IFIFO || type == S_IFSOCK || inode_is_memory(inode)) {
		int err = binds_place(file, TG_OP_RECEIVE_FD);

		if (!err)
			err = join(file, TG_OP_RECEIVE_FD);
		return err || type != S_IFSOCK ? err : receive_socket(file);
	}
	/* what reaches another's memory, or a page that all who hold it may map; of a device its place is asked besides */
	if (kind == TX_FAULTS || kind == TX_SHARED || kind == TX_PROCESS) {
		int err = join(file, TG_OP_RECEIVE_FD);

		if (!err && kind == TX_SHARED)
			err = receive_counter(file);
		if (err || (kind != TX_PROCESS && type != S_IFCHR))
			return err;
	}
	if (type == S_IFCHR) {
		int err = observe_tap(file);

		if (err)
			return err;
	}
	if (type == S_IFREG) {
		int err = refuse_served(file);

		if (err)
			return err;
	}
	return bind(file, mode_bound(inode, file->f_mode), TG_OP_RECEIVE_FD, TG_C_FILE);
}

/*
 * A descriptor that binder passes. This hook is asked in the sender's call, and names the receiver only by whoever opened its
 * end; when the receiver gets the descriptor no hook is asked, in any model. So it is refused, whoever sends it.
 */
SEC("lsm/binder_transfer_file")
int BPF_PROG(lomac_binder_transfer_file, const struct cred *from, const struct cred *to,
	     struct file *file)
{
	return refuse(file->f_inode, file_dentry(file),
		      label_make(policy.top, 0, TG_FROM_KIND, policy.seqno), TG_OP_RECEIVE_FD,
		      TG_C_FILE);
}

#endif
