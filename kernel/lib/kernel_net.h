/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel types of networks and sockets, as kernel_types.h has the others. */
#ifndef TIDEGATE_LIB_KERNEL_NET_H
#define TIDEGATE_LIB_KERNEL_NET_H

#include "lib/kernel_types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	u8 bytes[16];
};
struct in_ifaddr {
	struct in_ifaddr *ifa_next;
	u32 ifa_local; /* big endian */
};
struct in_device {
	struct in_ifaddr *ifa_list;
};
struct inet6_ifaddr {
	struct in6_addr addr;
	struct list_head if_list;
};
struct inet6_dev {
	struct list_head addr_list;
};
struct net_device {
	struct list_head dev_list;
	struct in_device *ip_ptr;
	struct inet6_dev *ip6_ptr;
};
struct net {
	struct user_namespace *user_ns;
	struct list_head dev_base_head;
};
struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct {
		struct net *net;
	} skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	struct {
		s64 counter;
	} skc_cookie;
	u16 skc_dport; /* big endian */
	u16 skc_num;
};
struct sk_buff {
	struct sk_buff *next;
	struct sock *sk;
	char cb[48];
	unsigned int len;
	unsigned int data_len;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
};
struct skb_frag {
	u64 netmem;
	unsigned int len;
	unsigned int offset;
};
struct skb_shared_info {
	u8 nr_frags;
	struct skb_frag frags[17];
};
struct unix_skb_parms {
	u32 consumed;
};
struct page {
	u64 flags;
	struct list_head lru;
	struct address_space *mapping;
};
struct bio_vec {
	struct page *bv_page;
};
struct sk_buff_head {
	struct sk_buff *next;
};
struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
	u16 sk_protocol;
	struct sk_buff_head sk_receive_queue;
	struct pid *sk_peer_pid;
	struct socket *sk_socket;
	struct sock_reuseport *sk_reuseport_cb;
	int sk_rx_dst_ifindex;
	u8 sk_shutdown;
	u8 sk_kern_sock : 1;
	u8 sk_userlocks : 4;
	u32 sk_max_ack_backlog;
};

struct sock_reuseport {
	u16 num_socks;
	struct sock *socks[0];
};
struct socket {
	short type;
	struct file *file;
	struct sock *sk;
};
struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};
struct flowi4 {
	u32 daddr;
};
struct flowi6 {
	struct in6_addr daddr;
};
struct flowi {
	union {
		struct flowi4 ip4;
		struct flowi6 ip6;
	} u;
};
struct inet_cork_full {
	struct flowi fl;
};
struct inet_sock {
	u32 inet_saddr;
	struct inet_cork_full cork;
};
struct udp_sock {
	struct inet_sock inet;
	int pending;
};

struct netlink_sock {
	u32 dst_portid;
	u32 dst_group;
};
struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};
struct unix_address {
	refcount_t refcnt;
	int len;
	struct sockaddr_un name[0];
};
struct unix_vertex;
struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct path path;
	struct sock *peer;
	struct unix_vertex *vertex; /* of one that a message carries */
};

#pragma clang attribute pop

#endif
