/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A slot's word says what was put in, of the task it was put in for and of no other. */
#include "prove.h"
#include "core/slot.h"

static u64 any_task(void)
{
	u64 task = (u64)nondet_u32() << 32 | nondet_u32();

	ASSUME(slot_fits(task));
	return task;
}

void prove_slot_word(void)
{
	u64 task = any_task(), other = any_task();
	u8 level = nondet_u8(), attrs = nondet_u8();
	u64 word = slot_word(task, level, attrs), born = word | SLOT_BORN;

	ASSUME(level < TG_LEVELS);
	PROVE(slot_is(word, task) && slot_is(born, task), "it is its task's");
	PROVE(task == other || (!slot_is(word, other) && !slot_is(born, other)),
	      "and nobody else's");
	PROVE(slot_level(word) == level && slot_level(born) == level, "the level");
	PROVE(slot_attrs(word) == (attrs & SLOT_ATTRS) && slot_attrs(born) == slot_attrs(word),
	      "the attributes");
	PROVE(!(word & SLOT_BORN), "born here only who was");
	PROVE(!slot_is(0, task), "an empty slot is nobody's");
	WITNESS(slot_level(born) == TG_LEVELS - 1 && slot_attrs(born) == SLOT_ATTRS,
		"every bit in use");
	WITNESS(word != slot_word(other, level, attrs), "words differ");
}
