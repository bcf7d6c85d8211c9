/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: connections and datagrams between Unix sockets. */
#ifndef TIDEGATE_TE_UNIX_H
#define TIDEGATE_TE_UNIX_H

#include "te/net.h"

SEC("lsm/unix_stream_connect")
int BPF_PROG(te_unix_stream_connect, struct sock *sock, struct sock *other, struct sock *newsk)
{
	struct tg_note n = { .op = TG_OP_CONNECT, .class = TG_C_UNIX };
	struct te_sock mine, theirs, fresh = {}, *known;
	int err;

	theirs = te_sock_of(other);
	if (!te_me().subject) {
		/* the server's end is the server's, whoever connects */
		fresh.sid = theirs.sid;
		fresh.class = theirs.class;
		return !theirs.sid || STORAGE_MADE(bpf_sk_storage_get, &te_socks, newsk, &fresh) ?
			       0 :
			       -ENOMEM;
	}
	mine = te_sock_of(sock);
	err = te_avc_has_perm(mine.sid, theirs.sid, theirs.class, UNIX_STREAM_SOCKET__CONNECTTO,
			      &n);
	if (err)
		return err;
	known = bpf_sk_storage_get(&te_socks, sock, 0, 0);
	if (known) {
		known->to = theirs.sid ? theirs.sid : te_initial_sid(TE_SID_KERNEL);
		known->number = policy_seqno();
	}
	/* the server's end */
	fresh.sid = theirs.sid;
	fresh.class = theirs.class;
	fresh.peer = mine.sid;
	return STORAGE_MADE(bpf_sk_storage_get, &te_socks, newsk, &fresh) ? 0 : -ENOMEM;
}

SEC("lsm/unix_may_send")
int BPF_PROG(te_unix_may_send, struct socket *sock, struct socket *other)
{
	struct tg_note n = { .op = TG_OP_SEND, .class = TG_C_UNIX };
	struct te_sock mine, theirs;
	struct sock *from = sock->sk, *to = other->sk;

	if (!te_me().subject || !from || !to)
		return 0;
	mine = te_sock_of(from);
	theirs = te_sock_of(to);
	return te_avc_has_perm(mine.sid, theirs.sid, theirs.class, SOCKET__SENDTO, &n);
}

#endif
