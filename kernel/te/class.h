/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Classes of objects: inode_mode_to_security_class(), socket_type_to_security_class() of security/selinux/hooks.c. */
#ifndef TIDEGATE_TE_CLASS_H
#define TIDEGATE_TE_CLASS_H

#include "te_classes.h"
#include "lib/inode_kind.h"
#include "lib/verifier.h"

/* The class of a file. */
static __always_inline u32 te_class_of_mode(u32 mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return SECCLASS_DIR;
	case S_IFCHR:
		return SECCLASS_CHR_FILE;
	case S_IFBLK:
		return SECCLASS_BLK_FILE;
	case S_IFIFO:
		return SECCLASS_FIFO_FILE;
	case S_IFLNK:
		return SECCLASS_LNK_FILE;
	case S_IFSOCK:
		return SECCLASS_SOCK_FILE;
	}
	return SECCLASS_FILE;
}

static __always_inline u32 te_inet_class(u32 type, u32 protocol)
{
	switch (type) {
	case SOCK_STREAM:
	case SOCK_SEQPACKET:
		if (protocol == IPPROTO_IP || protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP)
			return SECCLASS_TCP_SOCKET;
		return protocol == IPPROTO_SCTP ? SECCLASS_SCTP_SOCKET : SECCLASS_RAWIP_SOCKET;
	case SOCK_DGRAM:
		if (protocol == IPPROTO_IP || protocol == IPPROTO_UDP)
			return SECCLASS_UDP_SOCKET;
		if (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6)
			return SECCLASS_ICMP_SOCKET;
		return SECCLASS_RAWIP_SOCKET;
	case 6: /* SOCK_DCCP, where the kernel's SELinux knows its packets */
		return bpf_core_type_exists(struct dccp_hdr) ? SECCLASS_DCCP_SOCKET :
							       SECCLASS_RAWIP_SOCKET;
	}
	return SECCLASS_RAWIP_SOCKET;
}

/* Of netlink sockets by their protocols, NETLINK_*; of other families by their numbers, PF_*. 0: the general class. */
static const u8 te_netlink_classes[32] = {
	[0] = SECCLASS_NETLINK_ROUTE_SOCKET,      [4] = SECCLASS_NETLINK_TCPDIAG_SOCKET,
	[5] = SECCLASS_NETLINK_NFLOG_SOCKET,      [6] = SECCLASS_NETLINK_XFRM_SOCKET,
	[7] = SECCLASS_NETLINK_SELINUX_SOCKET,    [8] = SECCLASS_NETLINK_ISCSI_SOCKET,
	[9] = SECCLASS_NETLINK_AUDIT_SOCKET,      [10] = SECCLASS_NETLINK_FIB_LOOKUP_SOCKET,
	[11] = SECCLASS_NETLINK_CONNECTOR_SOCKET, [12] = SECCLASS_NETLINK_NETFILTER_SOCKET,
	[14] = SECCLASS_NETLINK_DNRT_SOCKET,      [15] = SECCLASS_NETLINK_KOBJECT_UEVENT_SOCKET,
	[16] = SECCLASS_NETLINK_GENERIC_SOCKET,   [18] = SECCLASS_NETLINK_SCSITRANSPORT_SOCKET,
	[20] = SECCLASS_NETLINK_RDMA_SOCKET,      [21] = SECCLASS_NETLINK_CRYPTO_SOCKET,
};

static const u8 te_family_classes[64] = {
	[3] = SECCLASS_AX25_SOCKET,        [4] = SECCLASS_IPX_SOCKET,
	[5] = SECCLASS_APPLETALK_SOCKET,   [6] = SECCLASS_NETROM_SOCKET,
	[8] = SECCLASS_ATMPVC_SOCKET,      [9] = SECCLASS_X25_SOCKET,
	[11] = SECCLASS_ROSE_SOCKET,       [12] = SECCLASS_DECNET_SOCKET,
	[15] = SECCLASS_KEY_SOCKET,        [17] = SECCLASS_PACKET_SOCKET,
	[20] = SECCLASS_ATMSVC_SOCKET,     [21] = SECCLASS_RDS_SOCKET,
	[23] = SECCLASS_IRDA_SOCKET,       [24] = SECCLASS_PPPOX_SOCKET,
	[26] = SECCLASS_LLC_SOCKET,        [29] = SECCLASS_CAN_SOCKET,
	[30] = SECCLASS_TIPC_SOCKET,       [31] = SECCLASS_BLUETOOTH_SOCKET,
	[32] = SECCLASS_IUCV_SOCKET,       [33] = SECCLASS_RXRPC_SOCKET,
	[34] = SECCLASS_ISDN_SOCKET,       [35] = SECCLASS_PHONET_SOCKET,
	[36] = SECCLASS_IEEE802154_SOCKET, [37] = SECCLASS_CAIF_SOCKET,
	[38] = SECCLASS_ALG_SOCKET,        [39] = SECCLASS_NFC_SOCKET,
	[40] = SECCLASS_VSOCK_SOCKET,      [41] = SECCLASS_KCM_SOCKET,
	[42] = SECCLASS_QIPCRTR_SOCKET,    [43] = SECCLASS_SMC_SOCKET,
	[44] = SECCLASS_XDP_SOCKET,        [45] = SECCLASS_MCTP_SOCKET,
};

__noinline u32 te_socket_class(u32 family, u32 type, u32 protocol)
{
	u32 class;

	if (family == AF_INET || family == AF_INET6)
		return te_inet_class(type, protocol);
	if (family == AF_UNIX)
		return type == SOCK_DGRAM || type == SOCK_RAW ? SECCLASS_UNIX_DGRAM_SOCKET :
								SECCLASS_UNIX_STREAM_SOCKET;
	if (family == AF_NETLINK) {
		class = te_netlink_classes[BOUND(protocol, 32)];
		return class && protocol < 32 ? class : SECCLASS_NETLINK_SOCKET;
	}
	class = te_family_classes[BOUND(family, 64)];
	return class && family < 64 ? class : SECCLASS_SOCKET;
}

/* The class of a socket's inode. */
static __always_inline u32 te_class_of_socket(u64 inode)
{
	u64 at = inode - bpf_core_field_offset(struct socket_alloc, vfs_inode);
	struct sock *sk = CAST(struct sock, address(CAST(struct socket_alloc, at)->socket.sk));

	return sk ? te_socket_class(sk->__sk_common.skc_family, sk->sk_type, sk->sk_protocol) :
		    SECCLASS_SOCKET;
}

/* The class of what an inode is. */
__noinline u32 te_class_of_inode(u64 inode)
{
	struct inode *i = CAST(struct inode, inode);
	u64 magic = i->i_sb->s_magic;

	if (magic == SOCKFS_MAGIC)
		return te_class_of_socket(inode);
	return fs_is_anonymous(magic) ? SECCLASS_ANON_INODE : te_class_of_mode(i->i_mode);
}

#endif
