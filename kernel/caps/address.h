/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses and ports in the `capability` model: what they are called, and what the layers of a domain say of them. */
#ifndef TIDEGATE_CAPS_ADDRESS_H
#define TIDEGATE_CAPS_ADDRESS_H

#include "lib/sockaddr.h"
#include "caps/ask.h"

/* What automata read of an address and a port: crates/bundle/src/caps/object.rs, Object::key(). */
struct caps_inet {
	u8 bytes[24] __attribute__((aligned(8)));
	u32 len;
};

/* The object that this is. */
static __always_inline u64 caps_inet_object(struct caps_inet *key, u32 class)
{
	u64 id = class == CAPS_TCP ? CAPS_ID_TCP : CAPS_ID_UDP;
	u32 i;

	for (i = 0; i < 24; i += 8)
		if (i < key->len)
			id = caps_mix(id, *(u64 *)(key->bytes + i));
	return caps_mix(id, key->len);
}

__noinline int caps_ask_inet(struct caps_inet *key __arg_nonnull,
			     struct caps_question *q __arg_nonnull)
{
	struct caps_domain *d = caps_domain_at(q->domain);
	u32 k, i, state, automaton;

	USES_ARENA();
	q->object = caps_inet_object(key, q->class);
	bpf_for(k, 0, d->count) {
		automaton = caps_automaton(d->layers[BOUND(k, CAPS_LAYERS)], q->class);
		q->answers[BOUND(k, CAPS_LAYERS)] = 0;
		if (!automaton)
			continue;
		state = ARENA_PTR(struct tg_automaton, automaton)->start;
		for (i = 0; i < 19; i++)
			if (i < key->len)
				state = automaton_step(automaton, state, key->bytes[i]);
		q->answers[BOUND(k, CAPS_LAYERS)] = caps_answer_of(automaton, state);
	}
	return caps_judge(q);
}

static __always_inline void caps_inet_port(struct caps_inet *key, u32 port)
{
	if (key->len == 7) {
		key->bytes[5] = port >> 8;
		key->bytes[6] = port;
	} else {
		key->bytes[17] = port >> 8;
		key->bytes[18] = port;
	}
}

/* An IPv4 address that is written as IPv6 is one. */
static __always_inline void caps_inet_key(struct caps_inet *key, const u32 *words, u32 family,
					  u32 port)
{
	u32 i;

	__builtin_memset(key, 0, sizeof(*key));
	if (family == AF_INET6 && !words[0] && !words[1] && words[2] == bpf_htonl(0xffff)) {
		family = AF_INET;
		words += 3;
	}
	key->bytes[0] = family == AF_INET ? 4 : 6;
	for (i = 0; i < 16; i++)
		if (family != AF_INET || i < 4)
			key->bytes[1 + i] = ((const u8 *)words)[i];
	key->len = family == AF_INET ? 7 : 19;
	caps_inet_port(key, port);
}

/* The class of a socket, CAPS_CLASSES: none that a capability is for. The number of a raw one is no port. */
static __always_inline u32 caps_class_of_sock(struct sock *sk)
{
	struct sock *k = CAST(struct sock, address(sk));

	switch (k->__sk_common.skc_family) {
	case AF_UNIX:
		return CAPS_UNIX;
	case AF_INET:
	case AF_INET6:
		if (k->sk_protocol == IPPROTO_TCP || k->sk_protocol == IPPROTO_MPTCP)
			return CAPS_TCP;
		return k->sk_protocol == IPPROTO_UDP ? CAPS_UDP : CAPS_CLASSES;
	}
	return CAPS_CLASSES;
}

/*
 * An unspecified address, also as IPv4's is written as IPv6, is no peer's: the kernel takes it for 127.0.0.1, ::1, or an own address
 * that it chooses by what the socket and the message say besides (ip_route_output_key_hash_rcu()).
 */
static __always_inline bool caps_is_unspecified(struct inet_address *a)
{
	if (a->family != AF_INET6)
		return !a->words[0];
	return !a->words[0] && !a->words[1] && !a->words[3] &&
	       (!a->words[2] || a->words[2] == bpf_htonl(0xffff));
}

/* May the current task do this with an address that the kernel has copied? What is bound is left to the caller. */
static __noinline int caps_inet_asked(struct sock *sk, u64 at, int len, struct caps_question *q,
				      u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_SOCKET };
	struct inet_address a = {};
	struct caps_inet key;
	bool known = read_inet_address(at, len, &a);

	/* __inet_bind() takes AF_UNSPEC for AF_INET */
	if (!known && a.family && a.family != AF_INET)
		return -EAFNOSUPPORT;
	if (!known && len < 16)
		return -EINVAL;
	caps_inet_key(&key, a.words, a.family == AF_INET6 ? AF_INET6 : AF_INET, a.port);
	caps_ask_inet(&key, q);
	if (q->asked.wanted == CAPS_CONNECT && caps_is_unspecified(&a)) {
		q->why = CAPS_NO_NAME;
		q->asked.given = 0;
	}
	n.family = a.family;
	n.port = a.port;
	__builtin_memcpy(n.addr, a.words, 16);
	return q->asked.given == q->asked.wanted ? 0 : verdict_of(caps_refuse(q, &n));
}

/* What an inet socket is connected to, or its own address. */
static __noinline int caps_sock_key(struct caps_inet *key, u64 sk, bool peer)
{
	struct sock *k = CAST(struct sock, sk);
	u32 family = k->__sk_common.skc_family, words[4] = {};
	u32 port = peer ? bpf_ntohs(k->__sk_common.skc_dport) : k->__sk_common.skc_num;

	if (family == AF_INET) {
		words[0] = peer ? k->__sk_common.skc_daddr : k->__sk_common.skc_rcv_saddr;
	} else if (peer) {
		bpf_probe_read_kernel(words, sizeof(words), &k->__sk_common.skc_v6_daddr);
	} else {
		bpf_probe_read_kernel(words, sizeof(words), &k->__sk_common.skc_v6_rcv_saddr);
	}
	caps_inet_key(key, words, family, port);
	return 0;
}

static __always_inline int caps_ask_sock(u64 sk, bool peer, struct caps_question *q)
{
	struct caps_inet key;

	caps_sock_key(&key, sk, peer);
	return caps_ask_inet(&key, q);
}

/* Is an inet socket's peer this object? */
__noinline bool caps_peer_is(u64 sk, u64 object)
{
	struct caps_inet key;

	caps_sock_key(&key, sk, true);
	return caps_inet_object(&key, caps_class_of_sock(CAST(struct sock, sk))) == object;
}

/* Is its own address? One that was bound to port 0 has the port that the kernel chose. */
__noinline bool caps_own_is(u64 sk, u64 object)
{
	u32 class = caps_class_of_sock(CAST(struct sock, sk));
	struct caps_inet key;

	caps_sock_key(&key, sk, false);
	if (caps_inet_object(&key, class) == object)
		return true;
	caps_inet_port(&key, 0);
	return caps_inet_object(&key, class) == object;
}

/* Has somebody named a socket's port? One that the kernel chose as it connected or sent goes when the connection ends. */
static __always_inline bool caps_port_is_named(u64 sk)
{
	struct sock *k = CAST(struct sock, sk);

	return BPF_CORE_READ_BITFIELD_PROBED(k, sk_userlocks) & SOCK_BINDPORT_LOCK;
}

/*
 * Was a connection of TCP accepted? It has its listener's room then (sk_clone_lock()), of which MPTCP's sockets know nothing. A socket for datagrams
 * whose port was named is a server's.
 */
static __always_inline bool caps_came_in(u64 sk)
{
	struct sock *k = CAST(struct sock, sk);

	switch (k->sk_protocol) {
	case IPPROTO_TCP:
		return k->sk_max_ack_backlog;
	case IPPROTO_MPTCP:
		return true;
	}
	return caps_port_is_named(sk);
}

/*
 * Is a Unix socket had by its peer's name, not by its own? A client is; it may have an address, and that alone then. A stream that
 * was accepted shares its listener's.
 */
static __always_inline bool caps_is_unix_client(u64 sk)
{
	struct unix_sock *u = CAST(struct unix_sock, sk);
	struct unix_address *addr = CAST(struct unix_address, address(u->addr));
	u64 peer = address(u->peer);

	if (!peer || !address(addr))
		return peer;
	return CAST(struct sock, sk)->sk_type != SOCK_DGRAM && addr->refcnt.refs.counter == 1 &&
	       CAST(struct unix_sock, peer)->addr;
}

#endif
