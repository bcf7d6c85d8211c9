// SPDX-License-Identifier: GPL-2.0-or-later
/* The decisions of kernel/te/rules.h over an image in memory, to be called from Rust (decide.rs). */
#include <stdint.h>
#include <stddef.h>
#include <string.h>

#include "abi/types.h"

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __arg_nonnull
#define te_function static __attribute__((unused))
#define te_for(i, n) for (i = 0; i < (n); i++)
#define ARENA(type) const type

/* The image that is asked, where 0 would be in the arena, and its end; one thread asks at a time. */
static _Thread_local const u8 *arena;
static _Thread_local u32 arena_end;
static const u64 nothing[64];

/* What lies beyond the image reads as zeros, as in the arena. */
static const void *part(u32 at)
{
	return at < arena_end ? (const void *)(arena + at) : (const void *)nothing;
}

#define ARENA_PTR(type, offset) ((const type *)part(offset))

#include "te_classes.h"
#include "abi/te_image.h"

#define te_byte(at) (*(const u8 *)(at))

static u32 te_text_hash(u64 text, u32 len)
{
	u32 hash = 0x811c9dc5, i;

	for (i = 0; i < len; i++)
		hash = (hash ^ ((const u8 *)text)[i]) * 0x1000193;
	return hash;
}

static bool te_text_is(u64 text, u32 own, u32 len)
{
	return !memcmp((const void *)text, ARENA_PTR(u8, own), len);
}

#include "te/rules.h"
#include "te/labelling.h"

void tidegate_te_image(const u8 *at, u32 end)
{
	arena = at;
	arena_end = end;
}

u64 tidegate_te_parse(u32 p, const u8 *text, u32 len)
{
	return te_parse(p, (u64)text, len);
}

void tidegate_te_decide(u32 p, u64 source, u64 target, u32 class, struct te_decision *d)
{
	te_decide(p, source, target, class, d);
}

u64 tidegate_te_label(u32 p, u32 kind, u64 source, u64 target, u32 class, const char *name, u32 len)
{
	struct te_made made = { .source = source,
				.target = target,
				.name = (u64)name,
				.len = len,
				.class = class };

	return te_label(p, kind, &made);
}

u32 tidegate_te_extended(u32 p, u64 source, u64 target, u32 class, u32 number, u32 message)
{
	struct te_single one = { .source = sid_type(source),
				 .target = sid_type(target),
				 .number = number,
				 .message = message };

	return te_extended_of(p, &one, class);
}

bool tidegate_te_is_permissive(u32 p, u64 sid)
{
	return te_in(TE(p)->permissive, sid_type(sid));
}

bool tidegate_te_is_valid(u32 p, u64 sid)
{
	return te_is_valid(p, sid);
}

u32 tidegate_te_validates(u32 p, u64 old, u64 new_, u64 task, u32 class)
{
	return te_validates(p, old, new_, task, class);
}

u64 tidegate_te_file(u32 p, const u8 *path, u32 len, u32 kind)
{
	u32 said = 0, i, k;

	for (k = 0; k < TE(p)->files_count; k++) {
		u32 automaton = ARENA_PTR(u32, TE(p)->files)[k],
		    state = ARENA_PTR(struct tg_automaton, automaton)->start;

		for (i = 0; i < len; i++)
			state = automaton_step(automaton, state, path[i]);
		said = te_over(te_said(automaton, state, kind), said);
	}
	return te_line_sid(p, said);
}
