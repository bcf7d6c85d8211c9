/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The access vector cache, and what is asked of it. A decision is remembered by its two SIDs, its class and the policy's
 * number, so none outlives its policy. te_avc_lookup() of verdict.h looks here first. On a miss te_server() decides, by the
 * policy's tables (rules.h).
 */
#ifndef TIDEGATE_TE_AVC_H
#define TIDEGATE_TE_AVC_H

#include "lib/seqcache.h"
#include "core/policy.h"
#include "te/server.h"
#include "te/subject.h"

struct te_avc {
	u64 source;
	u64 target;
	u32 version;
	u32 number; /* of the policy */
	u32 class;
	u32 allow;
	u32 auditallow;
	u32 auditdeny;
	u32 permissive; /* the source's type is */
	u32 pad[3];
};

#define TE_AVC_BITS 13
struct te_avc te_avc_entries[1 << TE_AVC_BITS] GLOBAL_OF(te);

/* What is asked: may the source do this to the target? */
struct te_query {
	u64 source;
	u64 target;
	u32 class;
	u32 request;
};

/* What is known of it. */
struct te_av_decision {
	u32 number;
	u32 allow;
	u32 auditallow;
	u32 auditdeny;
	u32 permissive;
};

static __always_inline struct te_avc *te_avc_of(struct te_query *q)
{
	u64 hash = (q->source ^ (q->target << 23 | q->target >> 41) ^ (u64)q->class << 51) *
		   0x9e3779b97f4a7c15ull;

	return &te_avc_entries[BOUND(hash >> (64 - TE_AVC_BITS), 1 << TE_AVC_BITS)];
}

static __always_inline bool te_avc_recall(struct te_query *q, u32 number, struct te_av_decision *k)
{
	struct te_avc *e = te_avc_of(q);
	u32 version = entry_version(&e->version);

	if (e->source != q->source || e->target != q->target || e->class != q->class ||
	    e->number != number)
		return false;
	k->allow = READ_ONCE(e->allow);
	k->auditallow = READ_ONCE(e->auditallow);
	k->auditdeny = READ_ONCE(e->auditdeny);
	k->permissive = READ_ONCE(e->permissive);
	k->number = number;
	return entry_is_whole(&e->version, version);
}

static __always_inline void te_avc_remember(struct te_query *q, struct te_av_decision *k)
{
	struct te_avc *e = te_avc_of(q);

	if (!entry_begin(&e->version))
		return;
	e->source = q->source;
	e->target = q->target;
	e->class = q->class;
	e->number = k->number;
	e->allow = k->allow;
	e->auditallow = k->auditallow;
	e->auditdeny = k->auditdeny;
	e->permissive = k->permissive;
	entry_end(&e->version);
}

/* A SID as this policy has it: of what is not governed, and of what it does not know any more. */
static __always_inline u64 te_valid(u32 p, u64 sid)
{
	if (sid == TE_UNGOVERNED)
		return te_initial(p, TE_SID_KERNEL);
	return te_is_valid(p, sid) ? sid : te_initial(p, TE_SID_UNLABELED);
}

#define TE_TRIES 8

/* Decides by the tables of the policy in force. False: others came all the while. */
__noinline bool te_server(struct te_query *q, struct te_av_decision *k)
{
	struct te_decision d;
	u32 try, number, p;
	u64 source;

	if (!q || !k)
		return false;
	for (try = 0; try < TE_TRIES; try++) {
		number = policy_seqno();
		p = te_tables(number);
		k->number = number;
		k->allow = ~0u;
		k->auditallow = k->auditdeny = k->permissive = 0;
		if (p) {
			source = te_valid(p, q->source);
			te_decide(p, source, te_valid(p, q->target), q->class, &d);
			k->allow = d.allow;
			k->auditallow = d.auditallow;
			k->auditdeny = d.auditdeny;
			k->permissive = te_in(TE(p)->permissive, sid_type(source));
		}
		if (policy_seqno() == number) {
			te_avc_remember(q, k);
			return true;
		}
	}
	return false;
}

/* A labelling decision by the policy in force; 0: others came all the while, or it has no such model. */
__noinline u64 te_new_label(u32 kind, struct te_made *m)
{
	struct te_made made;
	u32 try, number, p;
	u64 sid = 0;

	if (!m)
		return 0;
	for (try = 0; try < TE_TRIES; try++) {
		number = policy_seqno();
		p = te_tables(number);
		if (!p)
			return 0;
		made = *m;
		made.source = te_valid(p, m->source);
		made.target = te_valid(p, m->target);
		sid = te_label(p, kind, &made);
		if (!te_is_valid(p, sid))
			sid = 0;
		if (policy_seqno() == number)
			return sid;
	}
	return 0;
}

/* One of the policy's initial SIDs. */
static __always_inline u64 te_initial_sid(u32 which)
{
	u32 p = te_tables(policy_seqno());

	return p ? te_initial(p, which) : TE_UNGOVERNED;
}

#endif
