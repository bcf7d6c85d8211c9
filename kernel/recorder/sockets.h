/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets: addresses of the internet's, files and peers of Unix's. Which network's level counts is not decided here. */
#ifndef TIDEGATE_RECORDER_SOCKETS_H
#define TIDEGATE_RECORDER_SOCKETS_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock___recorder {
	struct pid *sk_peer_pid;
	struct socket *sk_socket;
};
#pragma clang attribute pop

static __always_inline void map_v4(u8 *addr, u32 be)
{
	addr[10] = addr[11] = 0xff;
	__builtin_memcpy(addr + 12, &be, 4);
}

/* The socket's own address and its peer's. */
static __always_inline void note_sock(struct sock *sk, struct tr_note *n)
{
	n->family = sk->__sk_common.skc_family;
	n->sock_type = sk->sk_type;
	if (n->family == AF_INET) {
		map_v4(n->addr, sk->__sk_common.skc_daddr);
		map_v4(n->bound, sk->__sk_common.skc_rcv_saddr);
		if ((sk->__sk_common.skc_rcv_saddr & 0xff) == 127)
			n->flags |= TR_SERVER;
	} else if (n->family == AF_INET6) {
		u64 half[2];

		bpf_probe_read_kernel(n->addr, 16, &sk->__sk_common.skc_v6_daddr);
		bpf_probe_read_kernel(n->bound, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		__builtin_memcpy(half, n->bound, sizeof(half));
		if (!half[0] && half[1] == bpf_cpu_to_be64(1))
			n->flags |= TR_SERVER;
	}
}

/* The address that a call names, at a kernel address; false: not of the internet's. */
static __always_inline bool noinet_address(void *at, struct tr_note *n)
{
	u16 family = 0, port = 0;

	bpf_probe_read_kernel(&family, sizeof(family), at);
	if (family != AF_INET && family != AF_INET6)
		return false;
	bpf_probe_read_kernel(&port, sizeof(port), at + 2);
	n->family = family;
	n->port = bpf_ntohs(port);
	__builtin_memset(n->addr, 0, sizeof(n->addr));
	if (family == AF_INET) {
		u32 be = 0;

		bpf_probe_read_kernel(&be, sizeof(be), at + 4);
		map_v4(n->addr, be);
	} else {
		bpf_probe_read_kernel(n->addr, 16, at + 8);
	}
	return true;
}

static __always_inline bool is_inet(u8 family)
{
	return family == AF_INET || family == AF_INET6;
}

SEC("fexit/security_socket_create")
int BPF_PROG(socket_create, int family, int type, int protocol, int kern)
{
	struct tr_note n = {
		.what = TR_ACCESS,
		.op = TG_OP_SOCKET,
		.class = TG_C_SOCKET,
		.flags = TR_READS,
		.family = family,
		.sock_type = type & 0xf,
		.refused = RESULT(ctx),
	};
	bool raw = is_inet(family) && (type & 0xf) == SOCK_RAW;

	if (kern || !(raw || family == AF_PACKET || family == AF_VSOCK || family == AF_XDP))
		return 0;
	return tell(&n);
}

SEC("fexit/security_socket_connect")
int BPF_PROG(socket_connect, struct socket *sock, struct sockaddr *address)
{
	struct tr_note n = {
		.what = TR_ACCESS,
		.op = TG_OP_CONNECT,
		.class = TG_C_SOCKET,
		.flags = TR_READS | TR_WRITES,
		.refused = RESULT(ctx),
	};

	if (!noinet_address(address, &n))
		return 0;
	n.sock_type = sock->type;
	return tell(&n);
}

static __always_inline int hear(struct socket *sock, u8 op, s32 refused)
{
	struct tr_note n = { .what = TR_ACCESS,
			     .op = op,
			     .class = TG_C_SOCKET,
			     .flags = TR_READS,
			     .refused = refused };
	struct sock *sk = sock->sk;

	if (!sk || !is_inet(sk->__sk_common.skc_family))
		return 0;
	note_sock(sk, &n);
	return tell(&n);
}

SEC("fexit/security_socket_accept")
int BPF_PROG(socket_accept, struct socket *sock)
{
	return hear(sock, TG_OP_ACCEPT, RESULT(ctx));
}

SEC("fexit/security_socket_recvmsg")
int BPF_PROG(socket_recvmsg, struct socket *sock)
{
	return hear(sock, TG_OP_RECEIVE, RESULT(ctx));
}

SEC("fexit/security_socket_sendmsg")
int BPF_PROG(socket_sendmsg, struct socket *sock, struct msghdr *msg)
{
	struct tr_note n = {
		.what = TR_ACCESS,
		.op = TG_OP_SEND,
		.class = TG_C_SOCKET,
		.flags = TR_WRITES,
		.refused = RESULT(ctx),
	};
	struct sock *sk = sock->sk;

	if (!sk || !is_inet(sk->__sk_common.skc_family))
		return 0;
	note_sock(sk, &n);
	if (msg->msg_name)
		noinet_address(msg->msg_name, &n);
	return tell(&n);
}

/* The inode number of a socket's descriptor; 0: nobody has one. */
static __always_inline u64 socket_inode(u64 sk)
{
	struct socket *sock = CAST(struct sock___recorder, sk)->sk_socket;
	struct file *file = sock ? CAST(struct socket, address(sock))->file : NULL;

	return file ? CAST(struct inode, address(CAST(struct file, address(file))->f_inode))
			       ->i_ino :
		      0;
}

/* The peer: the file that names it, and the socket that listens there. */
static __noinline int tell_unix(u64 other, u64 channel, u8 type, s32 refused)
{
	struct tr_note n = {
		.what = TR_ACCESS,
		.op = TG_OP_CONNECT,
		.class = TG_C_UNIX,
		.flags = TR_WRITES,
		.channel = channel,
		.family = AF_UNIX,
		.sock_type = type,
		.refused = refused,
		.always = type == SOCK_STREAM,
	};
	struct dentry *d = CAST(struct unix_sock, other)->path.dentry;
	struct pid *pid = CAST(struct sock___recorder, other)->sk_peer_pid;

	if (d) {
		n.dentry = address(d);
		n.inode = address(CAST(struct dentry, address(d))->d_inode);
	}
	if (pid)
		n.peer = CAST(struct pid, address(pid))->numbers[0].nr;
	return tell(&n);
}

SEC("fexit/security_unix_stream_connect")
int BPF_PROG(unix_stream_connect, struct sock *sock, struct sock *other, struct sock *newsk)
{
	u64 channel = address(sock);
	u8 one = 1;
	s32 refused = RESULT(ctx);

	if (!refused)
		bpf_map_update_elem(&connections, &channel, &one, BPF_ANY);
	return tell_unix(address(other), channel, SOCK_STREAM, refused);
}

SEC("fexit/security_unix_may_send")
int BPF_PROG(unix_may_send, struct socket *sock, struct socket *other)
{
	struct sock *sk = other->sk;

	return sk ? tell_unix(address(sk), 0, SOCK_DGRAM, RESULT(ctx)) : 0;
}

/* Whoever lets go of it, it is no channel any more. */
SEC("fexit/security_sk_free")
int BPF_PROG(sk_free, struct sock *sk)
{
	struct tr_note n = { .what = TR_CLOSED, .channel = address(sk), .always = 1 };

	if (sk->__sk_common.skc_family != AF_UNIX || bpf_map_delete_elem(&connections, &n.channel))
		return 0;
	return tell(&n);
}

#endif
