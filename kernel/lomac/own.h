/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This machine's own addresses: by them others know who sends, and take it for the address's network. */
#ifndef TIDEGATE_LOMAC_OWN_H
#define TIDEGATE_LOMAC_OWN_H

#include "lomac/network.h"

#define LOOPBACK_IFINDEX 1 /* in every network namespace */

/* A socket bound to a loopback address is reached by this machine alone: then that is the network. SCTP has more addresses. */
static __always_inline void net_bound(struct sock *sk, struct net_peer *p)
{
	u64 half[2] = {};

	p->elsewhere = net_is_elsewhere(sk);
	if (sk->sk_protocol == IPPROTO_SCTP)
		return;
	if (p->family == AF_INET) {
		if ((sk->__sk_common.skc_rcv_saddr & 0xff) == 127)
			net_peer_v4(p, sk->__sk_common.skc_rcv_saddr);
		return;
	}
	bpf_probe_read_kernel(half, sizeof(half), &sk->__sk_common.skc_v6_rcv_saddr);
	if (!half[0] && half[1] == bpf_cpu_to_be64(1)) {
		__builtin_memcpy(p->addr, half, sizeof(half));
		p->known = true;
	}
}

/* The address that the socket has, whatever that is; not known: it has none yet. */
static __always_inline void net_named(struct sock *sk, struct net_peer *p)
{
	p->family = sk->__sk_common.skc_family;
	p->elsewhere = net_is_elsewhere(sk);
	if (p->family == AF_INET) {
		net_peer_v4(p, sk->__sk_common.skc_rcv_saddr);
		return;
	}
	bpf_probe_read_kernel(p->addr, 16, &sk->__sk_common.skc_v6_rcv_saddr);
	p->known = net_is_address(p->addr);
}

#define NET_DEVICES 4096
#define NET_ADDRESSES 4096 /* of a device */

/* Has the device the address? What cannot be told is so. */
__noinline bool device_has(u64 device, u64 high, u64 low)
{
	struct net_device *dev = CAST(struct net_device, device);
	u64 at, head;
	u32 i;

	if (!high && (u32)low == V4_MAPPED) {
		at = address(dev->ip_ptr);
		if (at)
			at = address(CAST(struct in_device, at)->ifa_list);
		bpf_for(i, 0, NET_ADDRESSES) {
			if (!at)
				return false;
			if (CAST(struct in_ifaddr, at)->ifa_local == low >> 32)
				return true;
			at = address(CAST(struct in_ifaddr, at)->ifa_next);
		}
		return true;
	}
	at = address(dev->ip6_ptr);
	if (!at)
		return false;
	head = at + bpf_core_field_offset(struct inet6_dev, addr_list);
	at = address(CAST(struct inet6_dev, at)->addr_list.next);
	bpf_for(i, 0, NET_ADDRESSES) {
		u64 entry = at - bpf_core_field_offset(struct inet6_ifaddr, if_list);

		if (at == head)
			return false;
		if (!at)
			return true;
		entry += bpf_core_field_offset(struct inet6_ifaddr, addr);
		if (read_kernel_u64(entry) == high && read_kernel_u64(entry + 8) == low)
			return true;
		at = address(CAST(struct list_head, at)->next);
	}
	return true;
}

/* Is it an address of this machine, as the socket's network namespace has it? What cannot be told is one. */
__noinline bool net_is_own(u64 sk, struct net_peer *p __arg_nonnull)
{
	u64 net = address(CAST(struct sock, sk)->__sk_common.skc_net.net), half[2] = {}, head, at;
	bool own = true;
	u32 i;

	if (net_is_loopback(p))
		return true;
	__builtin_memcpy(half, p->addr, sizeof(half));
	head = net + bpf_core_field_offset(struct net, dev_base_head);
	bpf_rcu_read_lock();
	at = address(CAST(struct net, net)->dev_base_head.next);
	bpf_for(i, 0, NET_DEVICES) {
		u64 device = at - bpf_core_field_offset(struct net_device, dev_list);

		if (at == head)
			own = false;
		if (!at || at == head || device_has(device, half[0], half[1]))
			break;
		at = address(CAST(struct list_head, at)->next);
	}
	bpf_rcu_read_unlock();
	return own;
}

/*
 * The socket's own address, where a task on this machine takes a sender from it for that address's
 * network: a loopback address, or that of a connection by the loopback device, as all between two
 * own addresses are. A server that another machine asks answers from an own address, too, and is no
 * network to it.
 */
static __always_inline void net_own(struct sock *sk, struct net_peer *p, struct net_peer *named,
				    struct net_peer *peer)
{
	u8 state = sk->__sk_common.skc_state;
	int device = sk->sk_rx_dst_ifindex;

	net_bound(sk, p);
	if (p->known || sk->sk_type != SOCK_STREAM)
		return;
	if (state == TCP_CLOSE || state == TCP_SYN_SENT) {
		/* nobody has answered yet; what is sent by TCP Fast Open, or by a call that waits, goes when somebody does */
		if (!(named->known && net_is_own(address(sk), named)) &&
		    !(peer->known && net_is_own(address(sk), peer)))
			return;
	} else if (device && device != LOOPBACK_IFINDEX) {
		/* 0: not known, as with MPTCP: it may be that one */
		return;
	}
	net_named(sk, p);
}

/*
 * Is it an address of another machine's? A socket gets one by IPV6_FREEBIND, which everybody may set, by IP_TRANSPARENT, and where the
 * system says so (ip_nonlocal_bind); nothing of that is to be seen any more afterwards. A group sends nothing: the device's address does.
 */
static __always_inline bool net_is_others(u64 sk, struct net_peer *p)
{
	u64 half[2];
	bool group;

	if (!p->known)
		return false;
	__builtin_memcpy(half, p->addr, sizeof(half));
	group = !half[0] && (u32)half[1] == V4_MAPPED ? p->addr[12] >= 224 : p->addr[0] == 0xff;
	return !group && !net_is_own(sk, p);
}

#define NET_CONTROLS (1 << 16) /* in as much as sysctl net.core.optmem_max could be */

/*
 * Does a datagram say that it comes from a network above the level: by the socket's address, or by a control message
 * (IP_PKTINFO)? The address is filled in. `others`: from another machine there.
 */
__noinline bool speaks_above(u64 sk, struct net_peer *from __arg_nonnull, u64 control, u64 len,
			     bool others)
{
	u8 level = subject_level(subject_current());
	u64 at = 0;
	u32 i;

	net_named(CAST(struct sock, sk), from);
	if (net_level(from) > level && (!others || net_is_others(sk, from)))
		return true;
	bpf_for(i, 0, NET_CONTROLS) {
		u64 size = read_kernel_u64(control + at), what = read_kernel_u64(control + at + 8);

		if (at + 16 > len || size < 16 || size > len - at)
			return false;
		from->known = false;
		if (what == (IPPROTO_IP | (u64)IP_PKTINFO << 32)) {
			__builtin_memset(from->addr, 0, sizeof(from->addr));
			/* struct in_pktinfo: the device, and the address to send from */
			net_peer_v4(from, read_kernel_u64(control + at + 16) >> 32);
		} else if (what == (IPPROTO_IPV6 | (u64)IPV6_PKTINFO << 32) ||
			   what == (IPPROTO_IPV6 | (u64)IPV6_2292PKTINFO << 32)) {
			u64 half[2];

			half[0] = read_kernel_u64(control + at + 16);
			half[1] = read_kernel_u64(control + at + 24);
			__builtin_memcpy(from->addr, half, sizeof(half));
			from->known = net_is_address(from->addr);
		}
		if (net_level(from) > level && (!others || net_is_others(sk, from)))
			return true;
		at += (size + 7) & ~7ull;
	}
	/* of more than these one may say so: of no family */
	from->family = AF_UNSPEC;
	return true;
}

#endif
