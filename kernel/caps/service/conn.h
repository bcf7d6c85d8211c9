/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections to services. One that a governed task makes to a socket where a service is, as any of its layers describes it, has a
 * state from then on, whoever uses it.
 */
#ifndef TIDEGATE_CAPS_SERVICE_CONN_H
#define TIDEGATE_CAPS_SERVICE_CONN_H

#include "caps/service/request_ctx.h"

#define CAPS_CONNS (1 << 14)
#define CAPS_SLOTS 1024 /* objects that a connection may have bound */
#define CAPS_ASKED 64   /* requests of a connection to bind one that are not answered yet */
#define CAPS_SERVED 4   /* domains of which a connection remembers what they call a service there */

/* One direction of a connection. */
struct caps_way {
	u64 seen; /* bytes that went by it */
	u64 left; /* bytes of the message's payload that come next */
	u64 turn; /* whose turn it is: caps_turn(); 0: nobody's */
	u32 have; /* bytes of the next head that came already */
	u32 lost; /* nothing that comes is looked at any more */
};

struct caps_served {
	u32 version; /* odd while this is written */
	u32 pad;
	u64 serial;                /* the domain's; 0: of senders that are not governed */
	u32 services[CAPS_LAYERS]; /* of each of its layers; from 1, 0: none */
};

struct caps_conn {
	u64 sock;           /* which connected, while it is in a slot, */
	u64 holder;         /* and whose the slot is, also before and after; 0: it is free */
	u64 spilled;        /* so many connections whose slot this would be are in the map */
	u64 number;         /* never used again */
	u64 session_number; /* of the session that connected, */
	u32 session;        /* and its place */
	u32 asked;
	struct caps_way requests, replies; /* of streams */
	u64 verified;                      /* bytes of requests that the service may read, */
	u64 taken;                         /* those that it has read, */
	u64 reader;                        /* and whose turn that is, */
	u64 wants;                         /* in which so many may be received; */
	u64 unsure;                        /* fewer may have been read */
	u64 slots[CAPS_SLOTS / 64];        /* that are used, */
	u32 slots_used;                    /* and up to which any was */
	/* by a policy that is permissive, what cannot be told is let through, and all that follows */
	u32 open;
	struct caps_served served[CAPS_SERVED];
	u8 reply[64]; /* of streams: the head of the reply that comes */
};

/* Of streams: the head of the request that comes. */
struct caps_coming {
	u8 head[CAPS_HEAD_ROOM];
};

/*
 * By the address of the sock that was connected, which does not go before the other end: in the slot for it, or where that is
 * another's in the map, which takes five times as long to find.
 */
#define CAPS_CONN_BITS 9
struct caps_conn caps_conn_slots[1 << CAPS_CONN_BITS] GLOBAL_OF(caps);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, CAPS_CONNS);
	__type(key, u64);
	__type(value, struct caps_conn);
} caps_conns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, CAPS_CONNS);
	__type(key, u64);
	__type(value, struct caps_coming);
} caps_comings SEC(".maps");

u32 caps_conns_count GLOBAL_OF(caps);
u64 caps_conns_made GLOBAL_OF(caps);

static const struct caps_conn caps_conn_none;
static const struct caps_coming caps_coming_none;

static __always_inline struct caps_conn *caps_conn_slot(u64 sk)
{
	return &caps_conn_slots[BOUND(sk * 0x9e3779b97f4a7c15ull >> (64 - CAPS_CONN_BITS),
				      1 << CAPS_CONN_BITS)];
}

/* The connection that a sock made; NULL: it is none that is monitored. */
static __always_inline struct caps_conn *caps_conn_of(u64 sk)
{
	struct caps_conn *slot = caps_conn_slot(sk);

	if (!sk)
		return NULL;
	if (slot->sock == sk)
		return slot;
	return slot->spilled ? bpf_map_lookup_elem(&caps_conns, &sk) : NULL;
}

/* The sock at the other end, which stays there until this one goes. */
static __always_inline u64 caps_peer_of(u64 sk)
{
	return address(CAST(struct unix_sock, sk)->peer);
}

static __always_inline bool caps_is_unix(u64 sk)
{
	return CAST(struct sock, sk)->__sk_common.skc_family == AF_UNIX;
}

#endif
