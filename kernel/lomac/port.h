/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets of one user that share a port (SO_REUSEPORT). One program chooses which of them gets what comes, whoever sets it. */
#ifndef TIDEGATE_LOMAC_PORT_H
#define TIDEGATE_LOMAC_PORT_H

#include "lomac/shared.h"

#define PORT_SOCKETS 64 /* of one port that are looked at: of more one may be higher */

/*
 * Has somebody above the level one of the sockets? One that keeps its level whatever it hears does
 * not count (shared.h).
 */
__noinline bool port_is_higher(u64 sk, u32 level)
{
	struct sock_reuseport *group =
		CAST(struct sock_reuseport, address(CAST(struct sock, sk)->sk_reuseport_cb));
	u64 at = address(group) + bpf_core_field_offset(struct sock_reuseport, socks);
	u32 count = address(group) ? group->num_socks : 0, i;

	if (count > PORT_SOCKETS)
		return true;
	bpf_for(i, 0, count) {
		struct sock *other = CAST(struct sock, read_kernel_u64(at + i * 8));
		u64 file = address(CAST(struct socket, address(other->sk_socket))->file);

		if (file && file_is_above(file, level, TG_NODEMOTE))
			return true;
	}
	return false;
}

static __noinline int modify_port(u64 sk)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = {
		.op = TG_OP_SETATTR, .class = TG_C_SOCKET, .source = ~0u, .reason = TG_R_CHANNEL
	};
	u8 level = subject_level(s);

	return level < policy.top && port_is_higher(sk, level) ? deny(s, &n, -EPERM) : 0;
}

/* Does the option set that program, or take it away? Then below the top of one's own sockets alone. */
static __always_inline int sets_port(struct socket *sock, int level, int option)
{
	if (level != SOL_SOCKET ||
	    (option != SO_ATTACH_REUSEPORT_CBPF && option != SO_ATTACH_REUSEPORT_EBPF &&
	     option != SO_DETACH_REUSEPORT_BPF))
		return 0;
	return verdict_of(modify_port(address(sock->sk)));
}

#endif
