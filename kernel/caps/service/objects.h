/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is bound on a connection to a service (conn.h): objects that were asked for, and those that descriptors stand for. */
#ifndef TIDEGATE_CAPS_SERVICE_OBJECTS_H
#define TIDEGATE_CAPS_SERVICE_OBJECTS_H

#include "caps/active.h"
#include "caps/service/conn.h"

/*
 * An object of a service that was asked for, or is bound. Of each layer that gave it there is a struct caps_active: that of the first
 * one here, as mostly there is no other, and those of others in a map.
 */
struct caps_bound {
	u64 number; /* the request's, or the descriptor */
	u64 session_number;
	u32 session; /* place */
	u32 domain;  /* that asked for it, */
	u64 serial;  /* and its serial */
	u32 is_descriptor;
	u32 count; /* layers */
	u32 layers[CAPS_LAYERS];
	u32 services[CAPS_LAYERS]; /* what each calls the service */
	u32 len;
	u32 pad;
	struct caps_active first;
	u8 name[CAPS_WIRE_NAME + 1];
};

struct caps_bound_key {
	u64 conn; /* number */
	u32 slot;
	u32 layer; /* of a struct caps_active, not the first; else 0 */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, struct caps_bound_key);
	__type(value, struct caps_bound);
} caps_bounds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, struct caps_bound_key);
	__type(value, struct caps_active);
} caps_service_actives SEC(".maps");

struct caps_number_key {
	u64 conn;
	u64 number;
	u64 is_descriptor;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, struct caps_number_key);
	__type(value, u32); /* slot */
} caps_numbers SEC(".maps");

static const struct caps_bound caps_bound_none;

/* Does a session that something was bound in still run? Images of others may be gone. */
static __always_inline bool caps_session_is(u32 place, u64 number)
{
	struct caps_session *s = caps_session_at(place);

	return s->started && s->number == number;
}

static __always_inline void caps_count_down(u32 place, u64 number)
{
	if (caps_session_is(place, number))
		__sync_fetch_and_sub(&caps_session_at(place)->actives, 1);
}

static __always_inline struct caps_bound *caps_bound_at(u64 conn, u32 slot)
{
	struct caps_bound_key key = { .conn = conn, .slot = slot };

	return bpf_map_lookup_elem(&caps_bounds, &key);
}

static __always_inline struct caps_active *caps_service_active_of(struct caps_bound *b, u64 conn,
								  u32 slot, u32 layer)
{
	struct caps_bound_key key = { .conn = conn, .slot = slot, .layer = layer };

	if (b->count && b->layers[0] == layer)
		return &b->first;
	return bpf_map_lookup_elem(&caps_service_actives, &key);
}

static __always_inline bool caps_bound_is_for(struct caps_bound *b, u64 number, bool is_descriptor)
{
	return b->number == number && b->is_descriptor == is_descriptor;
}

/* What a descriptor stands for, or what a request asked for; NULL: nothing. */
static __noinline struct caps_bound *caps_bound_by(u64 conn, u64 number, bool is_descriptor,
						   u32 *slot)
{
	struct caps_number_key key = { .conn = conn,
				       .number = number,
				       .is_descriptor = is_descriptor };
	u32 *found = bpf_map_lookup_elem(&caps_numbers, &key);
	struct caps_bound *b;

	if (!found)
		return NULL;
	*slot = *found;
	b = caps_bound_at(conn, *found);
	return b && caps_bound_is_for(b, number, is_descriptor) ? b : NULL;
}

/* Forgets what is in a slot, but not that it is used. */
__noinline int caps_bound_forget(u64 conn, u32 slot)
{
	struct caps_bound_key key = { .conn = conn, .slot = slot };
	struct caps_bound *b = bpf_map_lookup_elem(&caps_bounds, &key);
	struct caps_number_key number = { .conn = conn };
	u32 i, *of;

	if (!b)
		return 0;
	bpf_for(i, 1, b->count) {
		key.layer = b->layers[BOUND(i, CAPS_LAYERS)];
		bpf_map_delete_elem(&caps_service_actives, &key);
	}
	number.number = b->number;
	number.is_descriptor = b->is_descriptor;
	of = bpf_map_lookup_elem(&caps_numbers, &number);
	if (of && *of == slot)
		bpf_map_delete_elem(&caps_numbers, &number);
	caps_count_down(b->session, b->session_number);
	key.layer = 0;
	bpf_map_delete_elem(&caps_bounds, &key);
	return 0;
}

/* A slot that nothing is in, taken; CAPS_SLOTS: there is none. */
static __noinline u32 caps_slot_taken(struct caps_conn *c)
{
	u32 i, k;

	bpf_for(i, 0, CAPS_SLOTS / 64) {
		u64 *word = &c->slots[BOUND(i, CAPS_SLOTS / 64)], now = *word;

		if (now == ~0ull)
			continue;
		bpf_for(k, 0, 64) {
			u64 bit = 1ull << k;

			if (now & bit || __sync_fetch_and_or(word, bit) & bit)
				continue;
			/* two who write it at once write what is at most 63 too small: rounded up */
			if (c->slots_used < (i + 1) * 64)
				c->slots_used = (i + 1) * 64;
			return i * 64 + k;
		}
	}
	return CAPS_SLOTS;
}

static __always_inline void caps_slot_left(struct caps_conn *c, u32 slot)
{
	__sync_fetch_and_and(&c->slots[BOUND(slot / 64, CAPS_SLOTS / 64)], ~(1ull << (slot & 63)));
}

#endif
