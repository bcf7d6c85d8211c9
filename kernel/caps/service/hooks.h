/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service monitor of the `capability` model: connections (conn.h) begin and end, and what services are at their other ends.
 * authorise.h authorises a request, packet.h and stream.h see to it that nothing else comes through; message.h is what is asked of each
 * message. The programs that are attached while there are services are called caps_service_* and caps_stream_*:
 * docs/reference/service-monitor.md.
 */
#ifndef TIDEGATE_CAPS_SERVICE_HOOKS_H
#define TIDEGATE_CAPS_SERVICE_HOOKS_H

#include "lib/seqcache.h"
#include "caps/net.h"
#include "caps/service/objects.h"

/* The domain for which a connected socket leads to no service. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} caps_no_service SEC(".maps");

/* A connection has ended, or its sock begins another one. */
__noinline int caps_conn_forget(u64 sk)
{
	struct caps_conn *c = caps_conn_of(sk), *slot;
	u32 i;

	if (!c)
		return 0;
	bpf_for(i, 0, c->slots_used)
		if (c->slots[BOUND(i / 64, CAPS_SLOTS / 64)] >> (i & 63) & 1)
			caps_bound_forget(c->number, i);
	caps_count_down(c->session, c->session_number);
	__sync_fetch_and_sub(&caps_conns_count, 1);
	bpf_map_delete_elem(&caps_comings, &sk);
	slot = caps_conn_slot(sk);
	if (c != slot) {
		bpf_map_delete_elem(&caps_conns, &sk);
		__sync_fetch_and_sub(&slot->spilled, 1);
		return 0;
	}
	__sync_lock_test_and_set(&slot->sock, 0);
	__sync_lock_test_and_set(&slot->holder, 0);
	return 0;
}

/* A slot that is the caller's alone is as new. */
static __noinline int caps_conn_emptied(struct caps_conn *c)
{
	u32 i;

	c->requests = c->replies = (struct caps_way){};
	c->asked = c->slots_used = c->open = 0;
	c->verified = c->taken = c->reader = c->wants = c->unsure = 0;
	for (i = 0; i < CAPS_SLOTS / 64; i++)
		c->slots[i] = 0;
	for (i = 0; i < CAPS_SERVED; i++)
		c->served[i].serial = 0;
	return 0;
}

static __noinline struct caps_conn *caps_conn_made(u64 sk, struct caps_domain *d)
{
	struct caps_session *s = caps_session_at(d->session);
	struct caps_conn *c = caps_conn_slot(sk), *slot = c;
	bool is_stream = CAST(struct sock, sk)->sk_type == SOCK_STREAM;

	caps_conn_forget(sk);
	if (s->actives >= CAPS_ACTIVES_OF_ONE)
		return NULL;
	if (__sync_fetch_and_add(&caps_conns_count, 1) >= CAPS_CONNS ||
	    (is_stream && bpf_map_update_elem(&caps_comings, &sk, &caps_coming_none, BPF_ANY)))
		goto none;
	if (!__sync_val_compare_and_swap(&slot->holder, 0, sk)) {
		caps_conn_emptied(slot);
	} else {
		__sync_fetch_and_add(&slot->spilled, 1);
		if (!bpf_map_update_elem(&caps_conns, &sk, &caps_conn_none, BPF_NOEXIST))
			c = bpf_map_lookup_elem(&caps_conns, &sk);
		if (!c || c == slot) {
			__sync_fetch_and_sub(&slot->spilled, 1);
			goto none;
		}
	}
	__sync_fetch_and_add(&s->actives, 1);
	c->session = d->session;
	c->session_number = s->number;
	c->number = __sync_fetch_and_add(&caps_conns_made, 1) + 1;
	if (c == slot)
		__sync_lock_test_and_set(&slot->sock, sk);
	return c;
none:
	bpf_map_delete_elem(&caps_comings, &sk);
	__sync_fetch_and_sub(&caps_conns_count, 1);
	return NULL;
}

/* What its layers call the service at a path that has been walked, */
__noinline int caps_served_said(struct caps_room *r __arg_nonnull,
				struct tg_scratch *w __arg_nonnull)
{
	u32 k, i, n = w->n, state, automaton;

	USES_ARENA();
	bpf_for(k, 0, r->count) {
		automaton = ARENA_PTR(struct caps_image, ARENA_PTR(struct caps_subject,
								   r->layers[BOUND(k, CAPS_LAYERS)])
								 ->image)
				    ->sockets;
		r->services[BOUND(k, CAPS_LAYERS)] = 0;
		if (!automaton)
			continue;
		state = ARENA_PTR(struct tg_automaton, automaton)->start;
		bpf_for(i, 0, n)
			state = automaton_feed_component(automaton, state,
							 w->up[BOUND(n - 1 - i, TG_DEPTH)]);
		r->services[BOUND(k, CAPS_LAYERS)] = caps_answer_of(automaton, state);
	}
	return 0;
}

/* and the one with an abstract name. */
__noinline int caps_served_said_of_key(struct caps_room *r __arg_nonnull, u64 text, u32 len)
{
	u32 k, state, automaton;

	USES_ARENA();
	bpf_for(k, 0, r->count) {
		automaton = ARENA_PTR(struct caps_image, ARENA_PTR(struct caps_subject,
								   r->layers[BOUND(k, CAPS_LAYERS)])
								 ->image)
				    ->sockets;
		r->services[BOUND(k, CAPS_LAYERS)] = 0;
		if (!automaton)
			continue;
		state = automaton_step(automaton, ARENA_PTR(struct tg_automaton, automaton)->start,
				       '@');
		r->services[BOUND(k, CAPS_LAYERS)] = caps_answer_of(
			automaton, automaton_feed(automaton, state, text, len & 127));
	}
	return 0;
}

static __always_inline int caps_served_said_of_path(void *of, struct tg_scratch *w)
{
	return caps_served_said(of, w);
}

/* The same of a socket's path: 0, or an errno. */
__noinline int caps_served_path(u64 dentry, struct caps_room *r __arg_nonnull)
{
	return caps_walked(dentry, caps_served_said_of_path, r);
}

/*
 * What a room's layers call the service at a socket: whether any has one there, or an errno. What
 * has no name is no service: so it is with pairs, and with a socket that has connected to one.
 */
static __noinline int caps_served_at(u64 sk, struct caps_room *r)
{
	struct unix_sock *u = CAST(struct unix_sock, sk);
	u64 addr = address(u->addr), text, dentry;
	u32 k, any = 0;
	int err = 0;

	r->served = 0;
	for (k = 0; k < CAPS_LAYERS; k++)
		r->services[k] = 0;
	if (!addr)
		return 0;
	text = unix_text(addr);
	if ((u8)read_kernel_u64(text)) {
		dentry = address(u->path.dentry);
		err = dentry ? caps_served_path(dentry, r) : 0;
		if (err == -EACCES)
			return 0;
	} else {
		caps_served_said_of_key(r, text + 1, CAST(struct unix_address, addr)->len - 3);
	}
	for (k = 0; k < CAPS_LAYERS; k++)
		any |= r->services[k];
	return err ? err : !!any;
}

/* The same of a connection, which remembers it for some domains: 0, or an errno. */
static __noinline int caps_served_looked_up(struct caps_conn *c, struct caps_room *r)
{
	struct caps_served *s;
	u32 i, k, version;
	int err;

	bpf_for(i, 0, CAPS_SERVED) {
		s = &c->served[BOUND(i, CAPS_SERVED)];
		version = entry_version(&s->version);
		if (s->serial != r->serial)
			continue;
		r->served = 0;
		for (k = 0; k < CAPS_LAYERS; k++)
			r->services[k] = s->services[k];
		if (entry_is_whole(&s->version, version)) {
			r->served = c->number;
			return 0;
		}
	}
	err = r->peer ? caps_served_at(r->peer, r) : -ENOTCONN;
	if (err < 0)
		return err;
	r->served = c->number;
	s = &c->served[BOUND(bpf_get_prandom_u32(), CAPS_SERVED)];
	if (!entry_begin(&s->version))
		return 0;
	s->serial = r->serial;
	for (k = 0; k < CAPS_LAYERS; k++)
		s->services[k] = r->services[k];
	entry_end(&s->version);
	return 0;
}

/* And so does a room of the one that it was for last. */
static __always_inline int caps_served_by(struct caps_conn *c, struct caps_room *r)
{
	return r->served == c->number ? 0 : caps_served_looked_up(c, r);
}

/* The name of the object that is not given, in a note; false: it is none's matter. */
static __noinline bool caps_object_noted(struct caps_room *r, struct tg_note *n)
{
	u32 i = BOUND(r->operand - 1, CAPS_WIRE_OPERANDS), at = BOUND(r->at[i], CAPS_HEAD), slot;
	struct caps_bound *b;

	if (!r->layer || !r->operand ||
	    r->operand > ((struct caps_wire_request *)r->head)->operands)
		return false;
	if (r->kinds[i] == CAPS_WIRE_NAME_OF) {
		n->dentry = address(r->head + at);
		n->text_len = r->lens[i];
		return true;
	}
	b = r->kinds[i] == CAPS_WIRE_DESCRIPTOR ?
		    caps_bound_by(r->conn, *(u64 *)(r->head + at), true, &slot) :
		    NULL;
	if (!b)
		return false;
	n->dentry = address(b->name);
	n->text_len = b->len;
	return true;
}

/* A refusal of what a room holds, and its record. */
static __noinline int caps_service_refused(struct caps_room *r, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_UNIX };
	struct caps_question q = { .class = CAPS_OF_SERVICE };

	if (r->layer)
		q.class += r->service - 1;
	if (!caps_object_noted(r, &n)) {
		n.dentry = address(CAST(struct unix_sock, r->peer)->path.dentry);
		if (n.dentry)
			n.inode = address(CAST(struct dentry, n.dentry)->d_inode);
	}
	n.detail = ((struct caps_wire_request *)r->head)->operation;
	q.why = r->why;
	q.layer = r->layer;
	q.asked.wanted = r->wanted;
	q.asked.given = r->wanted & ~r->denied;
	return verdict_of(caps_refuse(&q, &n));
}

/* Is the socket of the type that all layers have the services of? */
static __noinline int caps_type_is(struct caps_room *r, u32 type)
{
	struct caps_wire_request *q = (struct caps_wire_request *)r->head;
	u32 k, wants;

	USES_ARENA();
	bpf_for(k, 0, r->count) {
		ARENA(struct caps_image) * image;
		u32 layer = r->layers[BOUND(k, CAPS_LAYERS)],
		    service = r->services[BOUND(k, CAPS_LAYERS)];

		if (!service)
			continue;
		image = ARENA_PTR(struct caps_image, ARENA_PTR(struct caps_subject, layer)->image);
		wants = (ARENA_PTR(struct caps_service, image->services) + (service - 1))
				->socket_type;
		if (!wants || wants == type)
			continue;
		r->layer = layer;
		r->service = service;
		r->operand = r->wanted = r->denied = q->operation = 0;
		r->why = CAPS_SOCKET_TYPE;
		return caps_service_refused(r, TG_OP_CONNECT);
	}
	return 0;
}

/* A governed task connects: is a service there? */
SEC("lsm/unix_stream_connect")
int BPF_PROG(caps_service_unix_stream_connect, struct sock *sock, struct sock *other,
	     struct sock *newsk)
{
	struct caps_domain *d = caps_me();
	struct caps_served *s;
	struct caps_conn *c;
	struct caps_room *r;
	u32 k;
	int err;

	/* it may have tried another one before */
	caps_conn_forget(address(sock));
	if (!d || !d->services)
		return 0;
	r = caps_rooms_made(bpf_get_current_task_btf());
	if (!r)
		return -ENOMEM;
	if (!caps_room_mine(r) || caps_is_daemon(address(other)))
		return 0;
	r->peer = address(other);
	err = caps_served_at(r->peer, r);
	if (err > 0)
		err = caps_type_is(r, CAST(struct sock, address(sock))->sk_type) ?: 1;
	if (err <= 0)
		return verdict_of(err);
	c = caps_conn_made(address(sock), d);
	if (!c)
		return -ENOMEM;
	s = &c->served[0];
	s->serial = r->serial;
	for (k = 0; k < CAPS_LAYERS; k++)
		s->services[k] = r->services[k];
	return 0;
}

SEC("lsm/sk_free_security")
int BPF_PROG(caps_service_sk_free_security, struct sock *sk)
{
	caps_conn_forget(address(sk));
	return 0;
}

#endif
