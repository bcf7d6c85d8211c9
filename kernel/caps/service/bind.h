/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an authorised request (authorise.h) leaves on its connection, and what the reply to it binds. */
#ifndef TIDEGATE_CAPS_SERVICE_BIND_H
#define TIDEGATE_CAPS_SERVICE_BIND_H

#include "caps/service/authorise.h"

/* What is bound for a layer of a room's. */
static __noinline bool caps_bound_active(struct caps_room *r, struct caps_bound *b, u32 slot, u32 k)
{
	struct caps_bound_key key = { .conn = r->conn, .slot = slot };
	struct caps_active *a = &b->first;

	key.layer = r->layers[BOUND(k, CAPS_LAYERS)];
	if (b->count) {
		if (bpf_map_update_elem(&caps_service_actives, &key, &caps_no_active, BPF_ANY))
			return false;
		a = bpf_map_lookup_elem(&caps_service_actives, &key);
	}
	if (!a)
		return false;
	a->session = r->session;
	a->session_number = r->session_number;
	a->class = CAPS_OF_SERVICE;
	a->object = r->objects[BOUND(k, CAPS_LAYERS)];
	a->rights = a->wanted = r->rights[BOUND(k, CAPS_LAYERS)];
	a->counted = ~0u;
	a->epoch = a->checked = r->epoch;
	if (r->expires[BOUND(k, CAPS_LAYERS)])
		a->until =
			bpf_ktime_get_boot_ns() + r->expires[BOUND(k, CAPS_LAYERS)] * 1000000000ull;
	a->uses = r->uses[BOUND(k, CAPS_LAYERS)];
	a->limited = !!a->uses;
	a->layers[0] = key.layer;
	a->answers[0] = r->answers[BOUND(k, CAPS_LAYERS)];
	a->count = 1;
	return true;
}

/* Fills a slot with what a room's request asked for. */
__noinline bool caps_bound_fill(struct caps_room *r __arg_nonnull, u32 slot)
{
	struct caps_bound_key key = { .conn = r->conn, .slot = slot };
	u32 i, at = caps_operand_at(r, r->binds),
	       len = r->lens[BOUND(r->binds - 1, CAPS_WIRE_OPERANDS)];
	struct caps_bound *b;

	if (bpf_map_update_elem(&caps_bounds, &key, &caps_bound_none, BPF_ANY))
		return false;
	b = bpf_map_lookup_elem(&caps_bounds, &key);
	if (!b)
		return false;
	b->number = caps_request_of(r)->id;
	b->session = r->session;
	b->session_number = r->session_number;
	__sync_fetch_and_add(&caps_session_at(r->session)->actives, 1);
	b->domain = r->domain;
	b->serial = r->serial;
	b->len = len;
	bpf_for(i, 0, (len + 7) / 8)
		*(u64 *)(b->name + BOUND(i, 32) * 8) = caps_head_word(r, at + i * 8);
	bpf_for(i, 0, r->count) {
		if (!(r->giving >> (i & 31) & 1))
			continue;
		if (!caps_bound_active(r, b, slot, i))
			return false;
		b->layers[BOUND(b->count, CAPS_LAYERS)] = r->layers[BOUND(i, CAPS_LAYERS)];
		b->services[BOUND(b->count, CAPS_LAYERS)] = r->services[BOUND(i, CAPS_LAYERS)];
		b->count++;
	}
	return true;
}

/* Is it the same request that was asked before, and is not answered? By another one's number a reply would be taken for its own. */
__noinline bool caps_bound_is(struct caps_room *r __arg_nonnull, u32 slot)
{
	struct caps_bound *b = caps_bound_at(r->conn, slot);
	u32 i, n = 0, at = caps_operand_at(r, r->binds),
	       len = r->lens[BOUND(r->binds - 1, CAPS_WIRE_OPERANDS)];
	struct caps_active *a;

	if (!b || b->len != len || b->domain != r->domain || b->session_number != r->session_number)
		return false;
	bpf_for(i, 0, (len + 7) / 8)
		if (*(u64 *)(b->name + BOUND(i, 32) * 8) != caps_head_word(r, at + i * 8))
			return false;
	bpf_for(i, 0, r->count) {
		if (!(r->giving >> (i & 31) & 1))
			continue;
		a = caps_service_active_of(b, r->conn, slot, r->layers[BOUND(i, CAPS_LAYERS)]);
		if (!a || a->rights != r->rights[BOUND(i, CAPS_LAYERS)])
			return false;
		n++;
	}
	return n == b->count;
}

/* In its callers, which have as many frames above them as there may be. */
static __always_inline void caps_slot_freed(struct caps_conn *c, u32 slot)
{
	caps_bound_forget(c->number, slot);
	caps_slot_left(c, slot);
}

/* Remembers what the reply is to bind. */
static __noinline u32 caps_request_remembered(struct caps_room *r, struct caps_conn *c)
{
	struct caps_number_key key = { .conn = r->conn, .number = caps_request_of(r)->id };
	u32 *asked = bpf_map_lookup_elem(&caps_numbers, &key), slot;

	if (asked)
		return caps_bound_is(r, *asked) ? 0 : CAPS_REQUEST;
	if (c->asked >= CAPS_ASKED || caps_session_at(r->session)->actives >= CAPS_ACTIVES_OF_ONE)
		return CAPS_TOO_MANY;
	slot = caps_slot_taken(c);
	if (slot >= CAPS_SLOTS)
		return CAPS_TOO_MANY;
	if (!caps_bound_fill(r, slot) ||
	    bpf_map_update_elem(&caps_numbers, &key, &slot, BPF_NOEXIST)) {
		caps_slot_freed(c, slot);
		return CAPS_TOO_MANY;
	}
	__sync_fetch_and_add(&c->asked, 1);
	return 0;
}

/* A request that was found to be authorised is made: its uses are counted, and what the reply is to bind is remembered. */
static __noinline u32 caps_request_made(struct caps_room *r, struct caps_conn *c)
{
	u32 why = r->limited ? caps_request_all(r, true) : 0;

	if (!why && r->binds)
		why = caps_request_remembered(r, c);
	r->judged = 0;
	r->why = why;
	return why;
}

/* A slot's object gets a descriptor; false: there is something that this stands for already, which does not change. */
static __noinline bool caps_bound_named(struct caps_conn *c, struct caps_bound *b, u32 slot,
					u64 descriptor)
{
	struct caps_number_key key = { .conn = c->number,
				       .number = descriptor,
				       .is_descriptor = 1 };

	b->number = descriptor;
	if (bpf_map_update_elem(&caps_numbers, &key, &slot, BPF_NOEXIST))
		return false;
	/* now it is known that nothing else is */
	b->is_descriptor = 1;
	return true;
}

/* What a reply binds, or drops. */
static __noinline int caps_reply_made(struct caps_conn *c, u64 id, u32 flags, u64 descriptor)
{
	struct caps_number_key key = { .conn = c->number, .number = id };
	struct caps_bound *b;
	u32 slot;

	b = caps_bound_by(c->number, id, false, &slot);
	/* of two replies to it one does */
	if (b && !bpf_map_delete_elem(&caps_numbers, &key)) {
		__sync_fetch_and_sub(&c->asked, 1);
		if (!(flags & CAPS_WIRE_BOUND) || !caps_bound_named(c, b, slot, descriptor))
			caps_slot_freed(c, slot);
	}
	if (flags & CAPS_WIRE_DROPPED && caps_bound_by(c->number, descriptor, true, &slot))
		caps_slot_freed(c, slot);
	return 0;
}

#endif
