/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an open file is to the tasks that share it. */
#ifndef TIDEGATE_CORE_FILE_KIND_H
#define TIDEGATE_CORE_FILE_KIND_H

#include "lib/inode_kind.h"
#include "lib/verifier.h"

/* What one descriptor means to the transaction. */
enum tx_kind {
	TX_OTHER,
	TX_SHARED,
	TX_PIPE,
	TX_UNIX,
	TX_MEMORY,
	TX_FILE,
	TX_RING,
	TX_FAULTS,
	TX_PROCESS,
	TX_MASTER
};

__noinline u32 tx_kind_anonymous(u64 dentry)
{
	struct dentry *d = CAST(struct dentry, dentry);
	char name[8] = {};

	bpf_probe_read_kernel(name, sizeof(name), d->d_name.name);
	/* a seccomp listener answers another's calls; a read of fanotify installs a descriptor */
	if (!__builtin_memcmp(name, "[io_urin", 8) || !__builtin_memcmp(name, "seccomp ", 8) ||
	    !__builtin_memcmp(name, "[fanotif", 8))
		return TX_RING;
	if (!__builtin_memcmp(name, "[userfau", 8))
		return TX_FAULTS;
	if (!__builtin_memcmp(name, "[eventfd", 8) || !__builtin_memcmp(name, "[pidfd]", 8))
		return TX_OTHER;
	/*
	 * Of any other, what one of its holders does another has: a page that all may map (perf, KVM, BPF), what is to be
	 * told, in words of one's own, and when (epoll, inotify, signalfd, timerfd), rules and mounts in the making, and
	 * whatever a driver lets them do to its device.
	 */
	return TX_SHARED;
}

/* /proc/PID/mem: no other file of procfs has that name. */
__noinline bool is_process_memory(u64 dentry)
{
	struct dentry *d = CAST(struct dentry, dentry);
	char name[4] = {};

	bpf_probe_read_kernel(name, sizeof(name), d->d_name.name);
	return !__builtin_memcmp(name, "mem", 4);
}

static __always_inline enum tx_kind tx_kind_of(struct file *f)
{
	struct inode *inode = CAST(struct inode, f->f_inode);
	u16 type = inode->i_mode & S_IFMT;

	if (inode->i_sb->s_magic == ANON_INODE_MAGIC)
		return tx_kind_anonymous(address(f->f_path.dentry));
	if (inode->i_sb->s_magic == DMA_BUF_MAGIC)
		return TX_SHARED;
	if (type == S_IFIFO || inode->i_sb->s_magic == MQUEUE_MAGIC)
		return TX_PIPE;
	if (type == S_IFSOCK) {
		struct socket *sock = CAST(struct socket, f->private_data);
		struct sock *sk = CAST(struct sock, sock->sk);

		if (!sock->sk || sk->__sk_common.skc_family == AF_INET ||
		    sk->__sk_common.skc_family == AF_INET6)
			return TX_OTHER;
		/* what the kernel answers one task, another that has it reads, too */
		return sk->__sk_common.skc_family == AF_UNIX ? TX_UNIX : TX_PIPE;
	}
	if (type == S_IFREG && inode->i_sb->s_magic == PROC_MAGIC &&
	    is_process_memory(address(f->f_path.dentry)))
		return TX_PROCESS;
	if (type == S_IFREG)
		return inode_is_memory(inode) ? TX_MEMORY : TX_FILE;
	if (type == S_IFBLK)
		return TX_FILE;
	if (type == S_IFCHR && device_is_master(inode->i_rdev))
		return TX_MASTER;
	if (type == S_IFCHR && device_has_buffers(inode->i_rdev))
		return TX_SHARED;
	if (type == S_IFCHR)
		return device_is_neutral(inode->i_rdev) ? TX_OTHER : TX_FILE;
	return TX_OTHER;
}

#endif
