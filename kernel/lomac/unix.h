/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager: Unix sockets. Connecting to a named one, or sending to it,
 * modifies its file; beyond that a connection is a channel both ways, and whoever
 * reads falls with whoever writes (the transaction).
 */
#ifndef TIDEGATE_LOMAC_UNIX_H
#define TIDEGATE_LOMAC_UNIX_H

#include "lomac/shared.h"

/* What would be said could not be told from what is said at the top. */
static __noinline int floors_full(struct tg_subject *s)
{
	struct tg_note n = {
		.op = TG_OP_CONNECT, .class = TG_C_UNIX, .source = ~0u, .reason = TG_R_TABLE_FULL
	};

	return deny(s, &n, -EAGAIN);
}

#define SPEAKS_AS_ROOT 0x80 /* beside a level */

/*
 * Can the current subject say of itself that it is user 0 (SCM_CREDENTIALS)? There are servers that believe such a one
 * about other processes, as systemd does.
 */
static __always_inline bool speaks_as_root(void)
{
	const struct cred *c = CAST(struct cred, address(bpf_get_current_task_btf()->cred));

	return !c->uid.val || !c->euid.val || !c->suid.val ||
	       (!c->user_ns->level && c->cap_effective.val >> CAP_SETUID & 1);
}

/* May it speak to a server by its socket's file? `lowwrite` and `lownoopen`: also a lower one, but not as root. */
static __always_inline bool unix_file_admits(struct lomac_subject who, u64 label, bool root)
{
	struct lomac_object o = lomac_object_of_label(label);

	return lomac_modify(who, o, policy.top) &&
	       !(root && o.attrs & TG_LOWWRITE && !lomac_open(who, o, policy.top));
}

/*
 * A socket that is about to be connected, if another task may have it, which would hear and speak
 * by it, too.
 */
static __always_inline u64 unix_shared(struct sock *sock)
{
	struct sock *sk = CAST(struct sock, address(sock));
	u64 file = address(CAST(struct socket, address(sk->sk_socket))->file);

	return file && file_is_shared(file) ? address(sock) : 0;
}

/* `self`: see unix_shared */
static __always_inline int unix_decide_peer(struct sock *other, u64 self)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_CONNECT, .class = TG_C_UNIX, .source = ~0u };
	struct unix_sock *u = CAST(struct unix_sock, address(other));
	struct tg_sock *memo;
	u8 level = subject_level(s), as = level;
	/* both only grow: while the sum stays, so do they */
	u32 now = epoch + READ_ONCE(tx.rises);
	u64 asked;
	int err;

	if (level < policy.top && speaks_as_root())
		as |= SPEAKS_AS_ROOT;
	count_query(TG_C_UNIX);
	/* a message from the top lowers nobody, and nothing comes back by it */
	if (level >= policy.top && subject_observes(s) == level &&
	    CAST(struct sock, address(other))->sk_type == SOCK_DGRAM)
		return 0;
	memo = SOCK_STORAGE_MADE(&socks, other);
	/* what may be put back is not remembered, nor is what was asked about others who have the subject's own socket */
	if (self || subject_observes(s) != level)
		memo = NULL;
	/*
	 * Its file's name as it is before its path is walked: a rename may come between. A directory above it moves only to
	 * where the same rules hold. The name is an address and a length beside a hash, whose first byte tells nothing.
	 */
	asked = (u->path.dentry ? name_of(address(u->path.dentry)) : 0) << 8 | as;
	/* asked since anybody's level or any socket's holder changed, or anything was promoted */
	if (memo && memo->epoch == now && memo->seqno == policy.seqno &&
	    READ_ONCE(memo->asked) == asked)
		return 0;
	if (s && u->path.dentry) {
		struct dentry *d = CAST(struct dentry, u->path.dentry);
		u64 label = label_peek(address(d->d_inode), address(u->path.dentry), &n.source);

		if (!unix_file_admits(lomac_subject_modifying(s), label, as & SPEAKS_AS_ROOT)) {
			n.inode = address(d->d_inode);
			n.dentry = address(u->path.dentry);
			n.object = label_level(label);
			return deny(s, &n, refusal(&n, label));
		}
	}
	err = TX_TRIED(join_unix(address(other), self, &n));
	if (err == TX_LOST)
		n.reason = TG_R_BUSY;
	/* that nobody listens there has X11's clients, and the bus's, take the name that a file stands for */
	if (err)
		return deny(s, &n,
			    n.reason == TG_R_BUSY    ? -EAGAIN :
			    n.reason == TG_R_CHANNEL ? -ECONNREFUSED :
						       -EACCES);
	if (memo) {
		WRITE_ONCE(memo->asked, asked);
		memo->seqno = policy.seqno;
		memo->epoch = now;
	}
	return 0;
}

static __always_inline int unix_bind_peer(struct sock *other, u64 self)
{
	int err = unix_decide_peer(other, self);

	tx_turn_used();
	return err;
}

SEC("lsm/unix_stream_connect")
int BPF_PROG(lomac_unix_stream_connect, struct sock *sock, struct sock *other, struct sock *newsk)
{
	u8 level, admits;
	int err = unix_bind_peer(other, unix_shared(sock));

	if (err)
		return err;
	/* whoever gets hold of either end later meets what was said at this level */
	level = subject_level(subject_current());
	if (level >= policy.top)
		return 0;
	admits = unix_admits(address(other));
	if (level >= admits || admits == UNIX_LATER)
		err = floor_lower(address(newsk), level);
	if (!err)
		err = floor_lower(address(sock), level);
	return err ? floors_full(subject_current()) : 0;
}

SEC("lsm/unix_may_send")
int BPF_PROG(lomac_unix_may_send, struct socket *sock, struct socket *other)
{
	struct sock *sk = other->sk;

	int err = sk ? unix_bind_peer(sk, 0) : 0;

	if (sk && !err && floor_lower(address(sk), subject_level(subject_current())))
		return floors_full(subject_current());
	return err;
}

SEC("lsm/socket_socketpair")
int BPF_PROG(lomac_socket_socketpair, struct socket *a, struct socket *b)
{
	struct tg_subject *s = subject_current();
	u8 level = subject_level(s);
	u16 family = CAST(struct sock, address(a->sk))->__sk_common.skc_family;

	/* there is no such pair: the call fails after this, and sk_free forgets nothing of these */
	if (level >= policy.top || family == AF_INET || family == AF_INET6)
		return 0;
	if (floor_lower(address(a->sk), level) || floor_lower(address(b->sk), level))
		return floors_full(s);
	return 0;
}

SEC("lsm/sk_free_security")
int BPF_PROG(lomac_sk_free, struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	/* what comes from a network has the network's level (lomac/demote/channels.h) */
	if (family != AF_INET && family != AF_INET6)
		floor_forget(address(sk));
	return 0;
}

#endif
