/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service monitor on sockets of packets (SOCK_SEQPACKET): a message is a request, or a reply. A request is authorised in
 * its sender's call, which is refused if it is not, as it lies in user memory; then, where the kernel delivers its own copy,
 * that has to be what was authorised. So a sender that changes it meanwhile loses it.
 */
#ifndef TIDEGATE_CAPS_SERVICE_PACKET_H
#define TIDEGATE_CAPS_SERVICE_PACKET_H

#include "caps/service/bind.h"
#include "caps/service/hooks.h"

#define CAPS_IOVECS 8 /* that a head may be spread over */
#define CAPS_SHORT 64

/*
 * Copies `n` bytes, CAPS_SHORT at most, of the sender's memory into a room's head, by the stack: in memory as a room's a kernel with
 * hardened usercopy looks for the area each time, which takes three times as long as the copy.
 */
static __always_inline bool caps_user_copied(struct caps_room *r, u32 n, u64 from)
{
	u64 few[CAPS_SHORT / 8] = {};
	u32 i;

	if (bpf_copy_from_user(few, n, (void *)from))
		return false;
	for (i = 0; i < CAPS_SHORT / 8; i++)
		*(u64 *)(r->head + i * 8) = few[i];
	return true;
}

/* Copies `n` bytes, fewer than CAPS_PART, of what is to be sent, from `from` on, behind each other into a room's head. */
static __noinline bool caps_gathered(struct caps_room *r, struct msghdr *msg, u32 from, u32 n)
{
	struct iov_iter *it = &msg->msg_iter;
	u64 skip = it->iov_offset + from, base, len;
	u32 i, at = from, some;

	if (it->iter_type == ITER_UBUF) {
		base = address(it->ubuf) + skip;
		if (!from && n <= CAPS_SHORT)
			return caps_user_copied(r, n, base);
		return !bpf_copy_from_user(r->head + BOUND(at, CAPS_HEAD), BOUND(n, CAPS_PART),
					   (void *)base);
	}
	if (it->iter_type != ITER_IOVEC)
		return false;
	bpf_for(i, 0, CAPS_IOVECS) {
		struct iovec *v = CAST(struct iovec, address(it->__iov) + i * sizeof(struct iovec));

		if (i >= it->nr_segs)
			break;
		len = v->iov_len;
		if (skip >= len) {
			skip -= len;
			continue;
		}
		base = address(v->iov_base) + skip;
		some = len - skip < n ? len - skip : n;
		skip = 0;
		if (bpf_copy_from_user(r->head + BOUND(at, CAPS_HEAD), BOUND(some, CAPS_PART),
				       (void *)base))
			return false;
		at += some;
		n -= some;
		if (!n)
			return true;
	}
	return false;
}

/*
 * Head and operands of a request that a message begins with, in the sender's memory: 0; -EPROTO: it is none; 1: there is not
 * all of it.
 */
static __noinline int caps_request_peeked(struct caps_room *r, struct msghdr *msg)
{
	u32 len, at;

	if (r->size < sizeof(struct caps_wire_request))
		return 1;
	/* most are not longer */
	at = r->size < CAPS_SHORT ? r->size : CAPS_SHORT;
	if (!caps_gathered(r, msg, 0, at))
		return 1;
	len = caps_request_size(r->head);
	if (!len)
		return -EPROTO;
	if (len > r->size)
		return 1;
	for (; at < len; at += CAPS_PART / 2)
		if (!caps_gathered(r, msg, at, len - at < CAPS_PART / 2 ? len - at : CAPS_PART / 2))
			return 1;
	return caps_request_read(r) ? 0 : -EPROTO;
}

/* What is wrong with a request, before its record: -EACCES, or -EPROTO. */
static __always_inline int caps_request_refused(struct caps_room *r, int err)
{
	if (err == -EPROTO) {
		r->why = CAPS_REQUEST;
		r->layer = r->wanted = r->denied = 0;
	}
	return caps_service_refused(r, TG_OP_SEND) ? err : 0;
}

/* A packet that is about to be sent. */
static __always_inline int caps_packet_sent(struct caps_room *r, struct caps_conn *c,
					    struct msghdr *msg)
{
	int err = caps_request_peeked(r, msg);

	r->conn = c->number;
	if (err || caps_request_of(r)->length != r->size) {
		r->len = 0;
		return caps_request_refused(r, -EPROTO);
	}
	if (caps_request_judged(r) || caps_request_made(r, c))
		return caps_request_refused(r, -EACCES);
	return 0;
}

/* Is a packet that is about to be delivered the one that its sender was authorised to send? */
static __noinline bool caps_packet_is(struct caps_room *r, struct sk_buff *s)
{
	u64 data = address(s->data), differs = 0;
	u32 i, len = r->len;

	if (s->len != r->size || s->len - s->data_len < len)
		return false;
	for (i = UNKNOWN_ZERO; i < len && MAY_LOOP; i += 8)
		differs |= read_kernel_u64(data + i) ^ caps_head_word(r, i);
	return !differs;
}

/* A packet goes from a service to the socket that asked it. */
static __noinline int caps_packet_replies(struct caps_conn *c, struct sk_buff *s)
{
	u64 data = address(s->data), first = read_kernel_u64(data),
	    second = read_kernel_u64(data + 8);

	/* nothing is to be bound, or unbound */
	if (!c->asked && !(second >> 32 & CAPS_WIRE_DROPPED))
		return 0;
	if (s->len - s->data_len < sizeof(struct caps_wire_reply) || (u32)first != s->len)
		return 0;
	return caps_reply_made(c, first >> 32, second >> 32, read_kernel_u64(data + 16));
}

/* Of every packet of any socket; those of Unix sockets come in their sender's call. */
SEC("lsm/socket_sock_rcv_skb")
int BPF_PROG(caps_service_socket_sock_rcv_skb, struct sock *sk, struct sk_buff *skb)
{
	u64 to = address(sk), from;
	struct caps_conn *c;
	struct caps_room *r;

	if (sk->__sk_common.skc_family != AF_UNIX || sk->sk_type != SOCK_SEQPACKET)
		return 0;
	from = address(skb->sk);
	c = caps_conn_of(from);
	if (c) {
		r = caps_rooms_current();
		return r && r->conn == c->number && caps_packet_is(r, skb) ? 0 : -EPERM;
	}
	c = caps_conn_of(to);
	if (c)
		caps_packet_replies(c, skb);
	return 0;
}

#endif
