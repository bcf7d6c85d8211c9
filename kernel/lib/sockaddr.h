/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of sockets, as the kernel has copied them, and messages that name one. */
#ifndef TIDEGATE_LIB_SOCKADDR_H
#define TIDEGATE_LIB_SOCKADDR_H

#include "lib/bpf.h"

/* The text of an address, which is no string: a name that begins with a 0 is abstract. */
static __always_inline u64 unix_text(u64 addr)
{
	return addr + bpf_core_field_offset(struct unix_address, name) +
	       bpf_core_field_offset(struct sockaddr_un, sun_path);
}

struct inet_address {
	u32 words[4];
	u32 family; /* AF_INET, AF_INET6 */
	u32 port;
};

/* An address of the kernel's copy, which is read as IPv4's unless it is IPv6's; false: of another family, or too short. */
static __always_inline bool read_inet_address(u64 at, int len, struct inet_address *a)
{
	/* two bytes each: the family, and the port in the network's order */
	if (len < 16 || bpf_probe_read_kernel(&a->family, sizeof(a->family), (void *)at))
		return false;
	a->port = bpf_ntohs(a->family >> 16);
	a->family &= 0xffff;
	if (a->family != AF_INET6)
		return !bpf_probe_read_kernel(a->words, 4, (void *)at + 4) && a->family == AF_INET;
	return len >= 24 && !bpf_probe_read_kernel(a->words, 16, (void *)at + 8);
}

/*
 * Does a message connect its socket to the address that it names? TCP connects by a message that asks for it (TCP Fast Open). Each
 * message of MPTCP may: a connection that TCP_FASTOPEN_CONNECT puts off is still put off once an address of no family has ended it.
 * The socket's state says nothing, as another thread may end its connection meanwhile.
 */
static __always_inline bool message_connects(struct sock *sk, struct msghdr *msg)
{
	return msg->msg_name && (msg->msg_flags & MSG_FASTOPEN || sk->sk_protocol == IPPROTO_MPTCP);
}

#endif
