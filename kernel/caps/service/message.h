/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is asked of each message while there are services. A program at a hook costs some 200 instructions each time, whatever it
 * does: so one asks what LOMAC (lomac/net.h), capabilities for sockets (caps/net.h) and the service monitor have to ask of each.
 */
#ifndef TIDEGATE_CAPS_SERVICE_MESSAGE_H
#define TIDEGATE_CAPS_SERVICE_MESSAGE_H

#include "caps/ancillary.h"
#include "caps/service/stream.h"
#include "lomac/net.h"

/* A socket without a state: it was connected by somebody else, or before. What leads to a service takes one. */
static __noinline int caps_stateless(struct caps_domain *d, struct sock *sk, u64 peer)
{
	u64 at = address(sk);
	struct caps_room *r;
	u32 *known;
	int err;

	if (!peer || !CAST(struct unix_sock, peer)->addr || caps_is_daemon(at))
		return 0;
	known = bpf_sk_storage_get(&caps_no_service, sk, 0, 0);
	r = known && *known == d->number ? NULL : caps_rooms_made(bpf_get_current_task_btf());
	if (!r)
		return known && *known == d->number ? 0 : -ENOMEM;
	caps_room_mine(r);
	r->peer = peer;
	err = caps_served_at(peer, r);
	if (!err) {
		known = SOCK_STORAGE_MADE(&caps_no_service, sk);
		if (known)
			*known = d->number;
	}
	if (err <= 0)
		return err;
	r->why = CAPS_NOT_BOUND;
	r->layer = r->wanted = r->denied = 0;
	caps_request_of(r)->operation = 0;
	return caps_service_refused(r, TG_OP_SEND);
}

/* What the service monitor asks of a message by a Unix socket. */
static __always_inline int caps_service_sends(struct socket *sock, struct sock *sk,
					      struct msghdr *msg, u32 size)
{
	u64 at = address(sk), peer;
	u32 type = sk->sk_type;
	struct caps_domain *d;
	struct caps_conn *c;
	struct caps_room *r;
	int err;

	if (type != SOCK_STREAM && type != SOCK_SEQPACKET)
		return 0;
	peer = caps_peer_of(at);
	c = caps_conn_of(at);
	if (!c) {
		c = caps_conn_of(peer);
		if (c)
			return type == SOCK_STREAM ? caps_stream_answers(c, size) : 0;
		d = caps_me();
		return d && d->services ? caps_stateless(d, sk, peer) : 0;
	}
	/* of further messages to a name no hook would tell */
	if (msg->msg_name)
		return -EISCONN;
	/* pages that the sender has still, and what overtakes */
	if (msg->msg_flags & (MSG_OOB | MSG_SPLICE_PAGES))
		return -EOPNOTSUPP;
	r = caps_rooms_made(bpf_get_current_task_btf());
	if (!r)
		return -ENOMEM;
	caps_room_mine(r);
	r->file = address(sock->file);
	r->peer = peer;
	r->size = size;
	err = caps_served_by(c, r);
	if (!err)
		err = type == SOCK_STREAM ? caps_stream_sent(r, c, msg) :
					    caps_packet_sent(r, c, msg);
	return err;
}

/* All that is asked of a message. While this is attached lomac_socket_sendmsg and caps_socket_sendmsg are not. */
SEC("lsm.s/socket_sendmsg")
int BPF_PROG(caps_service_socket_sendmsg, struct socket *sock, struct msghdr *msg, int size)
{
	struct sock *sk = sock->sk;
	int err;

	if (!sk)
		return 0;
	err = lomac_sendmsg(ctx, sk);
	if (!err)
		err = caps_sends(sock, msg);
	if (!err && sk->__sk_common.skc_family == AF_UNIX)
		err = caps_service_sends(sock, sk, msg, size);
	return verdict_of(err);
}

/* All that is asked of a message that is received. While this is attached lomac_socket_recvmsg is not. */
SEC("lsm.s/socket_recvmsg")
int BPF_PROG(caps_stream_socket_recvmsg, struct socket *sock, struct msghdr *msg, int size,
	     int flags)
{
	struct sock *sk = sock->sk;
	struct caps_conn *c;
	int err;

	if (!sk)
		return 0;
	err = lomac_recvmsg(sk, msg);
	if (err || sk->__sk_common.skc_family != AF_UNIX || sk->sk_type != SOCK_STREAM)
		return err;
	c = caps_conn_of(caps_peer_of(address(sk)));
	return c ? verdict_of(caps_stream_may_read(c, address(sk), size, flags)) : 0;
}

/* A datagram goes to a service, which could not be monitored. */
SEC("lsm/unix_may_send")
int BPF_PROG(caps_service_unix_may_send, struct socket *sock, struct socket *other)
{
	struct caps_domain *d = caps_me();
	struct sock *sk = other->sk;

	return sk && d && d->services ? verdict_of(caps_stateless(d, sk, address(sk))) : 0;
}

#endif
