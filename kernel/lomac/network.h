/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The levels of networks: the peer of a socket, and what is observed by talking to it. */
#ifndef TIDEGATE_LOMAC_NETWORK_H
#define TIDEGATE_LOMAC_NETWORK_H

#include "lomac/check.h"

struct net_peer {
	u8 family;
	u8 addr[16];
	u16 port;
	bool known;
	bool elsewhere; /* of a socket that net_is_elsewhere() */
};

/*
 * Is it in a network namespace that belongs to a user namespace, and not to the machine? The owner
 * of that gives it the addresses, ways and translations that it likes, so that any other network
 * may lie behind any address.
 */
static __always_inline bool net_is_elsewhere(struct sock *sk)
{
	struct net *net = CAST(struct net, address(UNTRUSTED(sk)->__sk_common.skc_net.net));

	return CAST(struct user_namespace, address(net->user_ns))->level;
}

#define V4_MAPPED 0xffff0000u /* the third word of such an address, as it lies in memory */

static __always_inline bool net_is_loopback(struct net_peer *p)
{
	u64 half[2];

	__builtin_memcpy(half, p->addr, sizeof(half));
	if (half[0])
		return false;
	return half[1] == bpf_cpu_to_be64(1) || ((u32)half[1] == V4_MAPPED && p->addr[12] == 127);
}

/*
 * The level of an address, as a sender is asked about it: the longest network line that holds it.
 * What is sent by somebody's own loopback device stays in there, where nobody believes it.
 */
static __always_inline u8 net_level(struct net_peer *p)
{
	struct tg_net key = { .prefixlen = 128 };
	u32 slot = policy_slot(), *level;
	void *inner;

	if (!p->known || (p->elsewhere && net_is_loopback(p)))
		return policy.net_default;
	inner = bpf_map_lookup_elem(&nets, &slot);
	if (!inner)
		return 0;
	__builtin_memcpy(key.addr, p->addr, 16);
	level = bpf_map_lookup_elem(inner, &key);
	return level ? *level : policy.net_default;
}

/* The level that is observed. Where somebody else says what an address is, no line holds. */
static __always_inline u8 net_believed(struct net_peer *p)
{
	return p->elsewhere ? policy.net_default : net_level(p);
}

/* Is it an address that a host has? `::` is none, nor is 0.0.0.0 in its form. */
static __always_inline bool net_is_address(u8 *addr)
{
	u64 half[2];

	__builtin_memcpy(half, addr, sizeof(half));
	return half[0] || (half[1] && half[1] != V4_MAPPED);
}

static __always_inline void net_peer_v4(struct net_peer *p, u32 be)
{
	p->addr[10] = p->addr[11] = 0xff;
	__builtin_memcpy(p->addr + 12, &be, 4);
	p->known = be != 0;
}

static __always_inline void net_peer_of(struct sock *sk, struct net_peer *p)
{
	p->family = sk->__sk_common.skc_family;
	p->elsewhere = net_is_elsewhere(sk);
	if (p->family == AF_INET) {
		net_peer_v4(p, sk->__sk_common.skc_daddr);
	} else {
		bpf_probe_read_kernel(p->addr, 16, &sk->__sk_common.skc_v6_daddr);
		p->known = net_is_address(p->addr);
	}
}

static __always_inline int observe_net(struct net_peer *p, u8 op)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = op, .class = TG_C_SOCKET, .source = ~0u };
	u8 level = net_believed(p), to = lomac_observe_net(lomac_subject_observing(s), level);

	if (to >= subject_observes(s))
		return 0;
	n.object = level;
	n.family = p->family;
	n.port = p->port;
	__builtin_memcpy(n.addr, p->addr, 16);
	return fall(s, to, &n, true);
}

/* Have a family's sockets rules of their own? Of the others none tells the addresses apart. */
static __always_inline bool family_is_told(u16 family)
{
	switch (family) {
	case AF_INET:
	case AF_INET6:
	case AF_UNIX:
	case AF_NETLINK:
	case AF_ALG:
	case AF_KEY:
		return true;
	}
	return false;
}

#define TUN_DEVICE (10u << 20 | 200)

/*
 * A tunnel's end (/dev/net/tun), or a tap of a macvtap device (/dev/tap7, whose number is not known before): what is
 * read there is what a network sends. Only the top makes devices, so what is called so is one.
 */
__noinline bool is_tap(u64 inode, u64 dentry)
{
	char name[4] = {};

	if (CAST(struct inode, inode)->i_rdev == TUN_DEVICE)
		return true;
	bpf_probe_read_kernel(name, sizeof(name), CAST(struct dentry, dentry)->d_name.name);
	return !__builtin_memcmp(name, "tap", 3) && name[3] >= '0' && name[3] <= '9';
}

/* Binds the network's end of a device to the current subject, if it is one that will be read. */
static __noinline int observe_tap(struct file *file)
{
	struct net_peer p = {};

	if (!(file->f_mode & FMODE_READ) || !is_tap(address(file->f_inode), file_dentry(file)))
		return 0;
	count_query(TG_C_SOCKET);
	return observe_net(&p, TG_OP_RECEIVE);
}

#endif
