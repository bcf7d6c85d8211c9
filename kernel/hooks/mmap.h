/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: mappings, and descriptors that arrive from elsewhere. */
#ifndef TIDEGATE_HOOK_MMAP_H
#define TIDEGATE_HOOK_MMAP_H

#define PROT_READ 1
#define PROT_EXEC 4
#define MAP_TYPE 0xf
#define MAP_PRIVATE 2
#define MAP_DENYWRITE 0x800

/*
 * No hook tells of the mapping of the inode behind an overlay. It has been opened by a
 * name of its own, but to be executed: an ELF interpreter is observed here.
 */
static __noinline int map_overlay(struct file *file, bool writes, bool executes)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP, .source = ~0u };
	struct tg_subject *s = subject_current();

	if (executes && s && s->exec_behind && s->exec_behind - 1 < subject_observes(s) &&
	    !(s->attrs & TG_NODEMOTE)) {
		int err;

		n.object = s->exec_behind - 1;
		err = fall(s, s->exec_behind - 1, &n, true);
		if (err)
			return err;
	}
	if (writes && subject_level(s) < policy.top)
		return refuse(file->f_inode, file_dentry(file),
			      label_make(policy.top, 0, TG_FROM_KIND, policy.seqno), TG_OP_MMAP,
			      TG_C_MMAP);
	return 0;
}

/* The current subject loads code that the top level alone may not have had in hand: a trusted one does not. */
static __noinline int load_code(struct file *file)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP };
	struct inode *inode = file->f_inode;
	struct tg_subject *s = subject_current();
	struct lomac_object o;
	u64 label;

	if (!s || !(s->attrs & LOMAC_TRUST))
		return 0;
	if (inode_is_memory(inode)) {
		u8 level = memory_level(inode, file_dentry(file), TG_C_MMAP);

		label = level == LEVEL_UNSURE ? LABEL_UNKNOWN | LABEL_LATER :
						label_make(level, 0, TG_FROM_KIND, policy.seqno);
	} else {
		label = label_of(inode, file_dentry(file), TG_C_MMAP);
	}
	o = object(label);
	/* of the top's nothing is refused because a label cannot be known now */
	if (lomac_is_code(o, policy.top) || (!o.known && s->level >= policy.top))
		return 0;
	note_object(&n, inode, file_dentry(file), label);
	n.reason = TG_R_TRUST;
	return deny(s, &n, refusal(&n, label));
}

/*
 * Does a mapping load code? All that the dynamic loader maps does, which says MAP_DENYWRITE: a library without any code to be
 * executed has its addresses written all the same. What else may be executed does, unless it has no name: that is code which
 * a program makes as it runs.
 */
static __always_inline bool loads_code(struct inode *inode, unsigned long prot, unsigned long flags)
{
	return flags & MAP_DENYWRITE ||
	       (prot & PROT_EXEC && inode->i_nlink && (inode->i_mode & S_IFMT) == S_IFREG);
}

/* A mapping is bound here once; its loads and stores are never seen again. */
SEC("lsm.s/mmap_file")
int BPF_PROG(hook_mmap_file, struct file *file, unsigned long reqprot, unsigned long prot,
	     unsigned long flags)
{
	struct inode *inode;
	u32 mode = 0;

	if (!file)
		return 0;
	inode = file->f_inode;
	if (loads_code(inode, prot, flags) &&
	    !(inode->i_nlink && lomac_is_code(object(label_hint(inode)), policy.top))) {
		int err = load_code(file);

		if (err)
			return err;
	}
	if (prot & (PROT_READ | PROT_EXEC))
		mode |= FMODE_READ;
	/* MAYWRITE is enough: mprotect may come later */
	if ((flags & MAP_TYPE) != MAP_PRIVATE && file->f_mode & FMODE_WRITE)
		mode |= FMODE_WRITE;
	if (!mode)
		return 0;
	count_query(TG_C_MMAP);
	if (inode->i_sb->s_magic == OVERLAYFS_MAGIC)
		return map_overlay(file, mode & FMODE_WRITE, prot & PROT_EXEC);
	if (inode_is_memory(inode))
		return bind_memory(inode, file_dentry(file), mode);
	return bind(file, mode, TG_OP_MMAP, TG_C_MMAP);
}

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
	u64 magic = inode->i_sb->s_magic;
	struct socket *sock;

	if (file->f_mode & FMODE_PATH || magic == PIDFS_MAGIC)
		return true;
	if (magic == SOCKFS_MAGIC) {
		sock = CAST(struct socket, address(file->private_data));
		return CAST(struct sock, address(sock->sk))->__sk_common.skc_family == AF_UNIX;
	}
	return magic != SECRETMEM_MAGIC && inode_is_memory(inode);
}

/* Rings and listeners act for who made them, and a pty's master types for its session. */
static __noinline bool acts_for_others(struct file *file, enum tx_kind kind)
{
	u8 level = subject_level(subject_current());

	return (kind == TX_RING && level < policy.top) ||
	       (kind == TX_MASTER && file->f_mode & FMODE_WRITE && master_is_higher(file, level));
}

/*
 * Does somebody put it there by a seccomp listener (SECCOMP_IOCTL_NOTIF_ADDFD), while the thread waits for that in a call which
 * counts as at rest (rest.h)? No fall would wait for its end. With a ring a message is received in any call, and nobody falls.
 */
static __always_inline bool comes_at_rest(enum tx_kind kind)
{
	struct task_struct *me = bpf_get_current_task_btf(), *fields = UNTRUSTED(me);

	return kind != TX_OTHER && !(fields->io_uring && fields->io_uring->xa.xa_head) &&
	       !(me->flags & PF_IO_WORKER) && tx_at_rest(me);
}

/* A descriptor received through a socket or by pidfd_getfd binds what it names. */
SEC("lsm.s/file_receive")
int BPF_PROG(hook_file_receive, struct file *file)
{
	struct tg_subject *s = subject_current();
	struct inode *inode = file->f_inode;
	u16 type = inode->i_mode & S_IFMT;
	enum tx_kind kind;

	/* before anything is asked: see hooks/held.h */
	if (s)
		*(volatile u32 *)&s->received = held_now();

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

		if (err || (kind != TX_PROCESS && type != S_IFCHR))
			return err;
	}
	if (type == S_IFCHR) {
		int err = observe_tap(file);

		if (err)
			return err;
	}
	return bind(file, mode_bound(inode, file->f_mode), TG_OP_RECEIVE_FD, TG_C_FILE);
}

#endif
