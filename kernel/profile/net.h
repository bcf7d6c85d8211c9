/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the profile model: sockets. Those of other families than unix are decided about by
 * family and type: security/apparmor/net.c.
 */
#ifndef TIDEGATE_PROFILE_NET_H
#define TIDEGATE_PROFILE_NET_H

#include "profile/unix.h"

/* May the current task use sockets of this kind so? `kind` is the type, and the protocol above it. */
__noinline int net_asked(struct tg_confined *c, u32 family, u32 kind, u32 request, u8 op)
{
	struct tg_note note = { .op = op, .class = TG_C_SOCKET };
	struct tg_who who;
	u32 try, state, table;

	if (!c)
		return -EACCES;
	for (try = 0; try < PROFILE_TRIES; try++) {
		struct tg_perms perms;

		who = who_of(c);
		if (!who.profile)
			return 0;
		state = class_state(who.profile, PROFILE_CLASS_NET);
		if (!state)
			return 0;
		table = ARENA_PTR(struct tg_profile, who.profile)->policy.table;
		state = feed_u16(table, feed_u16(table, state, family), kind);
		/* of unix sockets a rule on addresses leads on */
		if (family == AF_UNIX)
			state = feed_u16(table, state, kind >> 16);
		if (is_simply_allowed(&who, table, state, request) && policy_seqno() == who.number)
			return 0;
		perms = perms_of(profile_perms(table, state, false));
		if (policy_seqno() != who.number)
			continue;
		note.port = family;
		note.detail = kind;
		return profile_decide(&who, perms, request, -EACCES, &note);
	}
	return profile_refuse(request, TG_R_BUSY, -EAGAIN, &note);
}

SEC("lsm/socket_create")
int BPF_PROG(profile_socket_create, int family, int type, int protocol, int kern)
{
	struct tg_confined *c = profile_subjects_current();

	if (kern || !c)
		return 0;
	return verdict_of(
		net_asked(c, family, (type & 0xffff) | protocol << 16, MAY_CREATE_, TG_OP_SOCKET));
}

/* What a task does with a socket that it has. */
struct tg_socket_call {
	u32 request;
	u8 op;
	u8 command; /* enum tg_unix_command, */
	u16 detail; /* and what it is about */
};

static __always_inline int socket_asked(struct tg_confined *c, struct sock *sk,
					struct tg_socket_call call)
{
	struct sock *s = CAST(struct sock, address(sk));
	u32 family = s->__sk_common.skc_family;
	struct tg_unix u = {};

	if (family != AF_UNIX)
		return verdict_of(net_asked(c, family, s->sk_type, call.request, call.op));
	u.sk = address(sk);
	u.request = call.request;
	u.op = call.op;
	u.command = call.command;
	u.detail = call.detail;
	return verdict_of(unix_asked(c, &u));
}

SEC("lsm/socket_bind")
int BPF_PROG(profile_socket_bind, struct socket *sock, struct sockaddr *address_, int len)
{
	struct tg_confined *c = profile_subjects_current();
	struct sock *sk = sock->sk;

	if (!c || !sk)
		return 0;
	if (sk->__sk_common.skc_family == AF_UNIX)
		return unix_binds(sk, c, address(address_), len);
	return socket_asked(c, sk,
			    (struct tg_socket_call){ .request = MAY_BIND_, .op = TG_OP_SOCKET });
}

/* A unix socket's connection is asked about where both ends are known. */
SEC("lsm/socket_connect")
int BPF_PROG(profile_socket_connect, struct socket *sock)
{
	struct tg_confined *c = profile_subjects_current();
	struct sock *sk = sock->sk;

	if (!c || !sk || sk->__sk_common.skc_family == AF_UNIX)
		return 0;
	return socket_asked(
		c, sk, (struct tg_socket_call){ .request = MAY_CONNECT_, .op = TG_OP_CONNECT });
}

static __always_inline int socket_called(struct socket *sock, struct tg_socket_call call)
{
	struct tg_confined *c = profile_subjects_current();
	struct sock *sk = sock->sk;

	return c && sk ? socket_asked(c, sk, call) : 0;
}

SEC("lsm/socket_listen")
int BPF_PROG(profile_socket_listen, struct socket *sock, int backlog)
{
	return socket_called(sock, (struct tg_socket_call){
					   .request = MAY_LISTEN_,
					   .op = TG_OP_SOCKET,
					   .command = UNIX_LISTEN,
					   .detail = backlog,
				   });
}

SEC("lsm/socket_accept")
int BPF_PROG(profile_socket_accept, struct socket *sock)
{
	return socket_called(sock,
			     (struct tg_socket_call){ .request = MAY_ACCEPT_, .op = TG_OP_ACCEPT });
}

SEC("lsm/socket_getsockname")
int BPF_PROG(profile_socket_getsockname, struct socket *sock)
{
	return socket_called(
		sock, (struct tg_socket_call){ .request = MAY_GETATTR_, .op = TG_OP_SOCKET });
}

SEC("lsm/socket_getpeername")
int BPF_PROG(profile_socket_getpeername, struct socket *sock)
{
	return socket_called(
		sock, (struct tg_socket_call){ .request = MAY_GETATTR_, .op = TG_OP_SOCKET });
}

SEC("lsm/socket_getsockopt")
int BPF_PROG(profile_socket_getsockopt, struct socket *sock, int level, int option)
{
	return socket_called(sock, (struct tg_socket_call){
					   .request = MAY_GETOPT_,
					   .op = TG_OP_SOCKET,
					   .command = UNIX_OPTION,
					   .detail = option,
				   });
}

/* An option may have a unix socket named by the kernel as it sends or connects. */
SEC("lsm/socket_setsockopt")
int BPF_PROG(profile_socket_setsockopt, struct socket *sock, int level, int option)
{
	struct tg_socket_call call = { .request = MAY_SETOPT_,
				       .op = TG_OP_SOCKET,
				       .command = UNIX_OPTION };
	struct tg_confined *c = profile_subjects_current();
	struct sock *sk = sock->sk;
	int err;

	if (!c || !sk)
		return 0;
	call.detail = option;
	err = sk->__sk_common.skc_family == AF_UNIX ? unix_take(sk, c) : 0;
	return err ? err : socket_asked(c, sk, call);
}

SEC("lsm/socket_shutdown")
int BPF_PROG(profile_socket_shutdown, struct socket *sock)
{
	return socket_called(sock,
			     (struct tg_socket_call){ .request = MAY_DELETE_, .op = TG_OP_SOCKET });
}

/*
 * Messages. Attached only while a profile has rules by which a socket may be made, but not be sent or
 * received by. A unix socket is asked about as it is connected, or datagram by datagram (unix.h).
 */
static __always_inline int message_asked(struct socket *sock, u32 request, u8 op)
{
	struct tg_confined *c = profile_subjects_current();
	struct sock *sk = sock->sk;

	if (!c || !sk || sk->__sk_common.skc_family == AF_UNIX)
		return 0;
	return socket_asked(c, sk, (struct tg_socket_call){ .request = request, .op = op });
}

SEC("lsm/socket_sendmsg")
int BPF_PROG(profile_socket_sendmsg, struct socket *sock, struct msghdr *msg)
{
	struct sock *sk = sock->sk;
	u32 request = MAY_WRITE_;

	if (sk && message_connects(sk, msg))
		request |= MAY_CONNECT_;
	return message_asked(sock, request, TG_OP_SEND);
}

SEC("lsm/socket_recvmsg")
int BPF_PROG(profile_socket_recvmsg, struct socket *sock)
{
	return message_asked(sock, MAY_READ_, TG_OP_RECEIVE);
}

/* A socket that somebody sends (file.h). */
static __noinline int socket_received(struct tg_confined *c, struct file *file, u32 request)
{
	struct socket *sock = bpf_sock_from_file(file);
	struct sock *sk = sock ? sock->sk : NULL;

	if (!sk)
		return 0;
	if (sk->__sk_common.skc_family == AF_UNIX)
		return unix_received(sk, c, request);
	return socket_asked(c, sk,
			    (struct tg_socket_call){ .request = request, .op = TG_OP_RECEIVE_FD });
}

#endif
