/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls. */
#ifndef TIDEGATE_LIB_CALL_H
#define TIDEGATE_LIB_CALL_H

#include "lib/bpf.h"

/*
 * The number of the call that a task is in, or was in last; below 0: it is in none. The kernel takes the lower half of the
 * register alone, and keeps what the program had in the other half, too (syscall_get_nr()).
 */
static __always_inline s32 call_of(struct task_struct *t)
{
	return (s32)((struct pt_regs *)bpf_task_pt_regs(t))->orig_ax;
}

#endif
