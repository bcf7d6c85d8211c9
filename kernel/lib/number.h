/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of processes, as tasks say them: each PID namespace has its own. */
#ifndef TIDEGATE_LIB_NUMBER_H
#define TIDEGATE_LIB_NUMBER_H

#include "lib/verifier.h"

static __always_inline struct pid *own_pid(void)
{
	struct task_struct *leader =
		CAST(struct task_struct, address(bpf_get_current_task_btf()->group_leader));

	return CAST(struct pid, address(leader->thread_pid));
}

/* The number that the current process has for itself: in its own namespace, where find_vpid() looks for what it says. */
static __always_inline u32 own_number(void)
{
	struct pid *pid = own_pid();
	u32 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number),
			      (void *)address(pid) + bpf_core_field_offset(struct pid, numbers) +
				      (pid->level & 31) * bpf_core_type_size(struct upid));
	return number;
}

/* Does it say the numbers of the first namespace, which helpers take? */
static __always_inline bool numbers_are_first(void)
{
	return !own_pid()->level;
}

#endif
