/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Labelling decisions of the `te` model: the SID of what is made, and of what lies at a path. Pure functions of an image, as
 * rules.h has them. security_compute_sid() of security/selinux/ss/services.c.
 */
#ifndef TIDEGATE_TE_LABELLING_H
#define TIDEGATE_TE_LABELLING_H

#include "lib/automaton.h"
#include "te/rules.h"

static __always_inline u64 te_key(u32 kind, u32 class, u32 source, u32 target)
{
	return (u64)kind << 60 | (u64)(class & 0xfff) << 40 | (u64)(source & 0xfffff) << 20 |
	       (target & 0xfffff);
}

static __always_inline u32 te_hash(u64 key)
{
	return key * 0x9e3779b97f4a7c15ull >> 32;
}

/* The value under a key; 0: there is none. */
te_function u32 te_entry_of(u32 p, u64 key)
{
	u32 mask = TE(p)->entries_mask, at = te_hash(key), i;

	te_for(i, mask + 1) {
		ARENA(struct te_entry) *e =
			&ARENA_PTR(struct te_entry, TE(p)->entries)[(at + i) & mask];

		if (e->key == key)
			return e->value;
		if (!e->key)
			break;
	}
	return 0;
}

/* In place of a range's number: there is no such range, so that what would have it has no label. */
#define TE_NO_RANGE 0xffffffu

/* The number of a range of these levels. */
te_function u32 te_range_find(u32 p, u32 low, u32 high)
{
	u32 count = TE(p)->ranges, i;

	te_for(i, count) {
		ARENA(struct te_range) *r = &ARENA_PTR(struct te_range, TE(p)->range_at)[i];

		if (r->valid && r->low == low && r->high == high)
			return i;
	}
	return TE_NO_RANGE;
}

/* Is it the level of this sensitivity with the categories that both have? */
te_function bool te_is_common(u32 p, u32 level, u32 sensitivity, u32 one, u32 two)
{
	ARENA(struct te_level) *levels = ARENA_PTR(struct te_level, TE(p)->level_at);
	u32 words = TE(p)->category_words, i;

	if (levels[level].sensitivity != sensitivity)
		return false;
	te_for(i, words) {
		u32 common = ARENA_PTR(u32, levels[one].categories)[i] &
			     ARENA_PTR(u32, levels[two].categories)[i];

		if (ARENA_PTR(u32, levels[level].categories)[i] != common)
			return false;
	}
	return true;
}

/* What two ranges have in common: mls_context_glblub(). It is looked for among those that there are. */
te_function u32 te_range_common(u32 p, u32 one, u32 two)
{
	ARENA(struct te_range) *a = te_range_of(p, one), *b = te_range_of(p, two);
	ARENA(struct te_level) *levels = ARENA_PTR(struct te_level, TE(p)->level_at);
	u32 low = levels[a->low].sensitivity, high = levels[a->high].sensitivity,
	    count = TE(p)->ranges, i;

	if (levels[b->low].sensitivity > low)
		low = levels[b->low].sensitivity;
	if (levels[b->high].sensitivity < high)
		high = levels[b->high].sensitivity;
	if (low > high)
		return TE_NO_RANGE;
	te_for(i, count) {
		ARENA(struct te_range) *r = &ARENA_PTR(struct te_range, TE(p)->range_at)[i];

		if (r->valid && te_is_common(p, r->low, low, a->low, b->low) &&
		    te_is_common(p, r->high, high, a->high, b->high))
			return i;
	}
	return TE_NO_RANGE;
}

/* mls_compute_sid() */
static __always_inline u32 te_new_range(u32 p, u32 kind, u64 source, u64 target, u32 class,
					u32 flags)
{
	ARENA(struct te_range) *s = te_range_of(p, sid_range(source)),
			       *t = te_range_of(p, sid_range(target));
	u32 found;

	if (!TE(p)->mls)
		return sid_range(source);
	if (kind == TE_TRANSITION) {
		found = te_entry_of(p, te_key(TE_RANGE, class, sid_type(source), sid_type(target)));
		if (found)
			return found - 1;
		switch (te_class_of(p, class)->default_range) {
		case TE_SOURCE_LOW:
			return s->lowest;
		case TE_SOURCE_HIGH:
			return te_range_find(p, s->high, s->high);
		case TE_SOURCE_LOW_HIGH:
			return sid_range(source);
		case TE_TARGET_LOW:
			return t->lowest;
		case TE_TARGET_HIGH:
			return te_range_find(p, t->high, t->high);
		case TE_TARGET_LOW_HIGH:
			return sid_range(target);
		case TE_GREATEST_LOWEST:
			return te_range_common(p, sid_range(source), sid_range(target));
		}
	}
	if (kind == TE_MEMBER || !(flags & (TE_CLASS_PROCESS | TE_CLASS_SOCKET)))
		return s->lowest;
	return sid_range(source);
}

/* What is made: by which subject, where, and of which class and name. */
struct te_made {
	u64 source;
	u64 target;
	u64 name; /* text, or 0 */
	u32 len;
	u32 class;
};

/* The type of what has this name; 0: no rule names it. `name` is of the kernel's. */
te_function u32 te_named(u32 p, struct te_made *m __arg_nonnull)
{
	u64 key = te_key(TE_TRANSITION, m->class, 0, sid_type(m->target));
	u32 mask = TE(p)->names_mask, at = te_hash(key ^ te_text_hash(m->name, m->len)), i;

	te_for(i, mask + 1) {
		ARENA(struct te_name) *n =
			&ARENA_PTR(struct te_name, TE(p)->names)[(at + i) & mask];

		if (!n->key)
			break;
		if (n->key == key && n->len == m->len && te_in(n->sources, sid_type(m->source)) &&
		    te_text_is(m->name, n->name, m->len))
			return n->becomes;
	}
	return 0;
}

/* A labelling decision: TE_TRANSITION, TE_MEMBER, TE_CHANGE. The context may be one that is not valid. */
te_function u64 te_label(u32 p, u32 kind, struct te_made *m __arg_nonnull)
{
	ARENA(struct te_class) *c = te_class_of(p, m->class);
	u32 own = c->flags & (TE_CLASS_PROCESS | TE_CLASS_SOCKET), class = m->class;
	u64 source = m->source, target = m->target;
	u32 user = sid_user(source), role, type, found;

	if (kind == TE_MEMBER || c->default_user == TE_TARGET)
		user = sid_user(target);
	if (c->default_role)
		role = sid_role(c->default_role == TE_SOURCE ? source : target);
	else
		role = own ? sid_role(source) : TE(p)->object_r;
	if (c->default_type)
		type = sid_type(c->default_type == TE_SOURCE ? source : target);
	else
		type = sid_type(own ? source : target);
	found = te_entry_of(p, te_key(kind, class, sid_type(source), sid_type(target)));
	if (found)
		type = found;
	if (m->name && kind == TE_TRANSITION) {
		found = te_named(p, m);
		if (found)
			type = found;
	}
	if (kind == TE_TRANSITION) {
		found = te_entry_of(
			p, te_key(TE_ROLE_TRANSITION, class, sid_role(source), sid_type(target)));
		if (found)
			role = found;
	}
	return sid_make(user, role, type, te_new_range(p, kind, source, target, class, own));
}

/* What a state says of a kind of file. */
static __always_inline u32 te_said(u32 automaton, u32 state, u32 kind)
{
	ARENA(struct tg_automaton) *a = ARENA_PTR(struct tg_automaton, automaton);

	return ARENA_PTR(u32, a->answers)[automaton_answer(automaton, state) * TE_FILE_KINDS +
					  (kind & (TE_FILE_KINDS - 1))];
}

/* What lines say together of which these stand behind others: Said::over(). */
static __always_inline u32 te_over(u32 own, u32 before)
{
	u32 rank = own >> 16 & 0xff, none = own >> 24, rank_before = before >> 16 & 0xff,
	    none_before = before >> 24;
	bool ends = none_before > rank;
	u32 line = !rank || (ends && !none) ? before & 0xffff : own & 0xffff;

	if (rank_before > rank)
		rank = rank_before;
	if (ends && none_before > none)
		none = none_before;
	return line | rank << 16 | none << 24;
}

/* The SID by which a line labels. */
static __always_inline u64 te_line_sid(u32 p, u32 said)
{
	return ARENA_PTR(u64, TE(p)->lines)[said & 0xffff];
}

#endif
