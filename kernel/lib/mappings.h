/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does anybody change what a process has mapped? */
#ifndef TIDEGATE_LIB_MAPPINGS_H
#define TIDEGATE_LIB_MAPPINGS_H

#include "lib/arch.h"

#define RWSEM_WRITER_LOCKED 1

/*
 * Counts the tasks that lock the memory to change mappings; odd: one has. Where it is the same and even before a look and after it,
 * nothing was changed between. Linux 6.12 counts each task that unlocks the memory, before the lock itself says so.
 */
static __always_inline u64 mappings_sequence(u64 mm)
{
	struct mm_struct___6_12 *m = (struct mm_struct___6_12 *)CAST(struct mm_struct, mm);
	u64 now = 0;

	in_order();
	if (bpf_core_field_exists(struct mm_struct, mm_lock_seq)) {
		now = CAST(struct mm_struct, mm)->mm_lock_seq.sequence;
	} else if (bpf_core_field_exists(struct mm_struct___6_12, mm_lock_seq)) {
		if (bpf_core_field_exists(m->mmap_lock.count))
			now = m->mmap_lock.count.counter & RWSEM_WRITER_LOCKED;
		in_order();
		now |= (u64)(u32)m->mm_lock_seq << 1;
	}
	in_order();
	return now;
}

#endif
