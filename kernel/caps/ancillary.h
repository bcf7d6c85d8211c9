/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a message says besides its content, and a socket of all its messages: where they go, by which way, and what they hand over.
 * A message that connects is asked about here, too: caps_message_asked(), by caps_socket_sendmsg.
 */
#ifndef TIDEGATE_CAPS_ANCILLARY_H
#define TIDEGATE_CAPS_ANCILLARY_H

#include "caps/net.h"

#define CAPS_SCM_FDS 253 /* SCM_MAX_FD */
/* control messages in as much as sysctl net.core.optmem_max could be */
#define CAPS_CONTROLS (1 << 16)

/* Marks what a message hands over as handed over by its sender. */
static __noinline int caps_hands_over(u64 control, u64 len, u32 domain)
{
	struct fdtable *fdt =
		CAST(struct fdtable,
		     CAST(struct files_struct, address(bpf_get_current_task_btf()->files))->fdt);
	struct file **fds = fdt->fd;
	u32 i, k, max = fdt->max_fds;
	u64 at = 0;

	/* another thread may put another one in its place */
	if (CAST(struct files_struct, address(bpf_get_current_task_btf()->files))->count.counter >
	    1)
		caps_hands(domain);
	bpf_for(i, 0, CAPS_CONTROLS) {
		u64 size = read_kernel_u64(control + at), what = read_kernel_u64(control + at + 8);

		if (at + 16 > len || size < 16 || size > len - at)
			break;
		if (what == (1ull | (u64)SCM_RIGHTS << 32)) {
			bpf_for(k, 0, CAPS_SCM_FDS) {
				u64 file = 0;
				u32 fd = read_kernel_u64(control + at + 16 + k * 4);

				if (16 + k * 4 + 4 > size)
					break;
				if (fd >= max)
					continue;
				bpf_probe_read_kernel(&file, sizeof(file), fds + fd);
				if (file)
					caps_sent(file, domain);
			}
		}
		at += (size + 7) & ~7ull;
	}
	return 0;
}

/*
 * Does a message say by which hosts it is to go? Whoever they are would see what is sent to another: IP_RETOPTS, IPV6_RTHDR and what that
 * was before.
 */
static __noinline bool caps_routes(u64 control, u64 len)
{
	u64 at = 0;
	u32 i;

	bpf_for(i, 0, CAPS_CONTROLS) {
		u64 size = read_kernel_u64(control + at), what = read_kernel_u64(control + at + 8);

		if (at + 16 > len || size < 16 || size > len - at)
			break;
		if (what == (u64)IP_RETOPTS << 32 ||
		    what == (IPPROTO_IPV6 | (u64)IPV6_RTHDR << 32) ||
		    what == (IPPROTO_IPV6 | (u64)IPV6_2292RTHDR << 32))
			return true;
		at += (size + 7) & ~7ull;
	}
	return false;
}

/* The same of all that a socket sends; of flows, which bring options, too. */
SEC("lsm/socket_setsockopt")
int BPF_PROG(caps_socket_setsockopt, struct socket *sock, int level, int option)
{
	bool routes = level == IPPROTO_IP   ? option == IP_OPTIONS :
		      level == IPPROTO_IPV6 ? option == IPV6_RTHDR || option == IPV6_2292RTHDR ||
						      option == IPV6_2292PKTOPTIONS ||
						      option == IPV6_FLOWLABEL_MGR :
					      false;

	return routes && caps_me() ? caps_deny(CAPS_NOBODYS, TG_OP_SOCKET, TG_C_SOCKET) : 0;
}

/* Is it a socket of UDP that has no port yet? */
static __always_inline bool caps_has_no_port(struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_UDP && !sk->__sk_common.skc_num &&
	       (sk->__sk_common.skc_family == AF_INET || sk->__sk_common.skc_family == AF_INET6);
}

/* What a message says besides its content: where it goes, and what it hands over. */
static __noinline int caps_message_asked(struct socket *sock, struct msghdr *msg)
{
	struct caps_question q = {};
	struct sock *sk = sock->sk;

	if (!sk || !caps_begin(&q, caps_class_of_sock(sk), CAPS_CONNECT, 0))
		return 0;
	/* what further messages hand over, or by which way they go, is not to be seen */
	if (msg->msg_name && !caps_sends_one())
		return caps_deny(CAPS_NOBODYS, TG_OP_SEND,
				 q.class == CAPS_UNIX ? TG_C_UNIX : TG_C_SOCKET);
	if (q.class == CAPS_UNIX)
		return msg->msg_controllen ? caps_hands_over(address(msg->msg_control),
							     msg->msg_controllen, q.domain) :
					     0;
	if (msg->msg_controllen && caps_routes(address(msg->msg_control), msg->msg_controllen))
		return caps_deny(CAPS_NOBODYS, TG_OP_SEND, TG_C_SOCKET);
	/* as the kernel will say, once it has chosen a port by which everybody could be heard */
	if (!msg->msg_name)
		return caps_has_no_port(sk) ? -EDESTADDRREQ : 0;
	if (q.class == CAPS_CLASSES)
		return caps_deny(CAPS_NOBODYS, TG_OP_SEND, TG_C_SOCKET);
	if (q.class == CAPS_UDP)
		return caps_inet_asked(sk, address(msg->msg_name), msg->msg_namelen, &q,
				       TG_OP_SEND);
	return message_connects(sk, msg) ? caps_inet_connects(sock, address(msg->msg_name),
							      msg->msg_namelen, &q, TG_OP_SEND) :
					   0;
}

static __always_inline int caps_sends(struct socket *sock, struct msghdr *msg)
{
	struct sock *sk = sock->sk;

	return msg->msg_name || msg->msg_controllen || (sk && caps_has_no_port(sk)) ?
		       caps_message_asked(sock, msg) :
		       0;
}

SEC("lsm/socket_sendmsg")
int BPF_PROG(caps_socket_sendmsg, struct socket *sock, struct msghdr *msg)
{
	return caps_sends(sock, msg);
}

#endif
