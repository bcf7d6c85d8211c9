/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which policy is in force. */
#ifndef TIDEGATE_CORE_POLICY_H
#define TIDEGATE_CORE_POLICY_H

#include "lib/verifier.h"
#include "core/maps.h"

/*
 * The policy in force. Its number says also where its maps are, so that one store puts it in
 * force whole. Nodes are numbered anew by each: what was found by way of a node counts only
 * if the number is still the same afterwards.
 */
static __always_inline u32 policy_seqno(void)
{
	return READ_ONCE(policy.seqno);
}

static __always_inline u32 policy_slot(void)
{
	return policy_seqno() & 1;
}

#endif
