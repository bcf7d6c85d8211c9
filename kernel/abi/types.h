/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Integers, as the kernel names them. */
#ifndef TIDEGATE_ABI_TYPES_H
#define TIDEGATE_ABI_TYPES_H

#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
#ifdef __bpf__
typedef _Bool bool;
#define true 1
#define false 0
#else
#include <stdbool.h>
#endif

#endif
