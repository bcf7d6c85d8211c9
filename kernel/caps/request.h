/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Authorisation of a request to a service: crates/policy/src/caps/model/service.rs says what has to hold. A room (service.h)
 * has its head and operands. What is found is 0, or why it is refused.
 */
#ifndef TIDEGATE_CAPS_REQUEST_H
#define TIDEGATE_CAPS_REQUEST_H

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

	EACH(i, len / 8)
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
	EACH(i, caps_request_of(r)->operands) {
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
	AT(struct caps_image) *image;
	AT(struct caps_service) *s;
	u32 low = 0, high, i;

	asm volatile("" ::"r"(&arena));
	image = PART(struct caps_image, PART(struct caps_subject, layer)->image);
	if (!service || service > image->services_count)
		return 0;
	s = PART(struct caps_service, image->services) + (service - 1);
	high = s->count;
	EACH(i, 16) {
		u32 middle = (low + high) / 2, at = s->operations + middle * sizeof(struct caps_operation), has;

		if (low >= high)
			break;
		has = PART(struct caps_operation, at)->number;
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
	AT(struct caps_subject) *s;
	u32 i;

	asm volatile("" ::"r"(&arena));
	s = PART(struct caps_subject, layer);
	EACH(i, s->services_count) {
		AT(struct caps_of_service) *of = PART(struct caps_of_service, s->services) + i;

		if (of->service + 1 == service)
			return of->automaton;
	}
	return 0;
}

/* Does a layer of a room's session give `wanted` of an object, which the service calls by this name? */
__noinline u32 caps_service_given(struct caps_room *r __arg_nonnull, u32 layer, u32 service, u64 text, u32 len)
{
	u32 automaton, image, taken = caps_session_at(r->session)->taken;

	asm volatile("" ::"r"(&arena));
	automaton = caps_service_automaton(layer, service);
	image = PART(struct caps_subject, layer)->image;
	r->answer = 0;
	if (automaton)
		r->answer = caps_answer_of(automaton,
			automaton_feed(automaton, PART(struct tg_automaton, automaton)->start, text, len));
	r->object = caps_object_id(caps_mix(caps_mix(CAPS_ID_SERVICE, image), service - 1), text, len);
	caps_ask(&r->asked, r->wanted, 0);
	r->asked.session = r->session;
	r->asked.epoch = r->epoch;
	caps_ask_layer(&r->asked, r->answer);
	r->denied = r->wanted;
	if (taken & 1 << CAPS_TAKEN_ALL || (taken && (caps_taken_from(r->session, CAPS_TAKEN_SUBJECT, layer) ||
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
	EACH(i, b->count) {
		a = caps_service_active_at(r->conn, slot, b->layers[BOUND(i, CAPS_LAYERS)]);
		why = a ? caps_ended(a) : CAPS_NOT_BOUND;
		if (why)
			return why;
	}
	/* nor for longer than the connection, for who asked for it; that of the sender's own domain is the guard's (net.h) */
	a = r->file && b->domain && b->serial != r->serial ? caps_active_of(r->file, b->domain, CAPS_OPENED) : NULL;
	return a ? caps_ended_with(a, r->file, false) : 0;
}

/* An operand that is a descriptor: is it good for `wanted`? `is_own`: the sender has the layer; `counts`: one use is made of it. */
__noinline u32 caps_request_uses(struct caps_room *r __arg_nonnull, u32 layer, u32 service, u32 operand, u32 how)
{
	bool is_own = how & 1, counts = how & 2;
	u32 i = BOUND(operand - 1, CAPS_WIRE_OPERANDS);
	struct caps_active *a;
	struct caps_bound *b;

	r->denied = r->wanted;
	if (!caps_operand_is(r, operand, CAPS_WIRE_DESCRIPTOR))
		return CAPS_REQUEST;
	if (!counts && r->ended[i])
		return r->ended[i];
	a = caps_service_active_at(r->conn, r->slots[i], layer);
	if (counts)
		return a && a->limited && __sync_fetch_and_sub(&a->uses, 1) <= 0 ? CAPS_USED_UP : 0;
	if (a) {
		r->denied = r->wanted & ~a->rights;
		if (r->denied)
			return CAPS_NOT_BOUND;
		r->limited |= a->limited;
	}
	/* who did not open it is asked as if it opened it now */
	if (!is_own || (a && r->sessions[i] == r->session_number))
		return 0;
	b = caps_bound_at(r->conn, r->slots[i]);
	return b ? caps_service_given(r, layer, service, address(b->name), b->len) : CAPS_NOT_BOUND;
}

/* An operand that is an object's name: does the layer, the room's `own`, from 1, give `wanted` of it? */
__noinline u32 caps_request_binds(struct caps_room *r __arg_nonnull, u32 own, u32 service, u32 operand, u32 first)
{
	u32 layer = r->layers[BOUND(own - 1, CAPS_LAYERS)], why;

	r->denied = r->wanted;
	if (!caps_operand_is(r, operand, CAPS_WIRE_NAME_OF))
		return CAPS_REQUEST;
	why = caps_service_given(r, layer, service, address(r->head + BOUND(caps_operand_at(r, operand), CAPS_HEAD)),
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
static __noinline bool caps_need_wants(struct caps_room *r, AT(struct caps_need) *need)
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
	EACH(i, need->values) {
		AT(struct caps_value) *v = PART(struct caps_value, need->vector) + i;

		if (v->value != value)
			continue;
		r->wanted = v->rights;
		return true;
	}
	return false;
}

/* One layer: the room's `own`, from 1, or with 0 one that a descriptor was opened with. */
__noinline u32 caps_request_asks(struct caps_room *r __arg_nonnull, u32 layer, u32 service, u32 own, u32 counts)
{
	u32 at = caps_operation_of(layer, service, caps_request_of(r)->operation), kind, needs, count, i, why = 0;

	asm volatile("" ::"r"(&arena));
	r->layer = layer;
	r->service = service;
	r->operand = r->wanted = r->denied = 0;
	if (!at)
		return CAPS_REQUEST;
	kind = PART(struct caps_operation, at)->kind;
	needs = PART(struct caps_operation, at)->needs;
	count = PART(struct caps_operation, at)->count;
	/* nothing is bound for who has only opened what is used */
	if (kind == CAPS_FREE || (kind == CAPS_BINDS && (!own || counts)))
		return 0;
	EACH(i, count) {
		AT(struct caps_need) *need = PART(struct caps_need, needs) + i;

		if (!caps_need_wants(r, need))
			return CAPS_REQUEST;
		r->operand = need->operand;
		if (kind == CAPS_BINDS)
			why = caps_request_binds(r, own, service, need->operand, !i);
		else
			why = caps_request_uses(r, layer, service, need->operand, !!own | (counts ? 2 : 0));
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

/* An operand that is a descriptor, from 0. The layers that it was opened with are asked, too, whoever uses it. */
__noinline u32 caps_descriptor_read(struct caps_room *r __arg_nonnull, u32 operand)
{
	u32 slot, i, o = BOUND(operand, CAPS_WIRE_OPERANDS);
	struct caps_bound *b = caps_bound_by(r->conn, caps_head_word(r, r->at[o]), true, &slot);

	r->ended[o] = CAPS_NOT_BOUND;
	if (!b)
		return 0;
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
		r->others_services[BOUND(r->others_count, CAPS_LAYERS)] = b->services[BOUND(i, CAPS_LAYERS)];
		r->others_count++;
	}
	return 0;
}

/* All layers; `counts`: what all of them allowed is done. */
__noinline u32 caps_request_all(struct caps_room *r __arg_nonnull, bool counts)
{
	u32 k, why;

	EACH(k, r->count) {
		u32 service = r->services[BOUND(k, CAPS_LAYERS)];

		if (!service)
			continue;
		why = caps_request_asks(r, r->layers[BOUND(k, CAPS_LAYERS)], service, k + 1, counts);
		if (why)
			return why;
	}
	EACH(k, r->others_count) {
		why = caps_request_asks(r, r->others[BOUND(k, CAPS_LAYERS)], r->others_services[BOUND(k, CAPS_LAYERS)], 0, counts);
		if (why)
			return why;
	}
	return 0;
}

/* Is the request in a room authorised? Nothing is counted, and nothing bound. */
__noinline u32 caps_request_judged(struct caps_room *r __arg_nonnull)
{
	u32 i, why;

	r->judged = r->binds = r->giving = r->limited = r->others_count = r->layer = r->wanted = r->denied = 0;
	r->epoch = *(volatile u32 *)&caps_epoch;
	EACH(i, caps_request_of(r)->operands) {
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

/* What is bound for a layer of a room's. */
static __noinline bool caps_bound_active(struct caps_room *r, u32 slot, u32 k)
{
	struct caps_bound_key key = { .conn = r->conn, .slot = slot };
	struct caps_active *a;

	key.layer = r->layers[BOUND(k, CAPS_LAYERS)];
	if (bpf_map_update_elem(&caps_service_actives, &key, &caps_no_active, BPF_ANY))
		return false;
	a = bpf_map_lookup_elem(&caps_service_actives, &key);
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
		a->until = bpf_ktime_get_boot_ns() + r->expires[BOUND(k, CAPS_LAYERS)] * 1000000000ull;
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
	u32 i, at = caps_operand_at(r, r->binds), len = r->lens[BOUND(r->binds - 1, CAPS_WIRE_OPERANDS)];
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
		if (!caps_bound_active(r, slot, i))
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
	u32 i, n = 0, at = caps_operand_at(r, r->binds), len = r->lens[BOUND(r->binds - 1, CAPS_WIRE_OPERANDS)];
	struct caps_active *a;

	if (!b || b->len != len || b->domain != r->domain || b->session_number != r->session_number)
		return false;
	bpf_for(i, 0, (len + 7) / 8)
		if (*(u64 *)(b->name + BOUND(i, 32) * 8) != caps_head_word(r, at + i * 8))
			return false;
	bpf_for(i, 0, r->count) {
		if (!(r->giving >> (i & 31) & 1))
			continue;
		a = caps_service_active_at(r->conn, slot, r->layers[BOUND(i, CAPS_LAYERS)]);
		if (!a || a->rights != r->rights[BOUND(i, CAPS_LAYERS)])
			return false;
		n++;
	}
	return n == b->count;
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
	if (!caps_bound_fill(r, slot) || bpf_map_update_elem(&caps_numbers, &key, &slot, BPF_NOEXIST)) {
		caps_bound_forget(r->conn, slot);
		caps_slot_left(c, slot);
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
static __noinline bool caps_bound_named(struct caps_conn *c, struct caps_bound *b, u32 slot, u64 descriptor)
{
	struct caps_number_key key = { .conn = c->number, .number = descriptor, .is_descriptor = 1 };

	b->number = descriptor;
	b->is_descriptor = 1;
	return !bpf_map_update_elem(&caps_numbers, &key, &slot, BPF_NOEXIST);
}

static __noinline int caps_slot_freed(struct caps_conn *c, u32 slot)
{
	caps_bound_forget(c->number, slot);
	caps_slot_left(c, slot);
	return 0;
}

/* What a reply binds, or drops. */
static __noinline int caps_reply_made(struct caps_conn *c, u64 id, u32 flags, u64 descriptor)
{
	struct caps_number_key key = { .conn = c->number, .number = id };
	struct caps_bound *b;
	u32 slot;

	b = caps_bound_by(c->number, id, false, &slot);
	/* of two who reply to it one does */
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
