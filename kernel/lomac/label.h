/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Labels of objects; those of subjects are in subject.h.
 *
 * An object's label is one word:
 *   bits  0..7   level
 *   bits  8..23  attributes of its rule (enum tg_attr)
 *   bits 24..27  where it comes from (enum tg_origin)
 *   bits 28..31  zero, unless there is none
 *   bits 32..63  policy sequence number it was found under
 * Inode storage only remembers it; `given` and the map hold the truth.
 */
#ifndef TIDEGATE_LOMAC_LABEL_H
#define TIDEGATE_LOMAC_LABEL_H

#include "lib/bpf.h"

enum tg_origin {
	TG_FROM_RULE = 1,  /* its path's rule */
	TG_FROM_GIVEN = 2, /* given at creation, by a fall or by promotion */
	TG_FROM_KIND = 3,  /* its filesystem or file type has a fixed answer */
};

#define LABEL_FULL (1u << 27)    /* its whole path matched the node */
#define LABEL_UNKNOWN (1u << 28) /* no label: fail closed */
/* besides: it could not be looked for now, and nobody falls for that */
#define LABEL_LATER (1u << 29)

static __always_inline u8 label_level(u64 l)
{
	return l;
}
static __always_inline u16 label_attrs(u64 l)
{
	return l >> 8;
}
static __always_inline u8 label_origin(u64 l)
{
	return (l >> 24) & 7;
}
static __always_inline u32 label_seqno(u64 l)
{
	return l >> 32;
}

static __always_inline u64 label_make(u8 level, u16 attrs, u8 origin, u32 seqno)
{
	return (u64)seqno << 32 | (u32)origin << 24 | (u32)attrs << 8 | level;
}

#endif
