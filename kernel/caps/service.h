/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The service monitor of the `capability` model: what is kept of connections to services, and of what is bound there. A
 * connection that a governed task makes to a socket where a service is, as any of its layers describes it, has a state from
 * then on, whoever uses it. request.h authorises a request, packet.h and stream.h see to it that nothing else comes through.
 * The programs that are attached while there are services are called caps_service_*: docs/service-monitor.md.
 */
#ifndef TIDEGATE_CAPS_SERVICE_H
#define TIDEGATE_CAPS_SERVICE_H

#include "caps/room.h"

#define CAPS_CONNS (1 << 14)
#define CAPS_SLOTS 1024 /* objects that a connection may have bound */
#define CAPS_ASKED 64	/* requests of a connection to bind one that are not answered yet */
#define CAPS_SERVED 4	/* domains of which a connection remembers what they call a service there */

/* One direction of a connection. */
struct caps_way {
	u64 seen; /* bytes that went by it */
	u64 left; /* bytes of the message's payload that come next */
	u64 turn; /* whose turn it is: caps_turn(); 0: nobody's */
	u32 have; /* bytes of the next head that came already */
	u32 lost; /* nothing that comes is looked at any more */
};

struct caps_served {
	u32 version; /* odd while this is written */
	u32 pad;
	u64 serial;  /* the domain's; 0: of who is not governed */
	u32 services[CAPS_LAYERS]; /* of each of its layers; from 1, 0: none */
};

struct caps_conn {
	u64 sock;   /* which connected, while it is in a slot, */
	u64 holder; /* and whose the slot is, also before and after; 0: it is free */
	u64 spilled; /* so many connections whose slot this would be are in the map */
	u64 number; /* never used again */
	u64 session_number; /* of who connected, */
	u32 session; /* and its place */
	u32 asked;
	struct caps_way requests, replies; /* of streams */
	u64 verified; /* bytes of requests that the service may read, */
	u64 taken;    /* those that it has read, */
	u64 reader;   /* and whose turn that is */
	u64 slots[CAPS_SLOTS / 64]; /* that are used, */
	u32 slots_used; /* and up to which any was */
	u32 open; /* by a policy that is permissive, what cannot be told is let through, and all that follows */
	struct caps_served served[CAPS_SERVED];
	u8 reply[64]; /* of streams: the head of the reply that comes */
};

/* Of streams: the head of the request that comes. */
struct caps_coming {
	u8 head[CAPS_HEAD_ROOM];
};

/*
 * By the address of the sock that was connected, which does not go before the other end: in the slot for it, or where that is
 * another's in the map, which takes five times as long to find.
 */
#define CAPS_CONN_BITS 9
struct caps_conn caps_conn_slots[1 << CAPS_CONN_BITS];

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, CAPS_CONNS);
	__type(key, u64);
	__type(value, struct caps_conn);
} caps_conns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, CAPS_CONNS);
	__type(key, u64);
	__type(value, struct caps_coming);
} caps_comings SEC(".maps");

u32 caps_conns_count;
u64 caps_conns_made;

/* An object of a service that was asked for, or is bound. Of each layer that gave it there is a struct caps_active. */
struct caps_bound {
	u64 number;  /* the request's, or the descriptor */
	u64 session_number;
	u32 session; /* place */
	u32 domain;  /* who asked for it, */
	u64 serial;  /* and its serial */
	u32 is_descriptor;
	u32 count;   /* layers */
	u32 layers[CAPS_LAYERS];
	u32 services[CAPS_LAYERS]; /* what each calls the service */
	u32 len;
	u32 pad;
	u8 name[512];
};

struct caps_bound_key {
	u64 conn; /* number */
	u32 slot;
	u32 layer; /* of a struct caps_active; else 0 */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, struct caps_bound_key);
	__type(value, struct caps_bound);
} caps_bounds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, struct caps_bound_key);
	__type(value, struct caps_active);
} caps_service_actives SEC(".maps");

struct caps_number_key {
	u64 conn;
	u64 number;
	u64 is_descriptor;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, struct caps_number_key);
	__type(value, u32); /* slot */
} caps_numbers SEC(".maps");

/* The domain for which a connected socket leads to no service. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} caps_no_service SEC(".maps");

static const struct caps_conn caps_conn_none;
static const struct caps_coming caps_coming_none;
static const struct caps_bound caps_bound_none;

static __always_inline struct caps_conn *caps_conn_slot(u64 sk)
{
	return &caps_conn_slots[BOUND(sk * 0x9e3779b97f4a7c15ull >> (64 - CAPS_CONN_BITS), 1 << CAPS_CONN_BITS)];
}

/* The connection that a sock made; NULL: it is none that is monitored. */
static __always_inline struct caps_conn *caps_conn_of(u64 sk)
{
	struct caps_conn *slot = caps_conn_slot(sk);

	if (!sk)
		return NULL;
	if (slot->sock == sk)
		return slot;
	return slot->spilled ? bpf_map_lookup_elem(&caps_conns, &sk) : NULL;
}

/* The sock at the other end, which stays there until this one goes. */
static __always_inline u64 caps_peer_of(u64 sk)
{
	return address(CAST(struct unix_sock, sk)->peer);
}

static __always_inline bool caps_is_unix(u64 sk)
{
	return CAST(struct sock, sk)->__sk_common.skc_family == AF_UNIX;
}

/* Does a session that something was bound in still run? Images of others may be gone. */
static __always_inline bool caps_session_is(u32 place, u64 number)
{
	struct caps_session *s = caps_session_at(place);

	return s->started && s->number == number;
}

static __always_inline void caps_count_down(u32 place, u64 number)
{
	if (caps_session_is(place, number))
		__sync_fetch_and_sub(&caps_session_at(place)->actives, 1);
}

static __always_inline struct caps_bound *caps_bound_at(u64 conn, u32 slot)
{
	struct caps_bound_key key = { .conn = conn, .slot = slot };

	return bpf_map_lookup_elem(&caps_bounds, &key);
}

static __always_inline struct caps_active *caps_service_active_at(u64 conn, u32 slot, u32 layer)
{
	struct caps_bound_key key = { .conn = conn, .slot = slot, .layer = layer };

	return bpf_map_lookup_elem(&caps_service_actives, &key);
}

/* What a descriptor stands for, or what a request asked for; NULL: nothing. */
static __noinline struct caps_bound *caps_bound_by(u64 conn, u64 number, bool is_descriptor, u32 *slot)
{
	struct caps_number_key key = { .conn = conn, .number = number, .is_descriptor = is_descriptor };
	u32 *found = bpf_map_lookup_elem(&caps_numbers, &key);

	if (!found)
		return NULL;
	*slot = *found;
	return caps_bound_at(conn, *found);
}

/* Forgets what is in a slot, but not that it is used. */
__noinline int caps_bound_forget(u64 conn, u32 slot)
{
	struct caps_bound_key key = { .conn = conn, .slot = slot };
	struct caps_bound *b = bpf_map_lookup_elem(&caps_bounds, &key);
	struct caps_number_key number = { .conn = conn };
	u32 i, *of;

	if (!b)
		return 0;
	bpf_for(i, 0, b->count) {
		key.layer = b->layers[BOUND(i, CAPS_LAYERS)];
		bpf_map_delete_elem(&caps_service_actives, &key);
	}
	number.number = b->number;
	number.is_descriptor = b->is_descriptor;
	of = bpf_map_lookup_elem(&caps_numbers, &number);
	if (of && *of == slot)
		bpf_map_delete_elem(&caps_numbers, &number);
	caps_count_down(b->session, b->session_number);
	key.layer = 0;
	bpf_map_delete_elem(&caps_bounds, &key);
	return 0;
}

/* A slot that nothing is in, taken; CAPS_SLOTS: there is none. */
static __noinline u32 caps_slot_taken(struct caps_conn *c)
{
	u32 i, k;

	bpf_for(i, 0, CAPS_SLOTS / 64) {
		u64 *word = &c->slots[BOUND(i, CAPS_SLOTS / 64)], now = *word;

		if (now == ~0ull)
			continue;
		bpf_for(k, 0, 64) {
			u64 bit = 1ull << k;

			if (now & bit || __sync_fetch_and_or(word, bit) & bit)
				continue;
			/* two who write it at once write what is at most 63 too small: rounded up */
			if (c->slots_used < (i + 1) * 64)
				c->slots_used = (i + 1) * 64;
			return i * 64 + k;
		}
	}
	return CAPS_SLOTS;
}

static __always_inline void caps_slot_left(struct caps_conn *c, u32 slot)
{
	__sync_fetch_and_and(&c->slots[BOUND(slot / 64, CAPS_SLOTS / 64)], ~(1ull << (slot & 63)));
}

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
	c->verified = c->taken = c->reader = 0;
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
__noinline int caps_served_said(struct caps_room *r __arg_nonnull, struct tg_scratch *w __arg_nonnull)
{
	u32 k, i, n = w->n, state, automaton;

	asm volatile("" ::"r"(&arena));
	bpf_for(k, 0, r->count) {
		automaton = PART(struct caps_image,
				 PART(struct caps_subject, r->layers[BOUND(k, CAPS_LAYERS)])->image)->sockets;
		r->services[BOUND(k, CAPS_LAYERS)] = 0;
		if (!automaton)
			continue;
		state = PART(struct tg_automaton, automaton)->start;
		bpf_for(i, 0, n)
			state = automaton_feed_component(automaton, state, w->up[BOUND(n - 1 - i, TG_DEPTH)]);
		r->services[BOUND(k, CAPS_LAYERS)] = caps_answer_of(automaton, state);
	}
	return 0;
}

/* and the one with an abstract name. */
__noinline int caps_served_said_of_key(struct caps_room *r __arg_nonnull, u64 text, u32 len)
{
	u32 k, state, automaton;

	asm volatile("" ::"r"(&arena));
	bpf_for(k, 0, r->count) {
		automaton = PART(struct caps_image,
				 PART(struct caps_subject, r->layers[BOUND(k, CAPS_LAYERS)])->image)->sockets;
		r->services[BOUND(k, CAPS_LAYERS)] = 0;
		if (!automaton)
			continue;
		state = automaton_step(automaton, PART(struct tg_automaton, automaton)->start, '@');
		r->services[BOUND(k, CAPS_LAYERS)] =
			caps_answer_of(automaton, automaton_feed(automaton, state, text, len & 127));
	}
	return 0;
}

/* The same of a socket's path: 0, or an errno. */
__noinline int caps_served_path(u64 dentry, struct caps_room *r __arg_nonnull)
{
	struct super_block *sb = CAST(struct super_block, address(CAST(struct dentry, dentry)->d_sb));
	struct tg_scratch *w = scratch_get();
	int err = -EAGAIN;
	u64 before, m;
	u32 try;

	if (!w)
		return -EAGAIN;
	bpf_rcu_read_lock();
	bpf_for(try, 0, TG_TRIES) {
		err = -EAGAIN;
		before = path_settled();
		if (before & PATH_ODD)
			break;
		if (!walk_filesystem(dentry, w) || w->up[BOUND(w->n - 1, TG_DEPTH)] != address(sb->s_root)) {
			err = -EACCES;
		} else {
			m = mount_of(address(sb), w);
			if (m == MOUNT_LATER)
				break;
			/* what nothing in sight leads to has no name that a file could have */
			err = m && walk_mounts(m, w) ? caps_served_said(r, w) : -EACCES;
		}
		if (path_sequence() == before)
			break;
		err = -EAGAIN;
	}
	bpf_rcu_read_unlock();
	scratch_put(w);
	return err;
}

/*
 * What a room's layers call the service at a socket: whether any has one there, or an errno. What has no name is no service: so
 * are pairs, and who has connected to one.
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
	if ((u8)name_word(text)) {
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

	if (!r->layer || !r->operand || r->operand > ((struct caps_wire_request *)r->head)->operands)
		return false;
	if (r->kinds[i] == CAPS_WIRE_NAME_OF) {
		n->dentry = address(r->head + at);
		n->text_len = r->lens[i];
		return true;
	}
	b = r->kinds[i] == CAPS_WIRE_DESCRIPTOR ? caps_bound_by(r->conn, *(u64 *)(r->head + at), true, &slot) : NULL;
	if (!b)
		return false;
	n->dentry = address(b->name);
	n->text_len = b->len;
	return true;
}

/* A refusal of what a room holds, and its record. */
static __noinline int caps_service_refused(struct caps_room *r)
{
	struct tg_note n = { .op = TG_OP_SEND, .class = TG_C_UNIX };
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

/*
 * Whose turn it is: a thread's, by its number and when it began. 0: the current one's; 1: it was already, or that of one which
 * is gone, so that what became of it is not known; -EAGAIN: another one's.
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
	return gone && __sync_val_compare_and_swap(turn, holder, mine) == holder ? 1 : -EAGAIN;
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

/* A governed task connects: is a service there? */
SEC("lsm/unix_stream_connect")
int BPF_PROG(caps_service_unix_stream_connect, struct sock *sock, struct sock *other, struct sock *newsk)
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
	err = caps_served_at(address(other), r);
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
