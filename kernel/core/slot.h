/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a slot says of a task (subject.h), in one word:
 *   bits 0..3 level, 4..6 attributes, 7 born here, 13..63 the task's address << 7
 * The highest eight bits of a kernel address are ones, and a task is aligned to the
 * 64 bytes of a cache line, so the address is whole.
 */
#ifndef TIDEGATE_CORE_SLOT_H
#define TIDEGATE_CORE_SLOT_H

#include "abi/policy.h"
#include "lib/bpf.h"

#define SLOT_BORN 0x80ull
#define SLOT_LABEL 0x1fffull /* all but the address */
#define SLOT_ATTRS (TG_PERMISSIVE | TG_NODEMOTE | TG_NONETDEMOTE)

/* Of a task that lies elsewhere there is no word. */
static __always_inline bool slot_fits(u64 task)
{
	return !(task & 63) && task >> 56 == 0xff;
}

static __always_inline u64 slot_word(u64 task, u8 level, u8 attrs)
{
	return task << 7 | (u64)(attrs & SLOT_ATTRS) << 1 | (level & 0xf);
}

/* Is it a word about this task? */
static __always_inline bool slot_is(u64 word, u64 task)
{
	return !((word ^ task << 7) & ~SLOT_LABEL);
}

static __always_inline u8 slot_level(u64 word)
{
	return word & 0xf;
}

static __always_inline u8 slot_attrs(u64 word)
{
	return word >> 1 & SLOT_ATTRS;
}

#endif
