/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The security server of the `te` model: access decisions over a policy's tables (abi/te_image.h). Pure
 * functions of an image, the same source in the kernel and in the tests, where ARENA_PTR(type, offset) is a place in the
 * image. The rules are those of security/selinux/ss/services.c: context_struct_compute_av().
 */
#ifndef TIDEGATE_TE_RULES_H
#define TIDEGATE_TE_RULES_H

#include "te_classes.h"
#include "abi/te_image.h"

/*
 * A SID is a context's numbers in one word, so that no table of contexts can be full or race:
 * bits 0..15 type, 16..27 role, 28..39 user, 40..63 range. A type is never 0, so neither is a SID.
 */
static __always_inline u32 sid_type(u64 sid)
{
	return sid & 0xffff;
}
static __always_inline u32 sid_role(u64 sid)
{
	return sid >> 16 & 0xfff;
}
static __always_inline u32 sid_user(u64 sid)
{
	return sid >> 28 & 0xfff;
}
static __always_inline u32 sid_range(u64 sid)
{
	return sid >> 40;
}

static __always_inline u64 sid_make(u32 user, u32 role, u32 type, u32 range)
{
	return (u64)range << 40 | (u64)(user & 0xfff) << 28 | (u64)(role & 0xfff) << 16 |
	       (type & 0xffff);
}

/* A policy: where its struct te_image is. */
#define TE(p) ARENA_PTR(struct te_image, p)

/* What a decision says. */
struct te_decision {
	u32 allow;
	u32 auditallow;
	u32 auditdeny;
};

static __always_inline bool te_in(u32 bitmap, u32 n)
{
	return bitmap && ARENA_PTR(u32, bitmap)[n >> 5] >> (n & 31) & 1;
}

static __always_inline ARENA(struct te_class) * te_class_of(u32 p, u32 class)
{
	return &ARENA_PTR(struct te_class, TE(p)->class_at)[class];
}

static __always_inline ARENA(struct te_range) * te_range_of(u32 p, u32 range)
{
	return &ARENA_PTR(struct te_range, TE(p)->range_at)[range < TE(p)->ranges ? range : 0];
}

/* Is one level at least the other: in its sensitivity, and with all its categories? */
te_function bool te_dominates(u32 p, u32 high, u32 low)
{
	ARENA(struct te_level) *h = &ARENA_PTR(struct te_level, TE(p)->level_at)[high];
	ARENA(struct te_level) *l = &ARENA_PTR(struct te_level, TE(p)->level_at)[low];
	u32 words = TE(p)->category_words, i;

	if (high == low)
		return true;
	if (h->sensitivity < l->sensitivity)
		return false;
	te_for(i, words)
		if (ARENA_PTR(u32, l->categories)[i] & ~ARENA_PTR(u32, h->categories)[i])
			return false;
	return true;
}

static __always_inline bool te_range_contains(u32 p, u32 outer, u32 inner)
{
	ARENA(struct te_range) *o = te_range_of(p, outer), *i = te_range_of(p, inner);

	return te_dominates(p, i->low, o->low) && te_dominates(p, o->high, i->high);
}

/* Does the policy know all of the context, and let its parts go together? policydb_context_isvalid(). */
te_function bool te_is_valid(u32 p, u64 sid)
{
	u32 type = sid_type(sid), role = sid_role(sid), user = sid_user(sid),
	    range = sid_range(sid);

	if (!type || type >= TE(p)->types || !role || role >= TE(p)->roles || !user ||
	    user >= TE(p)->users || range >= TE(p)->ranges || !te_range_of(p, range)->valid)
		return false;
	/* what is no process's may have any type, user and range that there is: those have their bits here */
	if (!te_in(ARENA_PTR(u32, TE(p)->role_types)[role], type) ||
	    !te_in(ARENA_PTR(u32, TE(p)->user_roles)[user], role))
		return false;
	return !TE(p)->mls || role == TE(p)->object_r ||
	       te_range_contains(p, ARENA_PTR(u32, TE(p)->user_ranges)[user], range);
}

/* The number of what is called so; 0: nothing is. */
te_function u32 te_number_of(u32 p, u32 which, u64 text, u32 len)
{
	u32 mask = TE(p)->texts_mask, at = te_text_hash(text, len) + which, i;

	te_for(i, mask + 1) {
		ARENA(struct te_text) *t =
			&ARENA_PTR(struct te_text, TE(p)->texts)[(at + i) & mask];

		if (!t->len)
			break;
		if (t->part == which && t->len == len && te_text_is(text, t->text, len))
			return t->number;
	}
	return 0;
}

#define TE_CONTEXT 4096 /* bytes of a context's text, at most */

/* Where the next colon is, or the end. */
te_function u32 te_colon(u64 text, u32 from, u32 len)
{
	u32 i, at = len;

	te_for(i, len) {
		if (i >= from && te_byte(text + i) == ':') {
			at = i;
			break;
		}
	}
	return at;
}

/* The SID of a context's text, as the policy writes it; 0: it is none, or not one that may be. security_context_to_sid() */
te_function u64 te_parse(u32 p, u64 text, u32 len)
{
	u32 one, two, three, user, role, type, range = 0;
	u64 sid;

	if (len > TE_CONTEXT)
		return 0;
	one = te_colon(text, 0, len);
	two = te_colon(text, one + 1, len);
	three = te_colon(text, two + 1, len);
	/* without MLS there is no range, with it there is one */
	if (two >= len || (three < len) != !!TE(p)->mls)
		return 0;
	user = te_number_of(p, TE_PART_USER, text, one);
	role = te_number_of(p, TE_PART_ROLE, text + one + 1, two - one - 1);
	type = te_number_of(p, TE_PART_TYPE, text + two + 1, three - two - 1);
	if (three < len)
		range = te_number_of(p, TE_PART_RANGE, text + three + 1, len - three - 1);
	if (!user || !role || !type || (TE(p)->mls && !range))
		return 0;
	sid = sid_make(user, role, type, range);
	return te_is_valid(p, sid) ? sid : 0;
}

/* A context that the policy does not know is taken for unlabeled, as the kernel's is after a load. */
#define TE_SID_KERNEL 1
#define TE_SID_UNLABELED 3

static __always_inline u64 te_initial(u32 p, u32 which)
{
	return ARENA_PTR(u64, TE(p)->initial)[which & 31];
}

/* What an operator says of two levels, or of two roles, of which each may be over the other: both are where they are equal. */
static __always_inline bool te_operator_holds(u32 operator, bool over, bool under)
{
	switch (operator) {
	case TE_DOMINATES:
		return over;
	case TE_DOMINATED_BY:
		return under;
	default:
		return !over && !under;
	}
}

/* The contexts of a decision; the third is that of the subject that changes a context. */
struct te_sides {
	u64 source;
	u64 target;
	u64 third;
};

te_function bool te_compare(u32 p, struct te_sides *s __arg_nonnull, u32 attribute, u32 operator)
{
	ARENA(struct te_range) *one = te_range_of(p, sid_range(s->source)),
			       *two = te_range_of(p, sid_range(s->target));
	u32 x, y;

	switch (attribute) {
	case TE_USERS:
		x = sid_user(s->source);
		y = sid_user(s->target);
		break;
	case TE_TYPES:
		x = sid_type(s->source);
		y = sid_type(s->target);
		break;
	case TE_ROLES:
		x = sid_role(s->source);
		y = sid_role(s->target);
		break;
	case TE_LOW1_LOW2:
		x = one->low;
		y = two->low;
		break;
	case TE_LOW1_HIGH2:
		x = one->low;
		y = two->high;
		break;
	case TE_HIGH1_LOW2:
		x = one->high;
		y = two->low;
		break;
	case TE_HIGH1_HIGH2:
		x = one->high;
		y = two->high;
		break;
	case TE_LOW1_HIGH1:
		x = one->low;
		y = one->high;
		break;
	default:
		x = two->low;
		y = two->high;
	}
	if (operator== TE_EQUAL || operator== TE_DIFFERS)
		return (x == y) == (operator== TE_EQUAL);
	/* users and types have no order */
	if (attribute == TE_USERS || attribute == TE_TYPES)
		return x != y;
	if (attribute == TE_ROLES)
		return te_operator_holds(operator,
					 te_in(ARENA_PTR(u32, TE(p)->role_dominates)[x], y),
					 te_in(ARENA_PTR(u32, TE(p)->role_dominates)[y], x));
	return te_operator_holds(operator, te_dominates(p, x, y), te_dominates(p, y, x));
}

static __always_inline bool te_among(struct te_sides *s, u32 word, u32 bitmap)
{
	u32 side = word >> 24, symbol = word >> 8 & 0xff;
	u64 sid = side == TE_SIDE_SOURCE ? s->source :
		  side == TE_SIDE_TARGET ? s->target :
					   s->third;
	u32 n = symbol == TE_USER ? sid_user(sid) :
		symbol == TE_ROLE ? sid_role(sid) :
				    sid_type(sid);

	return te_in(bitmap, n) == ((word >> 16 & 0xff) == TE_EQUAL);
}

/* A constraint's expression; the values are a bit each. */
static __always_inline bool te_holds(u32 p, struct te_sides *s, u32 expression, u32 words)
{
	u32 stack = 0, i, word, last, next = 0;

	te_for(i, words) {
		if (i < next)
			continue;
		word = ARENA_PTR(u32, expression)[i];
		last = stack & 1;
		switch (word & 0xff) {
		case TE_NOT:
			stack ^= 1;
			break;
		case TE_AND:
			stack >>= 1;
			stack &= ~1u | last;
			break;
		case TE_OR:
			stack >>= 1;
			stack |= last;
			break;
		case TE_COMPARE:
			stack = stack << 1 | te_compare(p, s, word >> 8 & 0xff, word >> 16 & 0xff);
			break;
		default:
			stack = stack << 1 | te_among(s, word, ARENA_PTR(u32, expression)[i + 1]);
			next = i + 2;
		}
	}
	return stack & 1;
}

/* The permissions that a list of constraints takes away; of validations 1 if one does not hold. */
te_function u32 te_constrained(u32 p, struct te_sides *s __arg_nonnull, u32 list)
{
	u32 count = ARENA_PTR(u32, list)[0], at = list + 4, taken = 0, i;

	te_for(i, count) {
		u32 permissions = ARENA_PTR(u32, at)[0], words = ARENA_PTR(u32, at)[1];

		if (!te_holds(p, s, at + 8, words))
			taken |= permissions;
		at += 8 + 4 * words;
	}
	return taken;
}

/*
 * The same of the types that bound these: a type that is bounded may no more than the one that
 * bounds it, constraints and all. Of the rules that is in the tables. type_attribute_bounds_av()
 */
#define TE_BOUNDS 16
te_function u32 te_constrained_above(u32 p, struct te_sides *s __arg_nonnull, u32 list)
{
	struct te_sides above = *s;
	u32 taken = 0, i, source, target;

	te_for(i, TE_BOUNDS) {
		source = ARENA_PTR(u32, TE(p)->bounds)[sid_type(above.source)];
		if (!source)
			break;
		target = ARENA_PTR(u32, TE(p)->bounds)[sid_type(above.target)];
		above.source = (above.source & ~0xffffull) | source;
		if (target)
			above.target = (above.target & ~0xffffull) | target;
		taken |= te_constrained(p, &above, list);
	}
	return taken;
}

/* What the rules alone say of a triple. */
static __always_inline ARENA(struct te_av) * te_rule(u32 p, u32 source, u32 target, u32 class)
{
	u32 row, column, block, cell, at;

	if (source >= TE(p)->types || target >= TE(p)->types)
		return NULL;
	row = ARENA_PTR(u32, TE(p)->rows)[source];
	column = ARENA_PTR(u32, TE(p)->columns)[target];
	block = row ? ARENA_PTR(u32, row)[column / TE_BLOCK] : 0;
	cell = block ? ARENA_PTR(u32, block)[column % TE_BLOCK] : 0;
	if (!cell)
		return NULL;
	at = ARENA_PTR(u16, cell)[class];
	return at ? &ARENA_PTR(struct te_av, cell + 2 * TE(p)->cell_width)[at - 1] : NULL;
}

#define PROCESS__CHANGES (PROCESS__TRANSITION | PROCESS__DYNTRANSITION)

/* An access decision. Both contexts are valid ones, and there is such a class. */
static __always_inline int te_decide(u32 p, u64 source, u64 target, u32 class,
				     struct te_decision *d)
{
	ARENA(struct te_class) *c = te_class_of(p, class);
	ARENA(struct te_av) *av = te_rule(p, sid_type(source), sid_type(target), class);
	struct te_sides sides = { .source = source, .target = target };

	d->allow = 0;
	d->auditallow = 0;
	d->auditdeny = ~0u;
	if (av) {
		d->allow = av->allow;
		d->auditallow = av->auditallow;
		d->auditdeny = av->auditdeny;
	}
	if (c->constraints && d->allow) {
		d->allow &= ~te_constrained(p, &sides, c->constraints);
		if (TE(p)->bounds)
			d->allow &= ~te_constrained_above(p, &sides, c->constraints);
	}
	if (class == TE(p)->process && d->allow & PROCESS__CHANGES &&
	    sid_role(source) != sid_role(target) &&
	    !te_in(ARENA_PTR(u32, TE(p)->role_allows)[sid_role(source)], sid_role(target)))
		d->allow &= ~PROCESS__CHANGES;
	d->allow |= c->unknown;
	return 0;
}

/* A single ioctl or message, and of which types. */
struct te_single {
	u32 source;
	u32 target;
	u32 number;  /* its two lower bytes count */
	u32 message; /* whether it is one */
};

/* What rules on single ioctls or messages say of one, by its two bytes: TE_SPEAKS and its like. */
te_function u32 te_extended_of(u32 p, struct te_single *one __arg_nonnull, u32 class)
{
	u32 list = TE(p)->extended ? ARENA_PTR(u32, TE(p)->extended)[class] : 0, count, says = 0, i;
	u32 upper = one->number >> 8 & 0xff, lower = one->number & 0xff, bit;

	if (!list)
		return 0;
	count = ARENA_PTR(u32, list)[0];
	te_for(i, count) {
		ARENA(struct te_extended) *rule = &ARENA_PTR(struct te_extended, list + 8)[i];

		if ((rule->of == TE_MESSAGES) != one->message ||
		    !te_in(rule->sources, one->source) || !te_in(rule->targets, one->target))
			continue;
		says |= TE_SPEAKS;
		bit = rule->of == TE_DRIVERS ? upper : lower;
		if ((rule->of == TE_DRIVERS || rule->driver == upper) &&
		    rule->bits[bit >> 5] >> (bit & 31) & 1)
			says |= rule->says;
	}
	return says;
}

/* Does `validatetrans` let a task change an object's context? */
te_function bool te_validates(u32 p, u64 old, u64 new, u64 task, u32 class)
{
	struct te_sides sides = { .source = old, .target = new, .third = task };
	u32 list = te_class_of(p, class)->validations;

	return !list || !te_constrained(p, &sides, list);
}

#endif
