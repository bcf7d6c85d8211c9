/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A step of an automaton: the same source in the kernel and in the tests, where ARENA_PTR(type, offset) is a place in the image. */
#ifndef TIDEGATE_LIB_AUTOMATON_H
#define TIDEGATE_LIB_AUTOMATON_H

#include "abi/automaton.h"

static __always_inline u32 automaton_step(u32 automaton, u32 state, u8 byte)
{
	ARENA(struct tg_automaton) *a = ARENA_PTR(struct tg_automaton, automaton);

	return ARENA_PTR(u16, a->next)[state * a->width + a->classes[byte]];
}

/* Which of the answers a state has. */
static __always_inline u32 automaton_answer(u32 automaton, u32 state)
{
	return ARENA_PTR(u16, ARENA_PTR(struct tg_automaton, automaton)->accepts)[state];
}

#endif
