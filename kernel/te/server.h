/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's loops and reads of texts for rules.h and labelling.h, which this header includes. te_server() of avc.h asks
 * them for a decision.
 */
#ifndef TIDEGATE_TE_SERVER_H
#define TIDEGATE_TE_SERVER_H

#include "lib/arena.h"
#include "lib/memory.h"

#define te_function __noinline
#define te_for(i, n) bpf_for(i, 0, n)

#define te_byte(at) ((u8)read_kernel_u64(at))

/* Texts of the kernel's, against those of the image. */
__noinline u32 te_text_hash(u64 text, u32 len)
{
	u32 hash = 0x811c9dc5, i;

	bpf_for(i, 0, len) {
		u8 byte = read_kernel_u64(text + i);

		hash = (hash ^ byte) * 0x1000193;
	}
	return hash;
}

__noinline bool te_text_is(u64 text, u32 own, u32 len)
{
	u32 i;

	USES_ARENA();
	bpf_for(i, 0, len) {
		u8 byte = read_kernel_u64(text + i);

		if (ARENA_PTR(u8, own)[i] != byte)
			return false;
	}
	return true;
}

#include "te/rules.h"
#include "te/labelling.h"

#endif
