/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a program has another one work for it, in the same task and before its next instruction. A global function is verified, and
 * compiled, once for each program that calls it. So what is long, and what many programs need, is in one program. This one is
 * attached to bpf_map_sum_elem_count(), a function of the kernel's that BPF programs may call, which counts the elements of a map.
 * The caller has it count those of a map that is there for nothing else; by this map the other program knows what it is called for.
 *
 * Others may call that function, too, with another map. The kernel skips a program that this processor is in the middle of, and
 * none is there while it is detached: whoever calls has to see what came of it.
 */
#ifndef TIDEGATE_LIB_SERVED_H
#define TIDEGATE_LIB_SERVED_H

#include "lib/kfuncs.h"
#include "lib/verifier.h"

/* The map that calls are known by. */
#define SERVED_BY(name)                           \
	struct {                                  \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, 1);           \
		__type(key, u32);                 \
		__type(value, u32);               \
	} name SEC(".maps")

#define SERVE(name) bpf_map_sum_elem_count((struct bpf_map *)&(name))

/* Of a program that serves: is it called for this? */
#define IS_SERVED(map, name) (address(map) == address(&(name)))

#endif
