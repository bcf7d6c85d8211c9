/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The counts of each object manager. */
#ifndef TIDEGATE_CORE_STATS_H
#define TIDEGATE_CORE_STATS_H

#include "core/maps.h"

static __always_inline struct tg_stats *stats_of(u32 class)
{
	return bpf_map_lookup_elem(&stats, &class);
}

#endif
