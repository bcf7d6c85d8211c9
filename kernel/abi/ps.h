/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines that iterators write for user space. */
#ifndef TIDEGATE_ABI_PS_H
#define TIDEGATE_ABI_PS_H

#include "abi/types.h"

/* A line of `tidegate ps`, written by the task iterator. */
struct tg_ps {
	u32 pid; /* thread group id */
	u32 tid; /* another one: only told of where it has rings */
	u32 ppid;
	u32 uid;
	u8 level;
	u8 attrs;
	u8 governed;
	u8 rings;     /* io_uring may hold descriptors that no table shows */
	u32 executed; /* the file below was opened by an execution, and not named later (PR_SET_MM) */
	u64 start;
	u64 cause;
	u64 exe; /* label of its program's file, 0: none */
	char comm[16];
};

/* What one of the other models has of a thread, written by that model's iterator. */
struct tg_ps_model {
	u64 start;
	u64 number; /* a profile's id, a SID, a domain's number; 0: it is not governed */
	u32 tid;
	u32 pad;
};

#endif
