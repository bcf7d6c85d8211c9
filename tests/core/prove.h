/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the proofs are written in, for cbmc. A WITNESS is a claim that must fail:
 * it shows that what the claims beside it speak of can happen at all, so that
 * none of them holds for want of cases. run.sh demands both.
 */
#ifndef CORE_PROVE_H
#define CORE_PROVE_H

#include "native.h"

#define PROVE(claim, text) __CPROVER_assert(claim, text)
#define WITNESS(event, text) __CPROVER_assert(!(event), "witness: " text)
#define ASSUME(condition) __CPROVER_assume(condition)

u8 nondet_u8(void);
u16 nondet_u16(void);
u32 nondet_u32(void);
bool nondet_bool(void);

#endif
