/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: sockets. selinux_socket_*(), socket_type_to_security_class() of security/selinux. */
#ifndef TIDEGATE_TE_NET_H
#define TIDEGATE_TE_NET_H

#include "lib/sockaddr.h"
#include "te/inode_sid.h"

/*
 * A socket's labels: sk_security_struct of security/selinux. Without, it was made by somebody who is not governed. A
 * connection's end is what listened for it: the storage is cloned.
 */
struct te_sock {
	u64 sid;
	u64 to;   /* of a client's end: the SID of the socket that it was connected to */
	u64 peer; /* of a server's: of the one that connected; for object managers in user space */
	u32 class;
	u32 bind_port; /* the port that it took by name_bind, 0: none */
	u32 peer_port; /* that it is connected to by name_connect, 0: none */
	u32 number;    /* of the policy that last allowed these; 0: there is nothing of them */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct te_sock);
} te_socks SEC(".maps");

/* What a task's socket of a class will be: socket_sockcreate_sid(). */
static __always_inline u64 te_socket_new(struct te_who *who, u32 class)
{
	struct te_made made = { .source = who->sid, .target = who->sid, .class = class };

	return who->subject->socket_sid ? who->subject->socket_sid :
					  te_new_label(TE_TRANSITION, &made);
}

SEC("lsm/socket_create")
int BPF_PROG(te_socket_create, int family, int type, int protocol, int kern)
{
	struct tg_note n = { .op = TG_OP_SOCKET, .class = TG_C_SOCKET };
	struct te_who who = te_me();
	u32 class;
	u64 sid;

	if (!who.subject || kern)
		return 0;
	class = te_socket_class(family, type, protocol);
	sid = te_socket_new(&who, class);
	n.port = family;
	n.detail = type;
	return sid ? te_avc_has_perm(who.sid, sid, class, SOCKET__CREATE, &n) : -EACCES;
}

/* A socket's inode has its label, too: for what is done to it as a file. */
static __always_inline int te_socket_label(struct socket *sock, u64 sid)
{
	u64 at = address(sock) - bpf_core_field_offset(struct socket_alloc, socket) +
		 bpf_core_field_offset(struct socket_alloc, vfs_inode);
	struct tg_note n = { .op = TG_OP_SOCKET, .class = TG_C_SOCKET };
	struct tg_given_key key = given_key(CAST(struct inode, at));

	return !te_has_room() || te_given_put(&key, sid) ? te_full(&n) : 0;
}

SEC("lsm/socket_post_create")
int BPF_PROG(te_socket_post_create, struct socket *sock, int family, int type, int protocol,
	     int kern)
{
	struct te_who who = te_me();
	struct te_sock fresh = {};
	struct sock *sk = sock->sk;

	if (!who.subject || kern || !sk)
		return 0;
	fresh.class = te_socket_class(family, type, protocol);
	fresh.sid = te_socket_new(&who, fresh.class);
	if (!fresh.sid)
		return -EACCES;
	if (!STORAGE_MADE(bpf_sk_storage_get, &te_socks, sk, &fresh))
		return -ENOMEM;
	return te_socket_label(sock, fresh.sid);
}

/* A socket as it is asked about. */
static __always_inline struct te_sock te_sock_of(struct sock *sk)
{
	struct te_sock *known = bpf_sk_storage_get(&te_socks, sk, 0, 0), s = {};
	struct sock *k;

	if (known)
		return *known;
	k = CAST(struct sock, address(sk));
	s.class = te_socket_class(k->__sk_common.skc_family, k->sk_type, k->sk_protocol);
	return s;
}

/* sock_has_perm() */
static __always_inline int te_sk_has_perm(struct sock *sk, u32 request, struct te_sock *found,
					  struct tg_note *n)
{
	struct te_who who = te_me();

	found->class = 0;
	if (!who.subject || !sk)
		return 0;
	*found = te_sock_of(sk);
	n->port = CAST(struct sock, address(sk))->__sk_common.skc_family;
	return te_avc_has_perm(who.sid, found->sid, found->class, request, n);
}

static __always_inline int te_sock_has_perm(struct socket *sock, u32 request, u8 op,
					    struct te_sock *found)
{
	struct tg_note n = { .op = op, .class = TG_C_SOCKET };

	return te_sk_has_perm(sock->sk, request, found, &n);
}

/* The SID of a port, by which it is named: security_port_sid(). */
#define TE_SID_PORT 9
__noinline u64 te_port_sid(u32 class, u32 port)
{
	u32 p = te_tables(policy_seqno()), at, table;

	USES_ARENA();
	if (!p)
		return TE_UNGOVERNED;
	at = class == SECCLASS_TCP_SOCKET  ? 0 :
	     class == SECCLASS_UDP_SOCKET  ? 1 :
	     class == SECCLASS_DCCP_SOCKET ? 2 :
					     3;
	table = ARENA_PTR(u32, TE(p)->ports)[at];
	at = table ? ARENA_PTR(u16, table)[port & 0xffff] : 0;
	return at ? ARENA_PTR(u64, TE(p)->port_sids)[at] : te_initial(p, TE_SID_PORT);
}

/* Of an address: security_node_sid(). */
#define TE_SID_NODE 12

__noinline u64 te_node_sid(struct inet_address *a)
{
	u32 p = te_tables(policy_seqno()), i, k, count;

	USES_ARENA();
	if (!a || !p)
		return TE_UNGOVERNED;
	count = TE(p)->nodes_count;
	bpf_for(i, 0, count) {
		ARENA(struct te_node) *node = &ARENA_PTR(struct te_node, TE(p)->nodes)[i];
		u32 differs = 0, words = a->family == AF_INET ? 1 : 4;

		if (node->family != (a->family == AF_INET ? 4 : 6))
			continue;
		for (k = 0; k < 4; k++)
			if (k < words)
				differs |= (a->words[k] & node->mask[k]) ^ node->address[k];
		if (!differs)
			return node->sid;
	}
	return te_initial(p, TE_SID_NODE);
}

/*
 * A connection and a port that were allowed by an earlier policy: are they by this one? Asked at the first use under each
 * policy.
 */
__noinline int te_bound_asked(struct te_sock *s, struct tg_note *n)
{
	u32 number = policy_seqno();
	int err = 0;

	if (!s || !n)
		return -EACCES;
	if (s->bind_port)
		err = te_avc_has_perm(s->sid, te_port_sid(s->class, s->bind_port), s->class,
				      SOCKET__NAME_BIND, n);
	if (!err && s->peer_port)
		err = te_avc_has_perm(s->sid, te_port_sid(s->class, s->peer_port), s->class,
				      TCP_SOCKET__NAME_CONNECT, n);
	if (!err && s->to)
		err = te_avc_has_perm(s->sid, s->to, SECCLASS_UNIX_STREAM_SOCKET,
				      UNIX_STREAM_SOCKET__CONNECTTO, n);
	if (!err)
		s->number = number;
	return err;
}

/* May the current task use a socket, and what that was bound and connected to? */
static __always_inline int te_bound_sock_asked(struct socket *sock, u32 request, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_SOCKET };
	struct sock *sk = sock->sk;
	struct te_sock s, *known;
	int err = te_sk_has_perm(sk, request, &s, &n);

	if (err || !s.class || !s.number || s.number == policy_seqno() || !sk)
		return err;
	known = bpf_sk_storage_get(&te_socks, sk, 0, 0);
	return known ? verdict_of(te_bound_asked(known, &n)) : 0;
}

static __always_inline bool te_has_ports(u32 class)
{
	return class == SECCLASS_TCP_SOCKET || class == SECCLASS_UDP_SOCKET ||
	       class == SECCLASS_SCTP_SOCKET || class == SECCLASS_DCCP_SOCKET;
}

/* A socket has taken a port, or is about to be connected. */
static __always_inline void te_bound(struct sock *sk, u32 bind_port, u32 peer_port)
{
	struct te_sock *known = sk ? bpf_sk_storage_get(&te_socks, sk, 0, 0) : NULL;

	if (!known)
		return;
	if (bind_port)
		known->bind_port = bind_port;
	if (peer_port)
		known->peer_port = peer_port;
	known->number = policy_seqno();
}

/* The range of ports that the kernel chooses of, which need no name: inet_get_local_port_range(). */
#define PORTS_LOW 32768
#define PORTS_HIGH 60999

/* May a socket that was asked about take an address? */
static __always_inline int te_bind_asked(struct sock *sk, struct te_sock *s, u64 at, int len,
					 struct tg_note *n)
{
	u32 family = CAST(struct sock, address(sk))->__sk_common.skc_family;
	struct inet_address a = {};
	int err = 0;

	if (family != AF_INET && family != AF_INET6)
		return 0;
	/* __inet_bind() takes AF_UNSPEC for AF_INET */
	if (!read_inet_address(at, len, &a) && (a.family || family != AF_INET || len < 16))
		return -EINVAL;
	if (!a.family)
		a.family = AF_INET;
	n->port = a.port;
	if (a.port && (a.port < PORTS_LOW || a.port > PORTS_HIGH) && (te_has_ports(s->class))) {
		err = te_avc_has_perm(s->sid, te_port_sid(s->class, a.port), s->class,
				      SOCKET__NAME_BIND, n);
		if (err)
			return err;
		te_bound(sk, a.port, 0);
	}
	/* node_bind, whose bit is the same in each class that has it */
	if (te_has_ports(s->class) || s->class == SECCLASS_RAWIP_SOCKET ||
	    s->class == SECCLASS_ICMP_SOCKET)
		err = te_avc_has_perm(s->sid, te_node_sid(&a), s->class, TCP_SOCKET__NODE_BIND, n);
	return err;
}

SEC("lsm/socket_bind")
int BPF_PROG(te_socket_bind, struct socket *sock, struct sockaddr *at, int len)
{
	struct tg_note n = { .op = TG_OP_SOCKET, .class = TG_C_SOCKET };
	struct te_sock s;
	int err = te_sk_has_perm(sock->sk, SOCKET__BIND, &s, &n);

	return err || !s.class ? err : te_bind_asked(sock->sk, &s, address(at), len, &n);
}

/* May a socket that was asked about be connected to an address? */
static __always_inline int te_connect_asked(struct sock *sk, struct te_sock *s, u64 at, int len,
					    struct tg_note *n)
{
	struct inet_address a = {};
	int err;

	if (s->class != SECCLASS_TCP_SOCKET && s->class != SECCLASS_SCTP_SOCKET &&
	    s->class != SECCLASS_DCCP_SOCKET)
		return 0;
	if (!read_inet_address(at, len, &a))
		return 0;
	n->port = a.port;
	err = te_avc_has_perm(s->sid, te_port_sid(s->class, a.port), s->class,
			      TCP_SOCKET__NAME_CONNECT, n);
	if (!err)
		te_bound(sk, 0, a.port);
	return err;
}

SEC("lsm/socket_connect")
int BPF_PROG(te_socket_connect, struct socket *sock, struct sockaddr *at, int len)
{
	struct tg_note n = { .op = TG_OP_CONNECT, .class = TG_C_SOCKET };
	struct te_sock s;
	int err = te_sk_has_perm(sock->sk, SOCKET__CONNECT, &s, &n);

	return err || !s.class ? err : te_connect_asked(sock->sk, &s, address(at), len, &n);
}

#define TE_SCTP_ADDRESSES 4096 /* more than a message or an option has */

/* Addresses that SCTP takes by options, and with a message: selinux_sctp_bind_connect(). */
SEC("lsm/sctp_bind_connect")
int BPF_PROG(te_sctp_bind_connect, struct sock *sk, int optname, struct sockaddr *addresses,
	     int len)
{
	bool binds = optname == SCTP_SET_PEER_PRIMARY_ADDR || optname == SCTP_PRIMARY_ADDR ||
		     optname == SCTP_SOCKOPT_BINDX_ADD;
	struct tg_note n = { .op = TG_OP_SOCKET, .class = TG_C_SOCKET };
	u64 at = address(addresses), end = at + (u32)len;
	struct te_sock s;
	u32 i;
	int err = te_sk_has_perm(sk, binds ? SOCKET__BIND : SOCKET__CONNECT, &s, &n);

	if (err || !s.class)
		return err;
	bpf_for(i, 0, TE_SCTP_ADDRESSES) {
		u16 family = read_kernel_u64(at);
		u32 size = family == AF_INET6 ? 28 : 16;

		if (at == end)
			return 0;
		if (at + size > end || (family && family != AF_INET && family != AF_INET6))
			return -EINVAL;
		err = binds ? te_bind_asked(sk, &s, at, size, &n) :
			      te_connect_asked(sk, &s, at, size, &n);
		if (err)
			return err;
		at += size;
	}
	return -EINVAL;
}

SEC("lsm/socket_listen")
int BPF_PROG(te_socket_listen, struct socket *sock)
{
	struct te_sock s;

	return te_sock_has_perm(sock, SOCKET__LISTEN, TG_OP_SOCKET, &s);
}

SEC("lsm/socket_accept")
int BPF_PROG(te_socket_accept, struct socket *sock, struct socket *newsock)
{
	struct sock *sk = sock->sk;
	int err = te_bound_sock_asked(sock, SOCKET__ACCEPT, TG_OP_ACCEPT);
	struct te_sock *known = sk ? bpf_sk_storage_get(&te_socks, sk, 0, 0) : NULL;

	return err || !known ? err : te_socket_label(newsock, known->sid);
}

/* A message that connects is asked about as connect(2) is. */
static __always_inline int te_first_message(struct socket *sock, struct msghdr *msg)
{
	struct tg_note n = { .op = TG_OP_CONNECT, .class = TG_C_SOCKET };
	struct sock *sk = sock->sk;
	struct te_sock s;
	int err;

	if (!sk || !message_connects(sk, msg))
		return 0;
	err = te_sk_has_perm(sk, SOCKET__CONNECT, &s, &n);
	return err || !s.class ?
		       err :
		       te_connect_asked(sk, &s, address(msg->msg_name), msg->msg_namelen, &n);
}

SEC("lsm/socket_sendmsg")
int BPF_PROG(te_socket_sendmsg, struct socket *sock, struct msghdr *msg)
{
	int err;

	if (!te_me().subject)
		return 0;
	err = te_bound_sock_asked(sock, SOCKET__WRITE, TG_OP_SEND);
	return err ? err : te_first_message(sock, msg);
}

SEC("lsm/socket_recvmsg")
int BPF_PROG(te_socket_recvmsg, struct socket *sock)
{
	return te_me().subject ? te_bound_sock_asked(sock, SOCKET__READ, TG_OP_RECEIVE) : 0;
}

SEC("lsm/socket_getsockname")
int BPF_PROG(te_socket_getsockname, struct socket *sock)
{
	struct te_sock s;

	return te_sock_has_perm(sock, SOCKET__GETATTR, TG_OP_SOCKET, &s);
}

SEC("lsm/socket_getpeername")
int BPF_PROG(te_socket_getpeername, struct socket *sock)
{
	struct te_sock s;

	return te_sock_has_perm(sock, SOCKET__GETATTR, TG_OP_SOCKET, &s);
}

SEC("lsm/socket_setsockopt")
int BPF_PROG(te_socket_setsockopt, struct socket *sock)
{
	struct te_sock s;

	return te_sock_has_perm(sock, SOCKET__SETOPT, TG_OP_SOCKET, &s);
}

SEC("lsm/socket_getsockopt")
int BPF_PROG(te_socket_getsockopt, struct socket *sock)
{
	struct te_sock s;

	return te_sock_has_perm(sock, SOCKET__GETOPT, TG_OP_SOCKET, &s);
}

SEC("lsm/socket_shutdown")
int BPF_PROG(te_socket_shutdown, struct socket *sock)
{
	struct te_sock s;

	return te_sock_has_perm(sock, SOCKET__SHUTDOWN, TG_OP_SOCKET, &s);
}

#endif
