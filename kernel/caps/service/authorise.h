/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Authorisation of a request to a service: crates/policy/src/caps/model/service.rs says what has to hold. A room (hooks.h)
 * has its head and operands. What is found is 0, or why it is refused.
 */
#ifndef TIDEGATE_CAPS_SERVICE_AUTHORISE_H
#define TIDEGATE_CAPS_SERVICE_AUTHORISE_H

#include "caps/service/objects.h"

/* Objects' ids: of the image that describes the service, the service's number from 0, and the object's name. */
#define CAPS_ID_SERVICE (CAPS_ID_PATH + 4)

static __always_inline struct caps_wire_request *caps_request_of(struct caps_room *r)
{
	return (struct caps_wire_request *)r->head;
}

static __always_inline u64 caps_head_word(struct caps_room *r, u32 at)
{
	return *(u64 *)(r->head + BOUND(at, CAPS_HEAD));
}

/* Bytes of head and operands, by the first 16 of them; 0: there is no such request. */
static __always_inline u32 caps_request_size(const void *head)
{
	const struct caps_wire_request *q = head;
	u32 len = q->operands_len;

	if (q->operands > CAPS_WIRE_OPERANDS || len > CAPS_WIRE_OPERANDS_LEN || len & 7)
		return 0;
	return q->length < sizeof(*q) + len ? 0 : sizeof(*q) + len;
}

/* Has a word a byte that is 0? */
static __always_inline bool caps_has_zero(u64 word)
{
	return (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull;
}

/* A name: no byte of it is 0, and all of those that fill it up to 8. */
__noinline bool caps_name_is_good(struct caps_room *r __arg_nonnull, u32 at, u32 len)
{
	u32 i, rest = len & 7;

	for_each_index(i, len / 8)
		if (caps_has_zero(caps_head_word(r, at + i * 8)))
			return false;
	if (rest) {
		u64 word = caps_head_word(r, at + len - rest), behind = ~0ull << rest * 8;

		return !(word & behind) && !caps_has_zero(word | behind);
	}
	return len && len <= CAPS_WIRE_NAME;
}

/* Where the operand after one begins; 0: there is none. */
__noinline u32 caps_operand_read(struct caps_room *r __arg_nonnull, u32 i, u32 at)
{
	struct caps_wire_operand *o = (struct caps_wire_operand *)(r->head + BOUND(at, CAPS_HEAD));
	u32 len = o->len, kind = o->kind, end = at + sizeof(*o) + ((len + 7) & ~7u);

	if (end > r->len || o->zero || o->none || len > CAPS_WIRE_NAME)
		return 0;
	r->kinds[BOUND(i, CAPS_WIRE_OPERANDS)] = kind;
	r->at[BOUND(i, CAPS_WIRE_OPERANDS)] = at + sizeof(*o);
	r->lens[BOUND(i, CAPS_WIRE_OPERANDS)] = len;
	if (kind == CAPS_WIRE_NAME_OF)
		return caps_name_is_good(r, at + sizeof(*o), len) ? end : 0;
	return (kind == CAPS_WIRE_NUMBER || kind == CAPS_WIRE_DESCRIPTOR) && len == 8 ? end : 0;
}

/* Finds the operands; false: what there is is no request. */
__noinline bool caps_request_read(struct caps_room *r __arg_nonnull)
{
	u32 i, at = sizeof(struct caps_wire_request);

	r->len = caps_request_size(r->head);
	if (!r->len)
		return false;
	for_each_index(i, caps_request_of(r)->operands) {
		if (at + sizeof(struct caps_wire_operand) > r->len)
			return false;
		at = caps_operand_read(r, i, at);
		if (!at)
			return false;
	}
	return at == r->len;
}

/* Is an operand, from 1, of this kind? */
static __always_inline bool caps_operand_is(struct caps_room *r, u32 operand, u32 kind)
{
	return operand && operand <= caps_request_of(r)->operands &&
	       r->kinds[BOUND(operand - 1, CAPS_WIRE_OPERANDS)] == kind;
}

static __always_inline u32 caps_operand_at(struct caps_room *r, u32 operand)
{
	return r->at[BOUND(operand - 1, CAPS_WIRE_OPERANDS)];
}

/* Is it the same name? */
static __noinline bool caps_names_are_same(struct caps_room *r, u32 one, u32 other)
{
	u32 i, a = caps_operand_at(r, one), b = caps_operand_at(r, other);
	u32 len = r->lens[BOUND(one - 1, CAPS_WIRE_OPERANDS)];

	if (len != r->lens[BOUND(other - 1, CAPS_WIRE_OPERANDS)])
		return false;
	bpf_for(i, 0, (len + 7) / 8)
		if (caps_head_word(r, a + i * 8) != caps_head_word(r, b + i * 8))
			return false;
	return true;
}

/* What a layer calls the operation: struct caps_operation; 0: nothing. `service` counts from 1. */
static __noinline u32 caps_operation_of(u32 layer, u32 service, u32 number)
{
	ARENA(struct caps_image) * image;
	ARENA(struct caps_service) * s;
	u32 low = 0, high, i;

	USES_ARENA();
	image = ARENA_PTR(struct caps_image, ARENA_PTR(struct caps_subject, layer)->image);
	if (!service || service > image->services_count)
		return 0;
	s = ARENA_PTR(struct caps_service, image->services) + (service - 1);
	high = s->count;
	/* mostly they are numbered from 1 */
	i = number - 1;
	if (i < high &&
	    ARENA_PTR(struct caps_operation, s->operations + i * sizeof(struct caps_operation))
			    ->number == number)
		return s->operations + i * sizeof(struct caps_operation);
	for_each_index(i, 16) {
		u32 middle = (low + high) / 2,
		    at = s->operations + middle * sizeof(struct caps_operation), has;

		if (low >= high)
			break;
		has = ARENA_PTR(struct caps_operation, at)->number;
		if (has == number)
			return at;
		if (has < number)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* What a layer's capabilities for a service's objects are found by; 0: it has none. */
static __noinline u32 caps_service_automaton(u32 layer, u32 service)
{
	ARENA(struct caps_subject) * s;
	u32 i;

	USES_ARENA();
	s = ARENA_PTR(struct caps_subject, layer);
	for_each_index(i, s->services_count) {
		ARENA(struct caps_of_service) *of =
			ARENA_PTR(struct caps_of_service, s->services) + i;

		if (of->service + 1 == service)
			return of->automaton;
	}
	return 0;
}

/* Does a layer of a room's session give `wanted` of an object, which the service calls by this name? */
__noinline u32 caps_service_given(struct caps_room *r __arg_nonnull, u32 layer, u32 service,
				  u64 text, u32 len)
{
	u32 automaton, image, taken = caps_session_at(r->session)->taken;

	USES_ARENA();
	automaton = caps_service_automaton(layer, service);
	image = ARENA_PTR(struct caps_subject, layer)->image;
	r->answer = 0;
	if (automaton)
		r->answer = caps_answer_of(
			automaton,
			automaton_feed(automaton, ARENA_PTR(struct tg_automaton, automaton)->start,
				       text, len));
	r->object =
		caps_object_id(caps_mix(caps_mix(CAPS_ID_SERVICE, image), service - 1), text, len);
	caps_ask(&r->asked, r->wanted, 0);
	r->asked.session = r->session;
	r->asked.epoch = r->epoch;
	caps_ask_layer(&r->asked, r->answer);
	r->denied = r->wanted;
	if (taken & 1 << CAPS_TAKEN_ALL ||
	    (taken && (caps_taken_from(r->session, CAPS_TAKEN_SUBJECT, layer) ||
		       caps_taken_from(r->session, CAPS_TAKEN_OBJECT, r->object))))
		return CAPS_REVOKED;
	r->denied = r->wanted & ~r->asked.given;
	return r->denied ? caps_why_not(&r->asked, r->wanted) : 0;
}

/* Is what a descriptor stands for good for nothing any more? 0, or why. */
static __noinline u32 caps_bound_ended(struct caps_room *r, struct caps_bound *b, u32 slot)
{
	struct caps_active *a;
	u32 i, why;

	if (!caps_session_is(b->session, b->session_number))
		return CAPS_REVOKED;
	for_each_index(i, b->count) {
		a = caps_service_active_of(b, r->conn, slot, b->layers[BOUND(i, CAPS_LAYERS)]);
		why = a ? caps_ended(a) : CAPS_NOT_BOUND;
		if (why)
			return why;
	}
	/*
	 * nor for longer than the connection, for the domain that asked for it; that of the
	 * sender's own domain is the guard's (caps/net.h)
	 */
	a = r->file && b->domain && b->serial != r->serial ?
		    caps_active_of(r->file, b->domain, CAPS_OPENED) :
		    NULL;
	return a ? caps_ended_with(a, r->file, false) : 0;
}

/* An operand that is a descriptor: is it good for `wanted`? `is_own`: the sender has the layer; `counts`: one use is made of it. */
__noinline u32 caps_request_uses(struct caps_room *r __arg_nonnull, u32 layer, u32 service,
				 u32 operand, u32 how)
{
	bool is_own = how & 1, counts = how & 2;
	u32 i = BOUND(operand - 1, CAPS_WIRE_OPERANDS), rights;
	struct caps_active *a;
	struct caps_bound *b;
	bool has;

	r->denied = r->wanted;
	if (!caps_operand_is(r, operand, CAPS_WIRE_DESCRIPTOR))
		return CAPS_REQUEST;
	if (!counts && r->ended[i])
		return r->ended[i];
	if (!counts && r->firsts[i] == layer) {
		has = true;
		rights = r->first_rights[i];
		r->limited |= r->first_limited[i];
	} else {
		b = caps_bound_at(r->conn, r->slots[i]);
		a = b ? caps_service_active_of(b, r->conn, r->slots[i], layer) : NULL;
		if (counts)
			return a && a->limited && __sync_fetch_and_sub(&a->uses, 1) <= 0 ?
				       CAPS_USED_UP :
				       0;
		has = a;
		rights = a ? a->rights : 0;
		r->limited |= a ? a->limited : 0;
	}
	r->denied = has ? r->wanted & ~rights : r->wanted;
	if (has && r->denied)
		return CAPS_NOT_BOUND;
	/* a session that did not open it is asked as if it opened it now */
	if (!is_own || (has && r->sessions[i] == r->session_number))
		return 0;
	b = caps_bound_at(r->conn, r->slots[i]);
	return b ? caps_service_given(r, layer, service, address(b->name), b->len) : CAPS_NOT_BOUND;
}

/* An operand that is an object's name: does the layer, the room's `own`, from 1, give `wanted` of it? */
__noinline u32 caps_request_binds(struct caps_room *r __arg_nonnull, u32 own, u32 service,
				  u32 operand, u32 first)
{
	u32 layer = r->layers[BOUND(own - 1, CAPS_LAYERS)], why;

	r->denied = r->wanted;
	if (!caps_operand_is(r, operand, CAPS_WIRE_NAME_OF))
		return CAPS_REQUEST;
	why = caps_service_given(r, layer, service,
				 address(r->head + BOUND(caps_operand_at(r, operand), CAPS_HEAD)),
				 r->lens[BOUND(operand - 1, CAPS_WIRE_OPERANDS)]);
	if (why || !first)
		return why;
	/* the reply's descriptor is for the first; layers that describe the service otherwise would speak of different objects */
	if (r->binds && !caps_names_are_same(r, r->binds, operand))
		return CAPS_REQUEST;
	if (!r->binds)
		r->binds = operand;
	r->giving |= 1u << (own - 1 & 31);
	r->answers[BOUND(own - 1, CAPS_LAYERS)] = r->answer;
	r->objects[BOUND(own - 1, CAPS_LAYERS)] = r->object;
	r->rights[BOUND(own - 1, CAPS_LAYERS)] = r->wanted;
	r->expires[BOUND(own - 1, CAPS_LAYERS)] = r->asked.expires;
	r->uses[BOUND(own - 1, CAPS_LAYERS)] = r->asked.uses;
	return 0;
}

/* What an operation takes on an operand; false: the vector has nothing for what the request says. */
static __noinline bool caps_need_wants(struct caps_room *r, ARENA(struct caps_need) * need)
{
	u32 i, by = need->by;
	u64 value;

	r->wanted = need->rights;
	if (!by)
		return true;
	r->wanted = 0;
	if (!caps_operand_is(r, by, CAPS_WIRE_NUMBER))
		return false;
	value = caps_head_word(r, caps_operand_at(r, by));
	for_each_index(i, need->values) {
		ARENA(struct caps_value) *v = ARENA_PTR(struct caps_value, need->vector) + i;

		if (v->value != value)
			continue;
		r->wanted = v->rights;
		return true;
	}
	return false;
}

/* One layer: the room's `own`, from 1, or with 0 one that a descriptor was opened with. */
__noinline u32 caps_request_asks(struct caps_room *r __arg_nonnull, u32 layer, u32 service, u32 own,
				 u32 counts)
{
	u32 at = caps_operation_of(layer, service, caps_request_of(r)->operation), kind, needs,
	    count, i, why = 0;

	USES_ARENA();
	r->layer = layer;
	r->service = service;
	r->operand = r->wanted = r->denied = 0;
	if (!at)
		return CAPS_REQUEST;
	kind = ARENA_PTR(struct caps_operation, at)->kind;
	needs = ARENA_PTR(struct caps_operation, at)->needs;
	count = ARENA_PTR(struct caps_operation, at)->count;
	/* nothing is bound for a layer that has only opened what is used */
	if (kind == CAPS_FREE || (kind == CAPS_BINDS && (!own || counts)))
		return 0;
	for_each_index(i, count) {
		ARENA(struct caps_need) *need = ARENA_PTR(struct caps_need, needs) + i;

		if (!caps_need_wants(r, need))
			return CAPS_REQUEST;
		r->operand = need->operand;
		if (kind == CAPS_BINDS)
			why = caps_request_binds(r, own, service, need->operand, !i);
		else
			why = caps_request_uses(r, layer, service, need->operand,
						!!own | (counts ? 2 : 0));
		if (why)
			break;
	}
	return why;
}

static __noinline bool caps_room_has(struct caps_room *r, u32 layer)
{
	u32 i;

	bpf_for(i, 0, r->count)
		if (r->layers[BOUND(i, CAPS_LAYERS)] == layer)
			return true;
	bpf_for(i, 0, r->others_count)
		if (r->others[BOUND(i, CAPS_LAYERS)] == layer)
			return true;
	return false;
}

/* What a descriptor stands for: mostly what it stood for when the sender used it last. */
static __noinline struct caps_bound *caps_bound_used(struct caps_room *r, u64 descriptor, u32 *slot)
{
	struct caps_used *u = &r->used[descriptor & (CAPS_USED - 1)];
	struct caps_bound *b;

	if (u->conn == r->conn && u->descriptor == descriptor) {
		b = caps_bound_at(r->conn, u->slot);
		if (b && caps_bound_is_for(b, descriptor, true)) {
			*slot = u->slot;
			return b;
		}
	}
	b = caps_bound_by(r->conn, descriptor, true, slot);
	if (b) {
		u->conn = r->conn;
		u->descriptor = descriptor;
		u->slot = *slot;
	}
	return b;
}

/* An operand that is a descriptor, from 0. The layers that it was opened with are asked, too, whoever uses it. */
__noinline u32 caps_descriptor_read(struct caps_room *r __arg_nonnull, u32 operand)
{
	u32 slot = 0, i, o = BOUND(operand, CAPS_WIRE_OPERANDS);
	struct caps_bound *b = caps_bound_used(r, caps_head_word(r, r->at[o]), &slot);

	r->ended[o] = CAPS_NOT_BOUND;
	r->firsts[o] = 0;
	if (!b)
		return 0;
	r->firsts[o] = b->count ? b->layers[0] : 0;
	r->first_rights[o] = b->first.rights;
	r->first_limited[o] = b->first.limited;
	r->slots[o] = slot;
	r->sessions[o] = b->session_number;
	r->ended[o] = caps_bound_ended(r, b, slot);
	if (!caps_session_is(b->session, b->session_number))
		return CAPS_REVOKED;
	/* mostly it has them */
	if (b->serial && b->serial == r->serial)
		return 0;
	bpf_for(i, 0, b->count) {
		u32 layer = b->layers[BOUND(i, CAPS_LAYERS)];

		if (caps_room_has(r, layer))
			continue;
		if (r->others_count >= CAPS_LAYERS)
			return CAPS_TOO_MANY;
		r->others[BOUND(r->others_count, CAPS_LAYERS)] = layer;
		r->others_services[BOUND(r->others_count, CAPS_LAYERS)] =
			b->services[BOUND(i, CAPS_LAYERS)];
		r->others_count++;
	}
	return 0;
}

/* All layers; `counts`: what all of them allowed is done. */
__noinline u32 caps_request_all(struct caps_room *r __arg_nonnull, bool counts)
{
	u32 k, why;

	for_each_index(k, r->count) {
		u32 service = r->services[BOUND(k, CAPS_LAYERS)];

		if (!service)
			continue;
		why = caps_request_asks(r, r->layers[BOUND(k, CAPS_LAYERS)], service, k + 1,
					counts);
		if (why)
			return why;
	}
	for_each_index(k, r->others_count) {
		why = caps_request_asks(r, r->others[BOUND(k, CAPS_LAYERS)],
					r->others_services[BOUND(k, CAPS_LAYERS)], 0, counts);
		if (why)
			return why;
	}
	return 0;
}

/* Is the request in a room authorised? Nothing is counted, and nothing bound. */
__noinline u32 caps_request_judged(struct caps_room *r __arg_nonnull)
{
	u32 i, why;

	r->judged = r->binds = r->giving = r->limited = r->others_count = r->layer = r->wanted =
		r->denied = 0;
	r->epoch = READ_ONCE(caps_epoch);
	for_each_index(i, caps_request_of(r)->operands) {
		if (r->kinds[BOUND(i, CAPS_WIRE_OPERANDS)] != CAPS_WIRE_DESCRIPTOR)
			continue;
		why = caps_descriptor_read(r, i);
		if (why)
			return r->why = why;
	}
	why = caps_request_all(r, false);
	r->why = why;
	r->judged = !why;
	return why;
}

#endif
