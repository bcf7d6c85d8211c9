/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a model keeps of a task: a slot by the task's address, as task storage takes four times as long to find, and
 * a fork several times its own checks to make. Whose slot is another's has storage. A slot is free again when its task is
 * freed (task_free), before its address can be another's, and is all zeros then.
 *
 * TASK_SLOTS(model, of, value_type, bits): `value_type` has `u64 task`, its address, 0 in a slot that is free; and
 * `u64 spilled`, of a slot: some task that hashes here has storage, or had.
 */
#ifndef TIDEGATE_LIB_TASK_SLOTS_H
#define TIDEGATE_LIB_TASK_SLOTS_H

#include "lib/bpf.h"
#include "lib/storage.h"
#include "lib/verifier.h"

#define TASK_SLOTS(model, of, value_type, bits)                                         \
	value_type of##_slots[1 << (bits)] GLOBAL_OF(model);                            \
                                                                                        \
	struct {                                                                        \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE);                                \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                   \
		__type(key, int);                                                       \
		__type(value, value_type);                                              \
	} of SEC(".maps");                                                              \
                                                                                        \
	static __always_inline value_type *of##_slot(u64 task)                          \
	{                                                                               \
		return &of##_slots[BOUND(task * 0x9e3779b97f4a7c15ull >> (64 - (bits)), \
					 1 << (bits))];                                 \
	}                                                                               \
                                                                                        \
	/* What is kept of a task; NULL: nothing. */                                    \
	static __always_inline value_type *of##_task(struct task_struct *task)          \
	{                                                                               \
		u64 at = address(task);                                                 \
		value_type *slot = of##_slot(at);                                       \
                                                                                        \
		if (slot->task == at)                                                   \
			return slot;                                                    \
		return slot->spilled ? bpf_task_storage_get(&of, task, 0, 0) : NULL;    \
	}                                                                               \
                                                                                        \
	static __always_inline value_type *of##_current(void)                           \
	{                                                                               \
		return of##_task(bpf_get_current_task_btf());                           \
	}                                                                               \
                                                                                        \
	/* The same, made if there is nothing; NULL: no memory. */                      \
	static __always_inline value_type *of##_made(struct task_struct *task)          \
	{                                                                               \
		value_type *c = of##_task(task), *slot = of##_slot(address(task));      \
		u64 holder;                                                             \
                                                                                        \
		if (c)                                                                  \
			return c;                                                       \
		holder = __sync_val_compare_and_swap(&slot->task, 0, address(task));    \
		/* somebody else may have made it for the task meanwhile */             \
		if (!holder || holder == address(task))                                 \
			return slot;                                                    \
		slot->spilled = 1;                                                      \
		return TASK_STORAGE_MADE(&of, task, 0);                                 \
	}

#endif
