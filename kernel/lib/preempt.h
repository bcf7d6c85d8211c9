/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that is not preempted, or a process of the lowest priority would have what it holds until it runs again. Older
 * kernels let no global function be called then; theirs preempt nothing in the kernel unless they are told to
 * (preempt=full).
 */
#ifndef TIDEGATE_LIB_PREEMPT_H
#define TIDEGATE_LIB_PREEMPT_H

#include "lib/bpf.h"

static __always_inline void work_begin(void)
{
	if (bpf_core_field_exists(((struct bpf_subprog_info *)0)->might_sleep))
		bpf_preempt_disable();
}

static __always_inline void work_end(void)
{
	if (bpf_core_field_exists(((struct bpf_subprog_info *)0)->might_sleep))
		bpf_preempt_enable();
}

#endif
