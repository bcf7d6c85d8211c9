/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decisions of the `capability` model over an image (abi/caps_image.h): what capabilities give, for
 * how long, and what content brings. Pure functions, the same source in the kernel and in the
 * tests, which crates/policy/src/caps/decide.rs says slowly. An including file has
 * `u32 caps_taken_at(struct caps_asked *, u32 capability)`: the revocation that took a capability
 * from the session that asks, counted from 1; 0: none has.
 */
#ifndef TIDEGATE_CAPS_RULES_H
#define TIDEGATE_CAPS_RULES_H

#include "abi/caps_image.h"
#include "lib/automaton.h"

/* A question to the layers of a domain, one after the other. */
struct caps_asked {
	u32 session;
	u32 epoch;   /* what later revocations took is still given */
	u32 wanted;  /* bind operations, and those access operations that are asked for */
	u32 beside;  /* access operations that go with what is bound, and were not asked for */
	u32 given;   /* of `wanted`, what all layers so far give; */
	u32 extra;   /* of `beside` the same */
	u32 expires; /* the fewest seconds, */
	/* and uses, that any capability says by which it was given; 0: none says any */
	u32 uses;
	u32 lost;  /* a later revocation took one of these */
	u32 taken; /* of `wanted`, what the newest layer gave before it was taken back */
};

static __always_inline void caps_ask(struct caps_asked *a, u32 wanted, u32 beside)
{
	a->wanted = a->given = wanted;
	a->beside = a->extra = beside;
	a->expires = a->uses = a->lost = 0;
}

static __always_inline u32 caps_least(u32 a, u32 b)
{
	return !a || (b && b < a) ? b : a;
}

/* Has this capability been taken before the question? */
static __always_inline bool caps_is_taken(struct caps_asked *a, u32 capability)
{
	u32 taken = caps_taken_at(a, capability);

	return taken && taken <= a->epoch;
}

/*
 * Asks one layer, by what its automaton says of the object: a permission is given by the first capability that has it, one that
 * lasts, if there is one. What goes beside is given by one that lasts, or by one that gives what was asked for.
 */
caps_function u32 caps_ask_layer(struct caps_asked *a __arg_nonnull, u32 answer)
{
	u32 wanted = a->wanted, beside = a->beside, count, by, i;

	a->taken = 0;
	count = answer ? ARENA_PTR(struct caps_answer, answer)->count : 0;
	by = answer ? ARENA_PTR(struct caps_answer, answer)->by : 0;
	caps_for(i, count) {
		u32 at = ARENA_PTR(u32, by)[i], gives, goes, lasts;
		ARENA(struct caps_capability) *c = ARENA_PTR(struct caps_capability, at);

		lasts = !c->expires && !c->uses;
		if (!lasts && !wanted)
			break;
		if (caps_is_taken(a, at)) {
			a->taken |= c->rights & a->wanted;
			continue;
		}
		gives = c->rights & wanted;
		goes = lasts || gives ? c->rights & beside : 0;
		wanted &= ~gives;
		beside &= ~goes;
		if (gives) {
			a->expires = caps_least(a->expires, c->expires);
			a->uses = caps_least(a->uses, c->uses);
		}
		if ((gives || goes) && caps_taken_at(a, at))
			a->lost = 1;
		if (!wanted && !beside)
			break;
	}
	a->given &= ~wanted;
	a->extra &= ~beside;
	return a->given;
}

/* The next subject that content brings, from the capability with this index on, which is moved behind it; 0: no other one. */
caps_function u32 caps_brings(struct caps_asked *a __arg_nonnull, u32 answer,
			      u32 *next __arg_nonnull)
{
	u32 count, by, i, becomes = 0, from = *next;

	if (!answer || !ARENA_PTR(struct caps_answer, answer)->brings)
		return 0;
	count = ARENA_PTR(struct caps_answer, answer)->count;
	by = ARENA_PTR(struct caps_answer, answer)->by;
	caps_for(i, count - from) {
		u32 at = ARENA_PTR(u32, by)[from + i];

		becomes = ARENA_PTR(struct caps_capability, at)->becomes;
		if (!becomes || caps_is_taken(a, at)) {
			becomes = 0;
			continue;
		}
		*next = from + i + 1;
		break;
	}
	return becomes;
}

/* A subject's automaton for objects of a class. */
static __always_inline u32 caps_automaton(u32 layer, u32 class)
{
	return ARENA_PTR(struct caps_subject, layer)->automata[class & 7];
}

/* What it says of a name that ends in a state. */
static __always_inline u32 caps_answer_of(u32 automaton, u32 state)
{
	return ARENA_PTR(u32, ARENA_PTR(struct tg_automaton, automaton)
				      ->answers)[automaton_answer(automaton, state)];
}

#endif
