/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads of the kernel's memory, and the order of reads and writes. */
#ifndef TIDEGATE_LIB_MEMORY_H
#define TIDEGATE_LIB_MEMORY_H

#include "lib/verifier.h"

/* The kernel's words at any address; what is not there is 0. */
static __always_inline u64 read_kernel_u64(u64 at)
{
	return CAST(struct qstr, at)->hash_len;
}

/* What is read or written before is read or written before, on every processor. */
static __always_inline void in_order(void)
{
#ifdef __TARGET_ARCH_x86
	asm volatile("" ::: "memory");
#else
	u64 own = 0;

	__sync_fetch_and_add(&own, 0);
#endif
}

#endif
