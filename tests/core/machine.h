/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The property of the model, as a machine: subjects and objects that exchange
 * bytes as the decisions allow. `origin` is the lowest level any byte in them
 * comes from. Claim: nothing is ever higher than its origin, so no low byte
 * reaches a high subject or object.
 *
 * Trust is an exception, and has to be named. A subject that reads by trust takes what it reads for
 * as high as the trust goes:
 *   nodemote              what the subject reads counts as its own level
 *   nonetdemote           the same, for the network alone
 *   lowwrite              what the object holds counts as its own level, while the
 *                         object is where the rule says so
 * Neutral objects and those of the kernel carry no bytes from writer to reader
 * (docs/reference/lomac.md, Objects); that is assumed, not shown.
 *
 * Steps are those of the hooks; the model checker (proofs_lomac.c) and the fuzzer
 * (fuzz_lomac.c) choose them.
 */
#ifndef CORE_MACHINE_H
#define CORE_MACHINE_H

#define PARTIES 3

struct party {
	struct lomac_subject label;
	u8 origin;
};

struct thing {
	struct lomac_object label; /* the true one; a look-up may fail to find it */
	u8 origin;
};

struct machine {
	u8 top;
	struct party s[PARTIES];
	struct thing o[PARTIES];
};

enum step { READ, WRITE, NETWORK, ACT_ON, FORK, MAKE, MOVE, STEPS };

struct choice {
	u8 step, s, other, o, dir; /* the subject's step, and its objects */
	u8 net;                    /* the network's level */
	bool lost, dir_lost;       /* the object's label could not be found */
	struct lomac_object place; /* the rule at a new name */
};

static inline u8 lower(u8 a, u8 b)
{
	return a < b ? a : b;
}

static inline u8 higher(u8 a, u8 b)
{
	return a > b ? a : b;
}

/* What the hook knows of an object. What a lost label holds must not matter. */
static inline struct lomac_object view(struct thing *o, bool lost, struct lomac_object junk)
{
	if (!lost)
		return o->label;
	junk.known = false;
	return junk;
}

static inline void machine_read(struct party *s, struct thing *o, struct lomac_object seen, u8 top)
{
	u8 after = lomac_observe(s->label, seen), bytes = o->origin;

	if (!lomac_open(s->label, seen, top))
		return;
	if (!(o->label.attrs & (TG_NEUTRAL | TG_KERNEL))) {
		if (o->label.attrs & TG_LOWWRITE)
			bytes = higher(bytes, o->label.level);
		if (s->label.attrs & TG_NODEMOTE)
			bytes = higher(bytes, s->label.level);
		s->origin = lower(s->origin, bytes);
	}
	s->label.level = after;
}

static inline void machine_network(struct party *s, u8 net)
{
	u8 after = lomac_observe_net(s->label, net);

	if (s->label.attrs & (TG_NODEMOTE | TG_NONETDEMOTE))
		net = higher(net, s->label.level);
	s->origin = lower(s->origin, net);
	s->label.level = after;
}

/* A new object: its level by its maker and its place. */
static inline void machine_make(struct party *s, struct lomac_object dir, struct thing *o,
				struct lomac_object place, u8 top)
{
	u8 level = lomac_create(s->label, place);

	if (!lomac_names(s->label, dir, top) || level == LOMAC_REFUSED)
		return;
	o->label = place;
	if (level != place.level) /* given: lowwrite belongs to the rule's own level */
		o->label.attrs &= ~TG_LOWWRITE;
	o->label.level = level;
	o->origin = s->origin;
}

/*
 * rename, link: the object is under the rule of its new place. Where `lowwrite`
 * alone lets the subject at the object, the contract lets it carry off what it
 * wrote to a place where it is trusted no less. The claim excepts that
 * (docs/dev/testing-core.md).
 */
static inline void machine_move(struct party *s, struct lomac_object dir, struct thing *o,
				struct lomac_object seen, struct lomac_object place, u8 top)
{
	u8 level = lomac_rename(seen, place);

	if (!lomac_names(s->label, dir, top) || !lomac_modify(s->label, seen, top) ||
	    level == LOMAC_REFUSED)
		return;
	if (o->label.attrs & (TG_NEUTRAL | TG_KERNEL))
		return; /* its kind stays */
	if (o->label.attrs & TG_LOWWRITE) {
		if (s->label.level < o->label.level)
			return; /* the exception */
		o->origin = higher(o->origin, o->label.level);
	}
	o->label.attrs = place.attrs;
	if (level != place.level)
		o->label.attrs &= ~TG_LOWWRITE;
	o->label.level = level;
}

static inline void machine_step(struct machine *m, struct choice c)
{
	struct party *s = &m->s[c.s], *other = &m->s[c.other];
	struct thing *o = &m->o[c.o];
	struct lomac_object seen = view(o, c.lost, c.place);
	struct lomac_object dir = view(&m->o[c.dir], c.dir_lost, c.place);

	switch (c.step) {
	case READ:
		machine_read(s, o, seen, m->top);
		break;
	case WRITE:
		if (lomac_open(s->label, seen, m->top) && lomac_modify(s->label, seen, m->top))
			o->origin = lower(o->origin, s->origin);
		break;
	case NETWORK:
		machine_network(s, c.net);
		break;
	case ACT_ON:
		if (lomac_act(s->label, other->label.level))
			other->origin = lower(other->origin, s->origin);
		break;
	case FORK:
		*other = *s;
		break;
	case MAKE:
		machine_make(s, dir, o, c.place, m->top);
		break;
	case MOVE:
		machine_move(s, dir, o, seen, c.place, m->top);
		break;
	}
}

/* Nothing is higher than where its bytes come from, nor than the top. */
static inline bool machine_holds(const struct machine *m)
{
	for (u32 i = 0; i < PARTIES; i++) {
		const struct thing *o = &m->o[i];

		if (m->s[i].label.level > m->s[i].origin || m->s[i].label.level > m->top ||
		    o->label.level > m->top)
			return false;
		if (!(o->label.attrs & (TG_NEUTRAL | TG_KERNEL | TG_LOWWRITE)) &&
		    o->label.level > o->origin)
			return false;
	}
	return true;
}

#endif
