/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What depends on the processor's architecture. */
#ifndef TIDEGATE_LIB_ARCH_H
#define TIDEGATE_LIB_ARCH_H

#ifdef __TARGET_ARCH_x86
#include "lib/arch_x86.h"
#else
#error "this architecture has no lib/arch_*.h yet"
#endif

/*
 * A table of calls has a bit for each number. It is made of a list: a macro of a word's place in the table, which has CALL() or CALL32()
 * of each call, so that each bit comes into its word. A call that an architecture does not have has the number ~0, which is in no word.
 */
#define CALLS 512 /* more than there are */
#define CALL_BIT(word, nr) ((nr) >> 6 == (word) ? 1ull << ((nr) & 63) : 0)
#define CALL(word, name) CALL_BIT(word, NR_##name)
#define CALL32(word, name) CALL_BIT(word, NR32_##name)
#define CALL_TABLE(list) { list(0), list(1), list(2), list(3), list(4), list(5), list(6), list(7) }
#define CALL_IS_IN(table, nr) \
	((nr) < CALLS && (table)[BOUND((nr) >> 6, CALLS / 64)] >> ((nr) & 63) & 1)

/* A call that has no place in a table, as x32 has some of its own, may be any. */
#define CALL_IS_UNKNOWN(nr) ((s32)(nr) >= CALLS)
#define CALL_MAY_BE_IN(table, nr) (CALL_IS_UNKNOWN(nr) || CALL_IS_IN(table, nr))

/*
 * May what the current task does be a request of a ring, and not its call? A task with rings may be about one at the end of any call;
 * and a worker that was born there says for life that it is in that call.
 */
static __always_inline bool may_be_request(void)
{
	struct task_struct *me = bpf_get_current_task_btf();

	return me->io_uring || me->flags & (PF_IO_WORKER | PF_USER_WORKER);
}

#endif
