/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: network sockets. What comes from a network has its level. */
#ifndef TIDEGATE_LOMAC_NET_H
#define TIDEGATE_LOMAC_NET_H

#include "lib/sockaddr.h"
#include "lomac/authority.h"
#include "lomac/guard.h"
#include "lomac/ioctl.h"
#include "lomac/lent.h"
#include "lomac/own.h"
#include "lomac/port.h"
#include "lomac/unseen.h"

/*
 * What connects, sends and receives by the hooks below, with the addresses that they look at (0: the type's own). SCTP
 * connects and sends without a hook; SMC's connection is another socket's; of L2TP, and what is to come, nothing is known.
 */
static __always_inline bool protocol_is_known(int type, int protocol)
{
	/* of another type 0 is SCTP, or DCCP */
	if (type != SOCK_STREAM && type != SOCK_DGRAM && type != SOCK_RAW)
		return false;
	if (type == SOCK_RAW)
		return protocol != IPPROTO_SCTP;
	switch (protocol) {
	case 0:
	case IPPROTO_ICMP:
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_ICMPV6:
	case IPPROTO_UDPLITE:
	case IPPROTO_MPTCP:
		return true;
	}
	return false;
}

/* Raw traffic, and every family whose addresses no rule can tell apart: the network's lowest. */
SEC("lsm.s/socket_create")
int BPF_PROG(lomac_socket_create, int family, int type, int protocol, int kern)
{
	struct net_peer p = { .family = family };

	if (kern)
		return 0;
	if (family == AF_INET || family == AF_INET6) {
		if (!protocol_is_known(type & 0xf, protocol))
			return top_only(TG_OP_SOCKET);
		if ((type & 0xf) != SOCK_RAW)
			return 0;
	} else if (family_is_told(family)) {
		return 0;
	}
	count_query(TG_C_SOCKET);
	return observe_net(&p, TG_OP_SOCKET);
}

/*
 * The peer that will have connected is not known yet, and a splice from the new socket
 * passes no hook: the level is the network's lowest, unless only this machine
 * can reach the listener. A connection of another family is its acceptor's from
 * when it is the new socket's (demote/hand.h).
 */
SEC("lsm.s/socket_accept")
int BPF_PROG(lomac_socket_accept, struct socket *sock, struct socket *newsock)
{
	struct sock *sk = sock->sk;
	struct net_peer p = {};
	int err;

	if (!sk)
		return 0;
	p.family = sk->__sk_common.skc_family;
	if (p.family != AF_INET && p.family != AF_INET6) {
		err = family_is_told(p.family) ? 0 : observe_net(&p, TG_OP_ACCEPT);
		return err || !newsock->file ? err : verdict_of(hand_note(address(newsock->file)));
	}
	count_query(TG_C_SOCKET);
	net_bound(sk, &p);
	return observe_net(&p, TG_OP_ACCEPT);
}

/* Does the kernel talk by it for itself, as to a file server? In whose call that is, says nothing of what is said. */
static __always_inline bool is_of_kernel(struct sock *sk)
{
	struct sock *fields = CAST(struct sock, address(sk));

	return BPF_CORE_READ_BITFIELD_PROBED(fields, sk_kern_sock);
}

static __noinline int lomac_net_receive(struct sock *sk)
{
	struct net_peer p = { .family = sk->__sk_common.skc_family };

	if (is_of_kernel(sk))
		return 0;
	/* an option (TCP_ULP) makes a TCP socket one of SMC; the hooks of its creation and of its receipt saw a TCP socket */
	if (p.family != AF_INET && p.family != AF_INET6)
		return family_is_told(p.family) ? 0 : observe_net(&p, TG_OP_RECEIVE);
	count_query(TG_C_SOCKET);
	net_peer_of(sk, &p);
	/* what was queued before a datagram socket connected came from anywhere, and SCTP's peer has more addresses */
	if (sk->sk_type != SOCK_STREAM || sk->sk_protocol == IPPROTO_SCTP) {
		p.known = false;
		net_bound(sk, &p);
	}
	return observe_net(&p, TG_OP_RECEIVE);
}

/* Of every message, before it is received: of one that brings a descriptor, too. */
static __always_inline int lomac_recvmsg(struct sock *sk, struct msghdr *msg)
{
	if (msg->msg_control)
		hand_empty();
	return sk->__sk_common.skc_family != AF_UNIX ? lomac_net_receive(sk) : 0;
}

SEC("lsm.s/socket_recvmsg")
int BPF_PROG(lomac_socket_recvmsg, struct socket *sock, struct msghdr *msg)
{
	struct sock *sk = sock->sk;

	return sk ? lomac_recvmsg(sk, msg) : 0;
}

/* Sending to a network that is above the lowest level modifies it. */
__noinline int net_modified(struct net_peer *p __arg_nonnull, int err)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_SEND, .class = TG_C_SOCKET, .source = ~0u };
	u8 level;

	if (subject_level(s) >= policy.net_highest)
		return 0;
	level = net_level(p);
	if (level <= subject_level(s))
		return 0;
	n.object = level;
	n.family = p->family;
	n.port = p->port;
	__builtin_memcpy(n.addr, p->addr, 16);
	return err == -EIO ? deny(s, &n, -EIO) : deny(s, &n, -EPERM);
}

static __always_inline int modify_net(struct net_peer *p, int err)
{
	return verdict_of(net_modified(p, err));
}

/* Where the address of no host leads to: to the socket's own, as the kernel has the way there begin at it; else to loopback. */
static __always_inline u32 net_nowhere(struct sock *sk)
{
	u32 own = sk ? CAST(struct inet_sock, address(sk))->inet_saddr : 0;

	return own ? own : bpf_htonl(0x7f000001);
}

/* A sockaddr of an internet family, at a kernel address. */
static __always_inline bool net_peer_at(struct sock *sk, void *address, struct net_peer *p)
{
	u16 family = 0, port = 0;

	bpf_probe_read_kernel(&family, sizeof(family), address);
	/* a datagram to an address of no family goes where IPv4's would; of connect() it is the end */
	if (!family && p->family == AF_INET)
		family = AF_INET;
	if (family != AF_INET && family != AF_INET6)
		return false;
	p->family = family;
	bpf_probe_read_kernel(&port, sizeof(port), address + 2);
	p->port = bpf_ntohs(port);
	if (family == AF_INET) {
		u32 be = 0;

		bpf_probe_read_kernel(&be, sizeof(be), address + 4);
		net_peer_v4(p, be ? be : net_nowhere(sk));
	} else {
		u64 half[2] = {};

		bpf_probe_read_kernel(half, sizeof(half), address + 8);
		/* a socket that connects to no address reaches this machine */
		if (!half[0] && !half[1])
			half[1] = bpf_cpu_to_be64(1);
		if (!half[0] && half[1] == bpf_cpu_to_be64(0xffff00000000))
			half[1] |= (u64)net_nowhere(sk) << 32;
		__builtin_memcpy(p->addr, half, sizeof(half));
		p->known = true;
	}
	return true;
}

/* Netlink carries messages between processes, too: below the top only to the kernel. */
static __noinline int modify_netlink(bool others)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = {
		.op = TG_OP_SEND, .class = TG_C_SOCKET, .source = ~0u, .reason = TG_R_TOP_ONLY
	};

	return others && subject_level(s) < policy.top ? deny(s, &n, -EPERM) : 0;
}

static __always_inline bool names_others(void *address)
{
	u64 to = 0; /* port and groups */

	bpf_probe_read_kernel(&to, sizeof(to), address + 4);
	return to != 0;
}

/*
 * Does a message go to others? One whose name has no length goes to the peer that the socket was
 * connected to, maybe before a fall.
 */
static __always_inline bool goes_to_others(struct sock *sk, struct msghdr *msg)
{
	struct netlink_sock *socket = CAST(struct netlink_sock, address(sk));

	if (msg->msg_name && msg->msg_namelen)
		return names_others(CAST(struct sockaddr, address(msg->msg_name)));
	return socket->dst_portid || socket->dst_group;
}

/*
 * Another task that has the socket would read what comes by the new connection by splice(2), or by
 * TCP_ZEROCOPY_RECEIVE, which no hook sees. So no task may have it that would have to fall for that
 * network; and whoever has it unseen might.
 */
static __noinline int connects_alone(u64 sock, u8 net)
{
	struct sock *sk = CAST(struct sock, sock);
	struct tg_note n = { .op = TG_OP_CONNECT,
			     .class = TG_C_SOCKET,
			     .source = ~0u,
			     .reason = TG_R_CHANNEL,
			     .object = net };
	u64 file = address(CAST(struct socket, address(sk->sk_socket))->file);

	if (!sock || sk->sk_type != SOCK_STREAM || net >= policy.top || !file ||
	    !file_is_shared(file))
		return 0;
	if (file_is_above(file, net, TG_NODEMOTE | TG_NONETDEMOTE))
		return deny(subject_current(), &n, -EPERM);
	if (!is_held_unseen(file))
		return 0;
	n.reason = TG_R_BUSY;
	return deny(subject_current(), &n, -EAGAIN);
}

/* What is set of a socket, and its end, is set for everybody who has it: a filter tells and hides, an end ends. */
static __noinline int modify_ends(u64 file)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = {
		.op = TG_OP_SETATTR, .class = TG_C_SOCKET, .source = ~0u, .reason = TG_R_CHANNEL
	};

	return s && end_is_above(file, s->level) ? deny(s, &n, -EPERM) : 0;
}

/* A ring's own socket has no file, and nobody else. */
static __always_inline int changes_ends(struct socket *sock)
{
	u64 file = address(UNTRUSTED(sock)->file);

	if (!file || !file_is_shared(file) || level_modifies() >= policy.top)
		return 0;
	return modify_ends(file);
}

/* Nobody connects as another machine of a higher network (own.h). */
static __noinline int modify_bound(struct sock *sk)
{
	struct net_peer from = {};

	if (!sk || subject_level(subject_current()) >= policy.net_highest ||
	    !speaks_above(address(sk), &from, 0, 0, true))
		return 0;
	return modify_net(&from, -EPERM);
}

/*
 * A socket for datagrams is connected anew as often as one likes, and every connection is ended by
 * an address of no family (AF_UNSPEC). Another task that has it hears others then. A Unix socket of
 * any kind is another's to connect, too.
 */
SEC("lsm.s/socket_connect")
int BPF_PROG(lomac_socket_connect, struct socket *sock, struct sockaddr *name, int len)
{
	struct net_peer p = {};
	struct sock *sk = sock->sk;
	u16 family = 0;
	int err;

	if (!net_peer_at(sk, name, &p)) {
		bpf_probe_read_kernel(&family, sizeof(family), name);
		if (family == AF_NETLINK)
			return modify_netlink(names_others(name));
		if (family == AF_UNIX)
			tx_take_turn();
		return changes_ends(sock);
	}
	if (sk)
		p.elsewhere = net_is_elsewhere(sk);
	count_query(TG_C_SOCKET);
	err = modify_net(&p, -EPERM);
	if (!err)
		err = modify_bound(sk);
	if (!err)
		err = observe_net(&p, TG_OP_CONNECT);
	/* it may have fallen, and further while it waited */
	if (!err)
		err = modify_net(&p, -EPERM);
	if (!err)
		err = modify_bound(sk);
	if (!err && sock->type != SOCK_STREAM)
		err = changes_ends(sock);
	return err ? err : connects_alone(address(sk), net_believed(&p));
}

/* A datagram that was begun before (MSG_MORE) goes where it was to go then. */
static __always_inline bool net_peer_begun(struct sock *sk, struct net_peer *p)
{
	struct udp_sock *u = CAST(struct udp_sock, address(sk));

	/* both have the same structure */
	if (sk->sk_type != SOCK_DGRAM ||
	    (sk->sk_protocol != IPPROTO_UDP && sk->sk_protocol != IPPROTO_UDPLITE) || !u->pending)
		return false;
	if (u->pending == AF_INET) {
		net_peer_v4(p, u->inet.cork.fl.u.ip4.daddr);
	} else {
		bpf_probe_read_kernel(p->addr, 16, &u->inet.cork.fl.u.ip6.daddr);
		p->known = true;
	}
	return true;
}

/* Whatever the message goes to; `named` is the address that it gives. */
static __noinline int modify_peers(struct sock *sk, struct net_peer *named)
{
	struct net_peer p = { .family = sk->__sk_common.skc_family };
	int err = 0;

	if (!named || subject_level(subject_current()) >= policy.net_highest)
		return 0;
	/* what is connected does not go where the message says, or goes there all the same */
	if (named->known)
		err = modify_net(named, -EPERM);
	net_peer_of(sk, &p);
	if (!err && p.known)
		err = modify_net(&p, -EIO);
	/* a sender from an address of this machine's own network is believed as that */
	if (!err) {
		struct net_peer own = { .family = p.family };

		net_own(sk, &own, named, &p);
		if (own.known)
			err = modify_net(&own, -EIO);
	}
	if (!err) {
		struct net_peer begun = { .family = p.family, .elsewhere = p.elsewhere };

		if (net_peer_begun(sk, &begun))
			err = modify_net(&begun, -EIO);
	}
	return err;
}

/*
 * A datagram to this machine from an address of its own that is in a higher network. From the same address others are sent
 * to as from any; and what goes to a group, or to all, says nothing of its sender. From another machine's address it goes nowhere.
 */
static __noinline int modify_source(struct sock *sk, struct net_peer *named, u64 control, u64 len)
{
	struct net_peer from = {}, to = {};
	bool own;

	if (!named || !speaks_above(address(sk), &from, control, len, false))
		return 0;
	net_peer_of(sk, &to);
	own = named->known ? net_is_own(address(sk), named) :
			     to.known && net_is_own(address(sk), &to);
	if (!own) {
		__builtin_memset(to.addr, 0, sizeof(to.addr));
		own = net_peer_begun(sk, &to) && net_is_own(address(sk), &to);
	}
	if (!own) {
		__builtin_memset(&from, 0, sizeof(from));
		if (!speaks_above(address(sk), &from, control, len, true))
			return 0;
	}
	return from.family ? modify_net(&from, -EIO) : top_only(TG_OP_SEND);
}

/*
 * The kernel passes what it hears there on to all who listen for devices; or to its own parts, which ask for no privilege:
 * to be told of processes' ends, and by the drivers of a bus and of a machine's host.
 */
static __always_inline bool netlink_is_shared(struct sock *sk)
{
	return sk->sk_protocol == NETLINK_KOBJECT_UEVENT || sk->sk_protocol == NETLINK_CONNECTOR;
}

/*
 * What a message changes for all that have the socket. One that is begun (MSG_MORE) is theirs to go on with: it goes where the first
 * part was to go, and with that. And the first one that is sent gives the socket an address.
 */
static __noinline int begins_for_all(struct sock *sk, struct msghdr *msg)
{
	if (sk->sk_type == SOCK_STREAM || (!(msg->msg_flags & MSG_MORE) && sk->__sk_common.skc_num))
		return 0;
	return changes_ends(CAST(struct socket, address(sk->sk_socket)));
}

/* A message that connects passes no hook of connections. */
static __always_inline int lomac_net_send(struct sock *sk, struct msghdr *msg)
{
	struct net_peer named = { .family = sk->__sk_common.skc_family };
	int err;

	if (named.family == AF_NETLINK)
		return modify_netlink(netlink_is_shared(sk) || goes_to_others(sk, msg));
	if (is_of_kernel(sk))
		return 0;
	err = use_socket(sk);
	/* SMC hands a message that connects on to the TCP socket behind it */
	if (err || (named.family != AF_INET && named.family != AF_INET6 && named.family != AF_SMC))
		return err;
	/* the socket does not say which peer an association of SCTP is with */
	if (sk->sk_protocol == IPPROTO_SCTP)
		return top_only(TG_OP_SEND);
	err = verdict_of(begins_for_all(sk, msg));
	if (err)
		return err;
	if (subject_level(subject_current()) >= policy.net_highest && !message_connects(sk, msg))
		return 0;
	named.elsewhere = net_is_elsewhere(sk);
	if (msg->msg_name)
		net_peer_at(sk, CAST(struct sockaddr, address(msg->msg_name)), &named);
	err = modify_peers(sk, &named);
	if (!err && sk->sk_type != SOCK_STREAM)
		err = modify_source(sk, &named, address(msg->msg_control), msg->msg_controllen);
	if (err || !message_connects(sk, msg))
		return err;
	count_query(TG_C_SOCKET);
	err = modify_bound(sk);
	if (!err)
		err = observe_net(&named, TG_OP_CONNECT);
	if (!err)
		err = modify_peers(sk, &named);
	if (!err)
		err = modify_bound(sk);
	return err ? err : connects_alone(address(sk), net_believed(&named));
}

/*
 * On a Unix socket it is part of the guard (guard.h): a connection that the sender
 * could not make any more.
 */
static __noinline int send_any(struct msghdr *msg, struct sock *sk)
{
	if (sk->__sk_common.skc_family != AF_UNIX)
		return lomac_net_send(sk, msg);
	tx.family = AF_UNIX;
	/* a task that sends from the top needs no turn (unix.h), the daemon among them */
	if (sk->sk_type == SOCK_DGRAM && level_current() != policy.top)
		tx_take_turn();
	else
		tx_is_recent(); /* once it is not, nothing of this is asked */
	return tx.guard_armed ? guard_unix(sk, -EIO) : 0;
}

/* Of every message, before it is sent. `ctx`: of the hook */
static __always_inline int lomac_sendmsg(u64 *ctx, struct sock *sk)
{
	struct msghdr *msg = (struct msghdr *)ctx[1];

	if (msg->msg_flags & MSG_SPLICE_PAGES && sk->__sk_common.skc_family == AF_UNIX &&
	    lends_memory(address(msg)))
		return refuse_loan();
	if (tx_idle_for(sk->__sk_common.skc_family))
		return 0;
	return send_any(msg, sk);
}

/*
 * Detached while services are there: caps_service_socket_sendmsg (caps/service/message.h) runs lomac_sendmsg() instead. So a check
 * of a message that is sent belongs there, and not in this body. The same holds of lomac_socket_recvmsg and lomac_recvmsg().
 */
SEC("lsm.s/socket_sendmsg")
int BPF_PROG(lomac_socket_sendmsg, struct socket *sock)
{
	struct sock *sk = sock->sk;

	return sk ? lomac_sendmsg(ctx, sk) : 0;
}

#define ALG_NAME 24      /* where a struct sockaddr_alg has the cipher's name, up to its end */
#define ALG_NAME_MAX 104 /* of an address of any family */
#define ALG_PCRYPT 0x28747079726370ull /* `pcrypt(`, as its letters lie in memory */
#define ALG_CRYPTD 0x28647470797263ull /* `cryptd(` */

/* Has the name, so long, one of these templates in it? */
static __noinline bool raises_cipher(u64 name, u32 len)
{
	u32 i;

	bpf_for(i, 0, ALG_NAME_MAX) {
		u64 letters = read_kernel_u64(name + i) & ((1ull << 56) - 1);

		if (i >= len || !(letters & 0xff))
			return false;
		if (letters == ALG_PCRYPT || letters == ALG_CRYPTD)
			return true;
	}
	return false;
}

/*
 * A socket of ciphers that is bound to a name makes the kernel put the cipher together. By these templates it comes before the one that
 * the kernel's own users ask for (IPsec, dm-crypt, TLS), of the same name, and stays.
 */
static __always_inline bool replaces_cipher(struct socket *sock, void *name, int len)
{
	struct sock *sk = UNTRUSTED(sock)->sk;

	return sk && sk->__sk_common.skc_family == AF_ALG && len > ALG_NAME &&
	       level_modifies() < policy.top &&
	       raises_cipher(address(name) + ALG_NAME, len - ALG_NAME);
}

/* All that have the socket share its own name, whether it hears connections, and how many wait. */
SEC("lsm/socket_bind")
int BPF_PROG(lomac_socket_bind, struct socket *sock, struct sockaddr *name, int len)
{
	if (replaces_cipher(sock, name, len))
		return top_only(TG_OP_SYSTEM);
	return changes_ends(sock);
}

SEC("lsm/socket_listen")
int BPF_PROG(lomac_socket_listen, struct socket *sock)
{
	return changes_ends(sock);
}

SEC("lsm/socket_setsockopt")
int BPF_PROG(lomac_socket_setsockopt, struct socket *sock, int level, int option)
{
	int err = sets_port(sock, level, option);
	struct sock *sk = sock->sk;

	if (!err && sk)
		err = sets_routes(sk, level, option);
	return err ? err : changes_ends(sock);
}

SEC("lsm/socket_shutdown")
int BPF_PROG(lomac_socket_shutdown, struct socket *sock)
{
	return changes_ends(sock);
}

/* SCTP binds and connects by options, too, to several addresses at once. Its sockets are the top's, and one may be kept over a fall. */
SEC("lsm/sctp_bind_connect")
int BPF_PROG(lomac_sctp_bind_connect, struct sock *sk)
{
	return top_only(TG_OP_CONNECT);
}

#endif
