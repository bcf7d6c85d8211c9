/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A step of an automaton: the same source in the kernel and in the tests, where PART(type, offset) is a place in the image. */
#ifndef TIDEGATE_LIB_AUTOMATON_H
#define TIDEGATE_LIB_AUTOMATON_H

#include "abi/automaton.h"

static __always_inline u32 automaton_step(u32 automaton, u32 state, u8 byte)
{
	AT(struct tg_automaton) *a = PART(struct tg_automaton, automaton);

	return PART(u16, a->next)[state * a->width + a->classes[byte]];
}

/* Which of the answers a state has. */
static __always_inline u32 automaton_answer(u32 automaton, u32 state)
{
	return PART(u16, PART(struct tg_automaton, automaton)->accepts)[state];
}

#endif
