/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service monitor on streams. What is sent is looked at as it lies in the kernel's buffer,
 * before it is queued, by a program that cannot refuse it; so it is the service that gets no
 * further than what was authorised. A program on a function may be left out by the kernel where two
 * tasks would be in it on one processor, and an LSM hook never: so a task that sends, or receives,
 * takes its turn in a hook, and leaves it where the function ends; what each chunk leaves to be
 * sent tells whether one before was missed; and a task that comes to a turn that was not left
 * compares with what is in the queue. These programs are not preempted, where the kernel allows that: so
 * it is only in the few instructions around them that another task may come.
 */
#ifndef TIDEGATE_CAPS_SERVICE_STREAM_H
#define TIDEGATE_CAPS_SERVICE_STREAM_H

#include "lib/arch.h"
#include "caps/service/packet.h"
#include "lib/preempt.h"

#define CAPS_FRAGS 17

/*
 * Whose turn it is: a thread's, by its number and when it began. 0: the current one's; 1: it was already; 2: it was that of one which
 * is gone: what became of it is not known; -EAGAIN: another one's.
 */
__noinline int caps_turn_taken(u64 *turn __arg_nonnull)
{
	struct task_struct *me = bpf_get_current_task_btf(), *task;
	u64 mine = (u32)me->pid | me->start_boottime << 32, holder;
	bool gone;

	holder = __sync_val_compare_and_swap(turn, 0, mine);
	if (!holder)
		return 0;
	if (holder == mine)
		return 1;
	task = bpf_task_from_pid((u32)holder);
	gone = !task || (u32)task->start_boottime != holder >> 32;
	if (task)
		bpf_task_release(task);
	return gone && __sync_val_compare_and_swap(turn, holder, mine) == holder ? 2 : -EAGAIN;
}

static __always_inline bool caps_turn_is_mine(u64 *turn)
{
	struct task_struct *me = bpf_get_current_task_btf();

	return *turn == ((u32)me->pid | me->start_boottime << 32);
}

static __always_inline void caps_turn_left(u64 *turn)
{
	__sync_lock_test_and_set(turn, 0);
}

/* A byte of a buffer's, and how many lie behind it; 0: it cannot be read. */
static __noinline u64 caps_skb_at(u64 skb, u32 at, u32 *n)
{
	struct sk_buff *s = CAST(struct sk_buff, skb);
	u32 linear = s->len - s->data_len, i;
	struct skb_shared_info *shared;

	if (at < linear) {
		*n = linear - at;
		return address(s->data) + at;
	}
	at -= linear;
	shared = CAST(struct skb_shared_info, address(s->head) + s->end);
	bpf_for(i, 0, CAPS_FRAGS) {
		struct skb_frag *f =
			CAST(struct skb_frag,
			     address(&shared->frags[0]) + i * bpf_core_type_size(struct skb_frag));
		u64 page = f->netmem;

		if (i >= shared->nr_frags)
			break;
		if (at >= f->len) {
			at -= f->len;
			continue;
		}
		*n = f->len - at;
		return page_memory(&page) ? page + f->offset + at : 0;
	}
	return 0;
}

/* As many bytes of a chunk as are there, of the `n` that are still to come of a head. 0: they cannot be read. */
static __noinline u32 caps_chunk_copied(u8 *to, u64 skb, u32 at, u32 n)
{
	u32 some = 0;
	u64 from = caps_skb_at(skb, at, &some);

	if (!from)
		return 0;
	if (some > n)
		some = n;
	if (some >= CAPS_PART)
		some = CAPS_PART - 1;
	return bpf_probe_read_kernel(to, BOUND(some, CAPS_PART), (void *)from) ? 0 : some;
}

/* The head that came is what the room has, and that is authorised; else it comes there, and is asked about. */
static __always_inline u32 caps_stream_judged(struct caps_room *r, struct caps_coming *coming,
					      u32 len)
{
	bool judged = r->judged && r->len == len;
	u64 differs = 0;
	u32 i;

	for (i = UNKNOWN_ZERO; i < len && MAY_LOOP; i += 8) {
		u64 word = *(u64 *)(coming->head + BOUND(i, CAPS_HEAD));

		differs |= word ^ caps_head_word(r, i);
		*(u64 *)(r->head + BOUND(i, CAPS_HEAD)) = word;
	}
	if (judged && !differs)
		return 0;
	if (!caps_request_read(r)) {
		r->judged = r->layer = r->wanted = r->denied = 0;
		return r->why = CAPS_REQUEST;
	}
	return caps_request_judged(r);
}

/* A head that is no request, or not authorised: nothing that follows can be told any more. */
static __always_inline int caps_stream_lost(struct caps_room *r, struct caps_conn *c,
					    bool malformed)
{
	if (malformed) {
		r->why = CAPS_REQUEST;
		r->layer = r->wanted = r->denied = 0;
	}
	if (!caps_service_refused(r, TG_OP_SEND)) {
		if (!malformed)
			return 0;
		c->open = 1;
	}
	c->requests.lost = 1;
	return 1;
}

/* All of a head is there. */
static __always_inline int caps_stream_head(struct caps_room *r, struct caps_conn *c,
					    struct caps_coming *coming, u32 len)
{
	struct caps_wire_request *q = (struct caps_wire_request *)coming->head;

	if ((caps_stream_judged(r, coming, len) || caps_request_made(r, c)) &&
	    caps_stream_lost(r, c, false))
		return 0;
	c->requests.left = q->length - len;
	c->requests.have = 0;
	return 0;
}

#define CAPS_CHUNK 8192 /* steps: more than there can be messages in what is copied at once */

/* A chunk of requests. */
__noinline int caps_stream_requests(struct caps_room *r __arg_nonnull,
				    struct caps_conn *c __arg_nonnull,
				    struct caps_coming *coming __arg_nonnull, u64 skb, u32 len)
{
	struct caps_way *w = &c->requests;
	u32 at = 0, need, some, i;

	w->seen += len;
	if (w->lost)
		return 0;
	bpf_for(i, 0, CAPS_CHUNK) {
		if (at >= len || w->lost)
			break;
		if (w->left) {
			some = w->left < len - at ? w->left : len - at;
			w->left -= some;
			at += some;
			continue;
		}
		need = sizeof(struct caps_wire_request);
		if (w->have >= need)
			need = caps_request_size(coming->head);
		if (w->have < need) {
			some = need - w->have < len - at ? need - w->have : len - at;
			some = caps_chunk_copied(coming->head + BOUND(w->have, CAPS_HEAD), skb, at,
						 some);
			if (!some)
				break;
			w->have += some;
			at += some;
			if (w->have < sizeof(struct caps_wire_request))
				continue;
			need = caps_request_size(coming->head);
		}
		if (!need)
			caps_stream_lost(r, c, true);
		else if (w->have == need)
			caps_stream_head(r, c, coming, need);
	}
	/* up to the head of which there is not all, or which is not authorised */
	c->verified = w->seen - len + at - w->have;
	if (at < len)
		w->lost = 1;
	return 0;
}

/* A chunk of replies. */
__noinline int caps_stream_replies(struct caps_conn *c __arg_nonnull, u64 skb, u32 len)
{
	struct caps_wire_reply *reply = (struct caps_wire_reply *)c->reply;
	struct caps_way *w = &c->replies;
	u32 at = 0, some, n, i;
	u64 from;

	w->seen += len;
	bpf_for(i, 0, CAPS_CHUNK) {
		if (at >= len || w->lost)
			break;
		if (w->left) {
			some = w->left < len - at ? w->left : len - at;
			w->left -= some;
			at += some;
			continue;
		}
		some = sizeof(*reply) - w->have < len - at ? sizeof(*reply) - w->have : len - at;
		n = 0;
		from = caps_skb_at(skb, at, &n);
		if (some > n)
			some = n;
		if (!from || !some ||
		    bpf_probe_read_kernel(c->reply + BOUND(w->have, 32), BOUND(some, 32),
					  (void *)from))
			break;
		w->have += some;
		at += some;
		if (w->have < sizeof(*reply))
			continue;
		w->have = 0;
		if (reply->length < sizeof(*reply))
			break;
		w->left = reply->length - sizeof(*reply);
		caps_reply_made(c, reply->id, reply->flags, reply->descriptor);
	}
	if (at < len)
		w->lost = 1;
	return 0;
}

/* Bytes that wait to be received; ~0: it is too much to look at. */
__noinline u64 caps_queued(u64 sk)
{
	u64 head = sk + bpf_core_field_offset(struct sock, sk_receive_queue), bytes = 0;
	struct sk_buff *skb =
		CAST(struct sk_buff, address(CAST(struct sock, sk)->sk_receive_queue.next));
	u32 i;

	bpf_for(i, 0, CAPS_CHUNK) {
		if (!skb || address(skb) == head)
			return bytes;
		bytes += skb->len - CAST(struct unix_skb_parms,
					 address(skb) + bpf_core_field_offset(struct sk_buff, cb))
					    ->consumed;
		skb = CAST(struct sk_buff, address(skb->next));
	}
	return ~0ull;
}

/*
 * Somebody is about to send requests: 0: it is his turn. Of a turn that was not left it is not known whether all was seen that was
 * sent in it: then no more is in the queue than was.
 */
__noinline int caps_stream_begins(struct caps_conn *c __arg_nonnull, u64 peer)
{
	int turn = caps_turn_taken(&c->requests.turn);
	u64 taken = READ_ONCE(c->taken), queued;

	if (turn <= 0)
		return turn;
	if (READ_ONCE(c->unsure) || READ_ONCE(c->reader))
		return -EAGAIN;
	queued = caps_queued(peer);
	if (READ_ONCE(c->reader) || READ_ONCE(c->taken) != taken)
		return -EAGAIN;
	if (queued + taken != c->requests.seen)
		c->requests.lost = 1;
	return 0;
}

/* What has been received is what was seen and is in the queue no more, if all was seen, and nobody sends meanwhile. */
static __noinline int caps_stream_counted(struct caps_conn *c, u64 sk)
{
	u64 seen = READ_ONCE(c->requests.seen), queued;

	if (READ_ONCE(c->requests.turn))
		return 0;
	queued = caps_queued(sk);
	if (queued == ~0ull || READ_ONCE(c->requests.turn) || READ_ONCE(c->requests.lost) ||
	    READ_ONCE(c->requests.seen) != seen)
		return 0;
	c->taken = seen - queued;
	c->unsure = 0;
	return 0;
}

/*
 * Somebody is about to receive them: 0: it is his turn. In a turn that was not left all may have been received that was asked for, so
 * that counts as received until nobody sends. A sender that waits for room, which only this one makes, would wait for ever otherwise.
 */
__noinline int caps_stream_reads(struct caps_conn *c __arg_nonnull, u64 sk)
{
	int turn = caps_turn_taken(&c->reader);

	if (turn < 0)
		return turn;
	if (turn) {
		c->taken += c->wants;
		c->unsure = 1;
	}
	c->wants = 0;
	if (c->unsure)
		caps_stream_counted(c, sk);
	return 0;
}

/*
 * Requests that are about to be sent. What they begin with is asked about here, so that the sender
 * is told.
 */
static __noinline int caps_stream_sent(struct caps_room *r, struct caps_conn *c, struct msghdr *msg)
{
	struct caps_way *w = &c->requests;
	int err;

	if (c->open || !r->size)
		return 0;
	if (w->lost)
		return -EPROTO;
	err = caps_stream_begins(c, r->peer);
	if (err)
		return err;
	r->conn = c->number;
	if (w->lost) {
		err = -EPROTO;
	} else if (!w->have && !w->left) {
		err = caps_request_peeked(r, msg);
		if (!err && caps_request_judged(r))
			err = -EACCES;
		err = err < 0 ? caps_request_refused(r, err) : 0;
	}
	if (err)
		caps_turn_left(&w->turn);
	return err;
}

/* Replies that are about to be. */
static __noinline int caps_stream_answers(struct caps_conn *c, u32 size)
{
	struct caps_room *r = caps_rooms_made(bpf_get_current_task_btf());
	int turn;

	if (!r)
		return -ENOMEM;
	turn = caps_turn_taken(&c->replies.turn);
	if (turn < 0)
		return turn;
	/* where all of this thread's last message was seen, it was only its end that was not */
	if (turn == 2 || (turn && (r->conn != c->number || r->seen != r->size)))
		c->replies.lost = 1;
	r->conn = c->number;
	r->size = size;
	r->seen = 0;
	return 0;
}

/* Of everything that is sent by UDP, or by a Unix socket, once it is copied. */
static __always_inline int caps_stream_was_copied(u64 skb, u64 from, int len, int ret)
{
	u64 at = address(CAST(struct sk_buff, skb)->sk);
	struct caps_conn *c = caps_conn_of(at);
	bool asks = c;
	struct caps_coming *coming;
	struct caps_way *w;
	struct caps_room *r;

	if (ret || !at || !caps_is_unix(at) || CAST(struct sock, at)->sk_type != SOCK_STREAM)
		return 0;
	if (!c)
		c = caps_conn_of(caps_peer_of(at));
	if (!c || c->open)
		return 0;
	w = asks ? &c->requests : &c->replies;
	r = caps_rooms_current();
	if (!r || r->conn != c->number || !caps_turn_is_mine(&w->turn)) {
		w->lost = 1;
		return 0;
	}
	r->seen += (u32)len;
	if (r->seen + CAST(struct iov_iter, from)->count != r->size)
		w->lost = 1;
	if (asks) {
		coming = bpf_map_lookup_elem(&caps_comings, &at);
		if (coming)
			caps_stream_requests(r, c, coming, skb, len);
		else
			w->lost = 1;
	} else {
		caps_stream_replies(c, skb, len);
	}
	return 0;
}

SEC("fexit/skb_copy_datagram_from_iter")
int BPF_PROG(caps_stream_copied, struct sk_buff *skb, int offset, struct iov_iter *from, int len,
	     int ret)
{
	work_begin();
	caps_stream_was_copied(address(skb), address(from), len, ret);
	work_end();
	return 0;
}

/* Of everything that is sent by any Unix stream. */
static __always_inline int caps_stream_was_sent(u64 at, int ret)
{
	struct caps_conn *c = caps_conn_of(at);
	bool asks = c;
	struct caps_way *w;
	struct caps_room *r;

	if (!c && at)
		c = caps_conn_of(caps_peer_of(at));
	if (!c)
		return 0;
	w = asks ? &c->requests : &c->replies;
	if (!caps_turn_is_mine(&w->turn))
		return 0;
	r = caps_rooms_current();
	if (!r || r->conn != c->number || r->seen != (ret > 0 ? ret : 0))
		w->lost = 1;
	caps_turn_left(&w->turn);
	return 0;
}

SEC("fexit/unix_stream_sendmsg")
int BPF_PROG(caps_stream_unix_sendmsg, struct socket *sock, struct msghdr *msg, u64 len, int ret)
{
	work_begin();
	caps_stream_was_sent(address(CAST(struct socket, address(sock))->sk), ret);
	work_end();
	return 0;
}

/* May so much be received as is asked for? */
static __noinline int caps_stream_may_read(struct caps_conn *c, u64 sk, u32 size, u32 flags)
{
	bool ends = CAST(struct sock, sk)->sk_shutdown & RCV_SHUTDOWN;
	u64 left;
	int err;

	if (c->open || !size || flags & MSG_OOB)
		return 0;
	err = caps_stream_reads(c, sk);
	if (err)
		return err;
	left = READ_ONCE(c->verified) - c->taken;
	if (size <= left) {
		c->wants = size;
		if (flags & MSG_PEEK)
			caps_turn_left(&c->reader);
		return 0;
	}
	caps_turn_left(&c->reader);
	/* nothing comes any more: it is told so */
	if (ends && !left && !caps_queued(sk))
		return 0;
	return !left && (ends || c->requests.lost) ? -EPROTO : -EAGAIN;
}

/* Of everything that was received by any Unix stream. */
static __always_inline int caps_stream_was_received(u64 at, int ret)
{
	struct caps_conn *c = at ? caps_conn_of(caps_peer_of(at)) : NULL;

	if (!c || !caps_turn_is_mine(&c->reader))
		return 0;
	if (ret > 0)
		c->taken += (u32)ret;
	caps_turn_left(&c->reader);
	return 0;
}

SEC("fexit/unix_stream_recvmsg")
int BPF_PROG(caps_stream_unix_recvmsg, struct socket *sock, struct msghdr *msg, u64 size, int flags,
	     int ret)
{
	work_begin();
	caps_stream_was_received(address(CAST(struct socket, address(sock))->sk), ret);
	work_end();
	return 0;
}

#endif
