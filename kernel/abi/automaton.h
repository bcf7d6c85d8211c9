/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Automata over bytes, as models have them in their images: file contexts, capabilities. crates/bundle/src/automaton.rs.
 * State 0 leads nowhere but to itself.
 */
#ifndef TIDEGATE_ABI_AUTOMATON_H
#define TIDEGATE_ABI_AUTOMATON_H

#include "abi/types.h"

struct tg_automaton {
	u32 width;
	u32 start;
	u32 next;    /* u16 of each state and class of bytes */
	u32 accepts; /* u16 of each state: which of the answers */
	u32 answers; /* u32 of each; the model says what they are, and how many belong to one */
	u8 classes[256];
};

#endif
