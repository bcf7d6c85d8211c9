/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the `te` model: messages on netlink, by their types. selinux_netlink_send() of
 * security/selinux/hooks.c, and nlmsgtab.c.
 */
#ifndef TIDEGATE_TE_NETLINK_H
#define TIDEGATE_TE_NETLINK_H

#include "te/net.h"

enum {
	TE_NL_UNKNOWN,
	TE_NL_READ,
	TE_NL_WRITE,
	TE_NL_RELAY,
	TE_NL_READPRIV,
	TE_NL_TTY_AUDIT,
};

/* Of routing the types come by fours: RTM_NEW…, DEL…, GET…, SET…, of which not all are there. */
#define TE_NL_NEW_DEL_GET(n) [n] = TE_NL_WRITE, [n + 1] = TE_NL_WRITE, [n + 2] = TE_NL_READ

/* A line has what is one thing in the kernel's headers. */
// clang-format off
static const u8 te_nl_route[128] = {
	TE_NL_NEW_DEL_GET(16), [19] = TE_NL_WRITE, /* LINK */
	TE_NL_NEW_DEL_GET(20), TE_NL_NEW_DEL_GET(24), TE_NL_NEW_DEL_GET(28), TE_NL_NEW_DEL_GET(32), /* to RULE */
	TE_NL_NEW_DEL_GET(36), TE_NL_NEW_DEL_GET(40), TE_NL_NEW_DEL_GET(44), TE_NL_NEW_DEL_GET(48), /* to ACTION */
	[52] = TE_NL_WRITE, [58] = TE_NL_READ, [62] = TE_NL_READ, /* PREFIX, MULTICAST, ANYCAST */
	[64] = TE_NL_WRITE, [66] = TE_NL_READ, [67] = TE_NL_WRITE, /* NEIGHTBL */
	TE_NL_NEW_DEL_GET(72), [78] = TE_NL_READ, [79] = TE_NL_WRITE, /* ADDRLABEL, DCB */
	TE_NL_NEW_DEL_GET(80), TE_NL_NEW_DEL_GET(84), /* NETCONF, MDB */
	[88] = TE_NL_WRITE, [89] = TE_NL_READ, [90] = TE_NL_READ, /* NSID */
	[92] = TE_NL_READ, [94] = TE_NL_READ, [95] = TE_NL_WRITE, [96] = TE_NL_READ, /* STATS, CACHEREPORT */
	TE_NL_NEW_DEL_GET(100), TE_NL_NEW_DEL_GET(104), [108] = TE_NL_WRITE, [109] = TE_NL_WRITE, /* to LINKPROP */
	TE_NL_NEW_DEL_GET(112), TE_NL_NEW_DEL_GET(116), TE_NL_NEW_DEL_GET(120), /* VLAN to TUNNEL */
};

/* XFRM_MSG_NEWSA, which is 0x10, to XFRM_MSG_GETDEFAULT. */
static const u8 te_nl_xfrm[64] = {
	TE_NL_NEW_DEL_GET(0x10), TE_NL_NEW_DEL_GET(0x13),
	[0x16 ... 0x1e] = TE_NL_WRITE, [0x1f ... 0x20] = TE_NL_READ, [0x21] = TE_NL_WRITE,
	[0x22 ... 0x23] = TE_NL_READ, [0x24] = TE_NL_WRITE, [0x25 ... 0x26] = TE_NL_READ,
	[0x27] = TE_NL_WRITE, [0x28] = TE_NL_READ,
};

/* AUDIT_GET, which is 1000, to AUDIT_GET_FEATURE. */
static const u8 te_nl_audit[32] = {
	[0] = TE_NL_READ, [1] = TE_NL_WRITE, [2] = TE_NL_READPRIV, [3 ... 4] = TE_NL_WRITE, [5] = TE_NL_RELAY,
	[10] = TE_NL_READ, [11 ... 12] = TE_NL_WRITE, [13] = TE_NL_READPRIV, [14 ... 15] = TE_NL_WRITE,
	[16] = TE_NL_READ, [17] = TE_NL_TTY_AUDIT, [18] = TE_NL_WRITE, [19] = TE_NL_READ,
};
// clang-format on

/* What a type of message does; of sock_diag 18 to 20 tell, and 21 destroys. */
static __always_inline u32 te_message_does(u32 class, u32 type)
{
	switch (class) {
	case SECCLASS_NETLINK_ROUTE_SOCKET:
		return type < 128 ? te_nl_route[BOUND(type, 128)] : TE_NL_UNKNOWN;
	case SECCLASS_NETLINK_XFRM_SOCKET:
		return type < 64 ? te_nl_xfrm[BOUND(type, 64)] : TE_NL_UNKNOWN;
	case SECCLASS_NETLINK_TCPDIAG_SOCKET:
		return type < 18 || type > 21 ? TE_NL_UNKNOWN :
		       type == 21             ? TE_NL_WRITE :
						TE_NL_READ;
	}
	/* AUDIT_FIRST_USER_MSG, AUDIT_FIRST_USER_MSG2 and what follows them */
	if ((type >= 1100 && type < 1200) || (type >= 2100 && type < 3000))
		return TE_NL_RELAY;
	return type >= 1000 && type < 1032 ? te_nl_audit[BOUND(type - 1000, 32)] : TE_NL_UNKNOWN;
}

static __always_inline bool te_has_messages(u32 class)
{
	return class == SECCLASS_NETLINK_ROUTE_SOCKET || class == SECCLASS_NETLINK_XFRM_SOCKET ||
	       class == SECCLASS_NETLINK_TCPDIAG_SOCKET || class == SECCLASS_NETLINK_AUDIT_SOCKET;
}

/* The policy capability netlink_xperm: messages are asked about one by one, by the permission nlmsg. */
#define TE_CAP_NETLINK_XPERM 9

/* May the current task send a message of a type? */
__noinline int te_message_asked(struct te_query *q, u32 type, struct tg_note *n)
{
	u32 p = te_tables(policy_seqno()), does;

	if (!q || !n || !p)
		return 0;
	if (te_in(TE(p)->capabilities, TE_CAP_NETLINK_XPERM)) {
		q->request = q->class == SECCLASS_NETLINK_AUDIT_SOCKET ?
				     NETLINK_AUDIT_SOCKET__NLMSG :
				     NETLINK_ROUTE_SOCKET__NLMSG;
		return te_single_asked(q, type | TE_MESSAGE, n);
	}
	does = te_message_does(q->class, type);
	switch (does) {
	case TE_NL_READ:
		q->request = NETLINK_ROUTE_SOCKET__NLMSG_READ;
		break;
	case TE_NL_WRITE:
		q->request = NETLINK_ROUTE_SOCKET__NLMSG_WRITE;
		break;
	case TE_NL_RELAY:
		q->request = NETLINK_AUDIT_SOCKET__NLMSG_RELAY;
		break;
	case TE_NL_READPRIV:
		q->request = NETLINK_AUDIT_SOCKET__NLMSG_READPRIV;
		break;
	case TE_NL_TTY_AUDIT:
		q->request = NETLINK_AUDIT_SOCKET__NLMSG_TTY_AUDIT;
		break;
	default:
		return TE(p)->allows_unknown || policy.permissive ? 0 : -EINVAL;
	}
	return te_asked(q->source, q->target, q->class, q->request, n);
}

struct te_message {
	u32 len;
	u16 type;
	u16 flags;
};

#define TE_MESSAGE_HEAD 16

SEC("lsm/netlink_send")
int BPF_PROG(te_netlink_send, struct sock *sk, struct sk_buff *skb)
{
	struct tg_note n = { .op = TG_OP_SEND, .class = TG_C_SOCKET };
	struct te_who who = te_me();
	struct sk_buff *text = CAST(struct sk_buff, address(skb));
	struct te_query q = { .source = who.sid };
	u64 at = address(text->data);
	u32 left = text->len, i, len;
	struct te_message message;
	struct te_sock s;
	int err = 0;

	if (!who.subject)
		return 0;
	s = te_sock_of(sk);
	if (!te_has_messages(s.class))
		return 0;
	q.target = s.sid;
	q.class = s.class;
	n.port = AF_NETLINK;
	bpf_for(i, 0, left / TE_MESSAGE_HEAD) {
		/* as netlink_rcv_skb() does, which reads no further either */
		if (left < TE_MESSAGE_HEAD ||
		    bpf_probe_read_kernel(&message, sizeof(message), (void *)at) ||
		    message.len < TE_MESSAGE_HEAD || message.len > left)
			break;
		err = verdict_of(te_message_asked(&q, message.type, &n));
		len = (message.len + 3) & ~3u;
		if (err || len >= left)
			break;
		left -= len;
		at += len;
	}
	return err;
}

#endif
