/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets that do what the kernel asks a capability for when they are made or set up, and not again. A task that falls keeps them,
 * and a child that falls inherits them; so what they are used for is asked about here. Netlink asks again at each message.
 */
#ifndef TIDEGATE_LOMAC_AUTHORITY_H
#define TIDEGATE_LOMAC_AUTHORITY_H

#include "lomac/namespace.h"

/* Does it set the machine's own: the keys and policies of IPsec, or a Bluetooth controller? */
static __always_inline bool socket_sets(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	return family == AF_KEY || (family == AF_BLUETOOTH && sk->sk_protocol == BTPROTO_HCI);
}

/* Does it speak from any address? Of SMC a socket behind it has the address. */
static __always_inline bool socket_forges(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	return family == AF_PACKET || family == AF_XDP || family == AF_SMC ||
	       ((family == AF_INET || family == AF_INET6) && sk->sk_type == SOCK_RAW);
}

static __noinline int refuse_authority(u8 needs)
{
	struct tg_note n = {
		.op = TG_OP_SEND, .class = TG_C_SOCKET, .source = ~0u, .reason = TG_R_TOP_ONLY
	};

	n.object = needs;
	return deny(subject_current(), &n, -EPERM);
}

/* May the current subject use what it needs this level for? In a user namespace's network as its capabilities there. */
static __noinline int use_authority(struct sock *sk, u8 needs)
{
	struct net *net = CAST(struct net, address(UNTRUSTED(sk)->__sk_common.skc_net.net));
	u64 user_ns = address(net->user_ns);

	if (level_modifies() >= needs)
		return 0;
	return CAST(struct user_namespace, user_ns)->level ? namespace_is_own(user_ns, false) :
							     refuse_authority(needs);
}

/* To send by it, or to map its rings. */
static __always_inline int use_socket(struct sock *sk)
{
	if (socket_sets(sk))
		return use_authority(sk, policy.top);
	return socket_forges(sk) ? use_authority(sk, policy.net_highest) : 0;
}

/* MRT_* and MRT6_*: the socket that began it says where multicasts are passed on to. */
#define MRT_BASE 200
#define MRT_OPTIONS 32

static __always_inline int sets_routes(struct sock *sk, int level, int option)
{
	if ((level != IPPROTO_IP && level != IPPROTO_IPV6) ||
	    (u32)(option - MRT_BASE) >= MRT_OPTIONS)
		return 0;
	return use_authority(sk, policy.top);
}

#endif
