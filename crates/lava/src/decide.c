// SPDX-License-Identifier: GPL-2.0-or-later
/* The decisions of kernel/caps/rules.h over an image in memory, to be called from Rust (decide.rs). */
#include <stdint.h>
#include <stddef.h>

#include "abi/types.h"

#undef __always_inline
#define __always_inline inline __attribute__((always_inline, unused))
#define caps_function static __attribute__((unused))
#define caps_for(i, n) for (i = 0; i < (n); i++)
#define __arg_nonnull
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

#include "abi/caps_image.h"

/* What was taken from the session that asks, and by which revocation. */
struct caps_taken {
	u32 capability;
	u32 by;
};

static _Thread_local const struct caps_taken *taken;
static _Thread_local u32 taken_count;

struct caps_asked;
static u32 caps_taken_at(struct caps_asked *a, u32 capability)
{
	u32 i;

	(void)a;
	for (i = 0; i < taken_count; i++)
		if (taken[i].capability == capability)
			return taken[i].by;
	return 0;
}

#include "caps/rules.h"

void tidegate_caps_image(const u8 *at, u32 end, const struct caps_taken *list, u32 count)
{
	arena = at;
	arena_end = end;
	taken = list;
	taken_count = count;
}

static u32 walk(u32 automaton, const u8 *name, u32 len)
{
	u32 state, i;

	if (!automaton)
		return 0;
	state = ARENA_PTR(struct tg_automaton, automaton)->start;
	for (i = 0; i < len; i++)
		state = automaton_step(automaton, state, name[i]);
	return caps_answer_of(automaton, state);
}

u32 tidegate_caps_answer(u32 layer, u32 class, const u8 *name, u32 len)
{
	return walk(caps_automaton(layer, class), name, len);
}

u32 tidegate_caps_service_answer(u32 layer, u32 service, const u8 *name, u32 len)
{
	u32 i, count = ARENA_PTR(struct caps_subject, layer)->services_count;

	for (i = 0; i < count; i++) {
		const struct caps_of_service *s =
			ARENA_PTR(struct caps_of_service,
				  ARENA_PTR(struct caps_subject, layer)->services) +
			i;

		if (s->service == service)
			return walk(s->automaton, name, len);
	}
	return 0;
}

/* The number of the service at a socket, from 1. */
u32 tidegate_caps_service_at(u32 image, const u8 *name, u32 len)
{
	return walk(ARENA_PTR(struct caps_image, image)->sockets, name, len);
}

void tidegate_caps_ask(struct caps_asked *a, u32 wanted, u32 beside)
{
	caps_ask(a, wanted, beside);
}

void tidegate_caps_ask_layer(struct caps_asked *a, u32 answer)
{
	caps_ask_layer(a, answer);
}

u32 tidegate_caps_brings(struct caps_asked *a, u32 answer, u32 *next)
{
	return caps_brings(a, answer, next);
}

/* Bytes of what an image is made of. */
void tidegate_caps_sizes(u32 sizes[8])
{
	sizes[0] = sizeof(struct caps_image);
	sizes[1] = sizeof(struct caps_subject);
	sizes[2] = sizeof(struct caps_capability);
	sizes[3] = sizeof(struct caps_answer);
	sizes[4] = sizeof(struct caps_service);
	sizes[5] = sizeof(struct caps_operation);
	sizes[6] = sizeof(struct caps_need);
	sizes[7] = sizeof(struct caps_value);
}
