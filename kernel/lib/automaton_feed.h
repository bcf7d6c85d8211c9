/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Automata, fed with texts of the kernel's. */
#ifndef TIDEGATE_LIB_AUTOMATON_FEED_H
#define TIDEGATE_LIB_AUTOMATON_FEED_H

#include "lib/arena.h"
#include "lib/automaton.h"
#include "lib/memory.h"

/* The state after a text. */
static __always_inline u32 automaton_feed(u32 automaton, u32 state, u64 text, u32 len)
{
	ARENA(struct tg_automaton) * a;
	u32 width, next;
	u64 word = 0;

	USES_ARENA();
	a = ARENA_PTR(struct tg_automaton, automaton);
	width = a->width;
	next = a->next;
	for (u32 i = UNKNOWN_ZERO; i < len && MAY_LOOP; i++) {
		if (!(i & 7))
			word = read_kernel_u64(text + i);
		state = ARENA_PTR(u16, next)[state * width + a->classes[word & 0xff]];
		word >>= 8;
	}
	return state;
}

/* After a slash and a component. */
__noinline u32 automaton_feed_component(u32 automaton, u32 state, u64 dentry)
{
	struct dentry *d = CAST(struct dentry, dentry);

	USES_ARENA();
	return automaton_feed(automaton, automaton_step(automaton, state, '/'),
			      address(d->d_name.name), d->d_name.len & 255);
}

#endif
