/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The arena, in which user space lays out images of policies. */
#ifndef TIDEGATE_LIB_ARENA_H
#define TIDEGATE_LIB_ARENA_H

#include "abi/policy.h"
#include "lib/bpf.h"

#define __arena __attribute__((address_space(1)))
#define ARENA(type) type __arena
#define ARENA_PTR(type, offset) ((type __arena *)(u64)(offset))

/* Two images: the policy's in force, and the one being loaded. A page is there once it was written to. */
struct {
	__uint(type, 33);        /* BPF_MAP_TYPE_ARENA */
	__uint(map_flags, 1024); /* BPF_F_MMAPABLE */
	__uint(max_entries, TG_ARENA_PAGES);
	__ulong(map_extra, 0x1ull << 44); /* where user space has it, in every process */
} arena SEC(".maps");

/*
 * Makes the arena a map of the program that is here. Offsets in it are numbers, and the verifier lets a program use them only if the
 * program refers to the map.
 */
#define USES_ARENA() asm volatile("" ::"r"(&arena))

#endif
