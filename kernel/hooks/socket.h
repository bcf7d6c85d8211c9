/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: network sockets. What comes from a network has its level. */
#ifndef TIDEGATE_HOOK_SOCKET_H
#define TIDEGATE_HOOK_SOCKET_H

#define AF_KEY 15
#define AF_PACKET 17
#define AF_VSOCK 40
#define AF_XDP 44
#define AF_NETLINK 16
#define NETLINK_KOBJECT_UEVENT 15
#define AF_ALG 38
#define MSG_FASTOPEN 0x20000000
#define SOCK_RAW 3
#define IPPROTO_ICMP 1
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_ICMPV6 58
#define IPPROTO_SCTP 132
#define IPPROTO_UDPLITE 136
#define IPPROTO_MPTCP 262

struct net_peer {
	u8 family;
	u8 addr[16];
	u16 port;
	bool known;
};

/* The level of an address: the longest network line that holds it. */
static __always_inline u8 net_level(struct net_peer *p)
{
	struct tg_net key = { .prefixlen = 128 };
	u32 slot = policy_slot(), *level;
	void *inner;

	if (!p->known)
		return policy.net_default;
	inner = bpf_map_lookup_elem(&nets, &slot);
	if (!inner)
		return 0;
	__builtin_memcpy(key.addr, p->addr, 16);
	level = bpf_map_lookup_elem(inner, &key);
	return level ? *level : policy.net_default;
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
	if (p->family == AF_INET) {
		net_peer_v4(p, sk->__sk_common.skc_daddr);
	} else {
		u64 any;

		bpf_probe_read_kernel(p->addr, 16, &sk->__sk_common.skc_v6_daddr);
		__builtin_memcpy(&any, p->addr + 8, 8);
		p->known = any != 0;
	}
}

/* A socket bound to a loopback address is reached by this machine alone: then that is the network. */
static __always_inline void net_bound(struct sock *sk, struct net_peer *p)
{
	u64 half[2] = {};

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

#define LOOPBACK_IFINDEX 1 /* in every network namespace */

/*
 * The socket's own address, where somebody on this machine takes who sends from it for that address's network: a loopback
 * address, or that of a connection by the loopback device, as all between two own addresses are. Who is asked by another
 * machine answers from an own address, too, and is no network to it.
 */
static __always_inline void net_own(struct sock *sk, struct net_peer *p)
{
	u8 state = sk->__sk_common.skc_state;
	int device = sk->sk_rx_dst_ifindex;

	net_bound(sk, p);
	/* nobody has answered yet who connects */
	if (p->known || sk->sk_type != SOCK_STREAM || state == TCP_CLOSE || state == TCP_SYN_SENT)
		return;
	/* 0: not known, as with MPTCP: it may be that one */
	if (device && device != LOOPBACK_IFINDEX)
		return;
	if (p->family == AF_INET) {
		net_peer_v4(p, sk->__sk_common.skc_rcv_saddr);
		return;
	}
	bpf_probe_read_kernel(p->addr, 16, &sk->__sk_common.skc_v6_rcv_saddr);
	p->known = true;
}

static __always_inline int observe_net(struct net_peer *p, u8 op)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = op, .class = TG_C_SOCKET, .source = ~0u };
	u8 level = net_level(p), to = lomac_observe_net(observer(s), level);

	if (to >= subject_observes(s))
		return 0;
	n.object = level;
	n.family = p->family;
	n.port = p->port;
	__builtin_memcpy(n.addr, p->addr, 16);
	return fall(s, to, &n, true);
}

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
int BPF_PROG(hook_socket_create, int family, int type, int protocol, int kern)
{
	struct net_peer p = { .family = family };

	if (kern)
		return 0;
	switch (family) {
	case AF_INET:
	case AF_INET6:
		if (!protocol_is_known(type & 0xf, protocol))
			return top_only(TG_OP_SOCKET);
		if ((type & 0xf) != SOCK_RAW)
			return 0;
		break;
	case AF_UNIX:
	case AF_NETLINK:
	case AF_ALG:
	case AF_KEY:
		return 0;
	}
	count_query(TG_C_SOCKET);
	return observe_net(&p, TG_OP_SOCKET);
}

/*
 * Who will have connected is not known yet, and a splice from the new socket
 * passes no hook: the level is the network's lowest, unless only this machine
 * can reach the listener.
 */
SEC("lsm.s/socket_accept")
int BPF_PROG(hook_socket_accept, struct socket *sock, struct socket *newsock)
{
	struct sock *sk = sock->sk;
	struct net_peer p = {};

	if (!sk)
		return 0;
	p.family = sk->__sk_common.skc_family;
	if (p.family != AF_INET && p.family != AF_INET6)
		return 0;
	count_query(TG_C_SOCKET);
	net_bound(sk, &p);
	return observe_net(&p, TG_OP_ACCEPT);
}

static __noinline int receive(struct sock *sk)
{
	struct net_peer p = {};
	u16 family = sk->__sk_common.skc_family;

	if (family != AF_INET && family != AF_INET6)
		return 0;
	count_query(TG_C_SOCKET);
	net_peer_of(sk, &p);
	/* what was queued before a datagram socket connected came from anywhere */
	if (sk->sk_type != SOCK_STREAM) {
		p.known = false;
		net_bound(sk, &p);
	}
	return observe_net(&p, TG_OP_RECEIVE);
}

/* Of every message, before it is received. */
static __always_inline int receives(struct sock *sk)
{
	return sk->__sk_common.skc_family != AF_UNIX ? receive(sk) : 0;
}

SEC("lsm.s/socket_recvmsg")
int BPF_PROG(hook_socket_recvmsg, struct socket *sock)
{
	struct sock *sk = sock->sk;

	return sk ? receives(sk) : 0;
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

/* A sockaddr of an internet family, at a kernel address. */
static __always_inline bool net_peer_at(void *address, struct net_peer *p)
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
		net_peer_v4(p, be ? be : bpf_htonl(0x7f000001));
	} else {
		u64 half[2] = {};

		bpf_probe_read_kernel(half, sizeof(half), address + 8);
		/* who connects to no address reaches this machine */
		if (!half[0] && !half[1])
			half[1] = bpf_cpu_to_be64(1);
		if (!half[0] && half[1] == bpf_cpu_to_be64(0xffff00000000))
			half[1] = bpf_cpu_to_be64(0xffff7f000001);
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
 * Who else has the socket would read what comes by the new connection by splice(2), or by TCP_ZEROCOPY_RECEIVE, which no
 * hook sees. So nobody may have it who would have to fall for that network.
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
	    !file_is_shared(file) || !file_is_above(file, net, TG_NODEMOTE | TG_NONETDEMOTE))
		return 0;
	return deny(subject_current(), &n, -EPERM);
}

SEC("lsm.s/socket_connect")
int BPF_PROG(hook_socket_connect, struct socket *sock, struct sockaddr *name, int len)
{
	struct net_peer p = {};
	u16 family = 0;
	int err;

	if (!net_peer_at(name, &p)) {
		bpf_probe_read_kernel(&family, sizeof(family), name);
		if (family == AF_NETLINK)
			return modify_netlink(names_others(name));
		if (family == AF_UNIX)
			tx_take_turn();
		return 0;
	}
	count_query(TG_C_SOCKET);
	err = modify_net(&p, -EPERM);
	if (!err)
		err = observe_net(&p, TG_OP_CONNECT);
	/* it may have fallen further while it waited */
	if (!err)
		err = modify_net(&p, -EPERM);
	return err ? err : connects_alone(address(sock->sk), net_level(&p));
}

/* A datagram that was begun before (MSG_MORE) goes where it was to go then. */
static __always_inline bool net_peer_begun(struct sock *sk, struct net_peer *p)
{
	struct udp_sock *u = CAST(struct udp_sock, address(sk));

	if (sk->sk_type != SOCK_DGRAM || sk->sk_protocol != IPPROTO_UDP || !u->pending)
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
	/* who speaks from an address of this machine's own network is believed as that */
	if (!err) {
		struct net_peer own = { .family = p.family };

		net_own(sk, &own);
		if (own.known)
			err = modify_net(&own, -EIO);
	}
	if (!err) {
		struct net_peer begun = { .family = p.family };

		if (net_peer_begun(sk, &begun))
			err = modify_net(&begun, -EIO);
	}
	return err;
}

/* TCP Fast Open connects without the connect hook. */
static __always_inline int send(struct sock *sk, struct msghdr *msg)
{
	struct net_peer named = { .family = sk->__sk_common.skc_family };
	int err;

	/* the kernel passes what it hears there on to all who listen for devices */
	if (named.family == AF_NETLINK)
		return modify_netlink(
			sk->sk_protocol == NETLINK_KOBJECT_UEVENT ||
			(msg->msg_name &&
			 names_others(CAST(struct sockaddr, address(msg->msg_name)))));
	if (named.family != AF_INET && named.family != AF_INET6)
		return 0;
	if (subject_level(subject_current()) >= policy.net_highest &&
	    !(msg->msg_flags & MSG_FASTOPEN))
		return 0;
	if (msg->msg_name)
		net_peer_at(CAST(struct sockaddr, address(msg->msg_name)), &named);
	err = modify_peers(sk, &named);
	if (err || !(msg->msg_flags & MSG_FASTOPEN))
		return err;
	count_query(TG_C_SOCKET);
	err = observe_net(&named, TG_OP_CONNECT);
	if (!err)
		err = modify_peers(sk, &named);
	return err ? err : connects_alone(address(sk), net_level(&named));
}

/*
 * On a Unix socket it is part of the guard (guard.h): a connection that the sender
 * could not make any more.
 */
static __noinline int send_any(struct msghdr *msg, struct sock *sk)
{
	if (sk->__sk_common.skc_family != AF_UNIX)
		return send(sk, msg);
	tx.family = AF_UNIX;
	/* who sends from the top needs no turn (unix.h), the daemon among them */
	if (sk->sk_type == SOCK_DGRAM && level_current() != policy.top)
		tx_take_turn();
	else
		tx_is_recent(); /* once it is not, nothing of this is asked */
	return tx.guard_armed ? guard_unix(sk, -EIO) : 0;
}

/* Of every message, before it is sent. `ctx`: of the hook */
static __always_inline int sends(u64 *ctx, struct sock *sk)
{
	struct msghdr *msg = (struct msghdr *)ctx[1];

	if (msg->msg_flags & MSG_SPLICE_PAGES && sk->__sk_common.skc_family == AF_UNIX &&
	    lends_memory(address(msg)))
		return refuse_loan();
	if (tx_idle_for(sk->__sk_common.skc_family))
		return 0;
	return send_any(msg, sk);
}

SEC("lsm.s/socket_sendmsg")
int BPF_PROG(hook_socket_sendmsg, struct socket *sock)
{
	struct sock *sk = sock->sk;

	return sk ? sends(ctx, sk) : 0;
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
	u64 file = address(sock->file);

	if (!file || !file_is_shared(file) || level_modifies() >= policy.top)
		return 0;
	return modify_ends(file);
}

SEC("lsm/socket_setsockopt")
int BPF_PROG(hook_socket_setsockopt, struct socket *sock)
{
	return changes_ends(sock);
}

SEC("lsm/socket_shutdown")
int BPF_PROG(hook_socket_shutdown, struct socket *sock)
{
	return changes_ends(sock);
}

#endif
