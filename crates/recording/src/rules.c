/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The decisions of kernel/lomac/rules.h, to be called from Rust (rules.rs). */
#include <stdint.h>

#include "abi/types.h"

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))

#include "abi/policy.h"
#include "abi/record.h"
#include "abi/ps.h"
#include "lomac/rules.h"

u8 tidegate_observe(struct lomac_subject s, struct lomac_object o)
{
	return lomac_observe(s, o);
}

u8 tidegate_observe_net(struct lomac_subject s, u8 net)
{
	return lomac_observe_net(s, net);
}

bool tidegate_modify(struct lomac_subject s, struct lomac_object o, u8 top)
{
	return lomac_modify(s, o, top);
}

bool tidegate_open(struct lomac_subject s, struct lomac_object o, u8 top)
{
	return lomac_open(s, o, top);
}

bool tidegate_names(struct lomac_subject s, struct lomac_object dir, u8 top)
{
	return lomac_names(s, dir, top);
}

u8 tidegate_create(struct lomac_subject s, struct lomac_object place)
{
	return lomac_create(s, place);
}

u8 tidegate_rename(struct lomac_object o, struct lomac_object place)
{
	return lomac_rename(o, place);
}

bool tidegate_act(struct lomac_subject s, u8 target)
{
	return lomac_act(s, target);
}

bool tidegate_controls(struct lomac_subject s, u8 attrs, u8 top)
{
	return lomac_controls(s, attrs, top);
}
