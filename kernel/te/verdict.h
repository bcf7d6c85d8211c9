/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What becomes of a request under the `te` model, and the record of it. avc_has_perm() of security/selinux. */
#ifndef TIDEGATE_TE_VERDICT_H
#define TIDEGATE_TE_VERDICT_H

#include "core/record.h"
#include "core/subject.h"
#include "te/avc.h"

/* Writes the record of a decision. */
__noinline u64 te_audit(struct te_query *q __arg_nonnull, u32 denied,
			struct tg_note *n __arg_nonnull)
{
	struct tg_event *e;
	u64 id;

	e = record_begin(&id);
	if (!e)
		return 0;
	e->ssid = q->source;
	e->tsid = q->target;
	e->tclass = q->class;
	e->request = q->request;
	e->denied = denied;
	return record_end(e, id, n);
}

/* Records a decision; the verdict. */
__noinline int te_record(struct te_query *q, struct te_av_decision *k, struct tg_note *n)
{
	struct tg_stats *st;
	u32 denied;
	bool lets;

	if (!q || !k || !n)
		return -EACCES;
	denied = q->request & ~k->allow;
	lets = k->permissive || policy.permissive;
	if (policy.permissive == TG_LET_THROUGH)
		return 0;
	if (denied ? !(denied & k->auditdeny) : !(q->request & k->auditallow))
		return denied && !lets ? -EACCES : 0;
	n->reason = TG_R_TE;
	n->source = ~0u;
	n->to = subject_level(subject_current());
	n->kind = !denied ? TG_E_AUDITED : lets ? TG_E_WOULD : TG_E_DENIED;
	st = stats_of(TG_C_TE);
	if (st && denied)
		st->denied++;
	te_audit(q, denied, n);
	return n->kind == TG_E_DENIED ? -EACCES : 0;
}

/* No decision could be had: refused, in permissive domains, too. */
static __noinline int te_no_decision(struct te_query *q, struct tg_note *n)
{
	struct te_av_decision none = { .auditdeny = ~0u };

	return te_record(q, &none, n) ? -EAGAIN : 0;
}

/* What is known of a question, by the cache or by the server; false: no decision could be had. */
static __always_inline bool te_avc_lookup(struct te_query *q, struct te_av_decision *k,
					  struct tg_stats *st)
{
	if (te_avc_recall(q, policy_seqno(), k)) {
		if (st)
			st->cache++;
		return true;
	}
	if (st)
		st->server++;
	return te_server(q, k);
}

/* May the source do this to the target? 0 or -EACCES. */
__noinline int te_asked(u64 source, u64 target, u32 class, u32 request, struct tg_note *n)
{
	struct te_query q = {
		.source = source, .target = target, .class = class, .request = request
	};
	struct tg_stats *st = stats_of(TG_C_TE);
	struct te_av_decision k;

	if (!n)
		return -EACCES;
	if (st)
		st->queries++;
	if (!te_avc_lookup(&q, &k, st))
		return te_no_decision(&q, n);
	return request & (~k.allow | k.auditallow) ? te_record(&q, &k, n) : 0;
}

/*
 * The same of a permission for a single ioctl or netlink message, where rules may say more of that: `which` is its number,
 * and TE_MESSAGE with a message. avc_has_extended_perms()
 */
#define TE_MESSAGE 0x10000
__noinline int te_single_asked(struct te_query *q, u32 which, struct tg_note *n)
{
	struct tg_stats *st = stats_of(TG_C_TE);
	struct te_single one;
	struct te_av_decision k;
	u32 try, p, says;

	if (!q || !n)
		return -EACCES;
	if (st)
		st->queries++;
	for (try = 0; try < TE_TRIES; try++) {
		if (!te_avc_lookup(q, &k, st))
			break;
		p = te_tables(k.number);
		says = 0;
		if (p) {
			one.source = sid_type(te_valid(p, q->source));
			one.target = sid_type(te_valid(p, q->target));
			one.number = which & 0xffff;
			one.message = !!(which & TE_MESSAGE);
			says = te_extended_of(p, &one, q->class);
		}
		if (policy_seqno() != k.number)
			continue;
		if (says) {
			if (!(says & TE_ALLOWS))
				k.allow &= ~q->request;
			if (!(says & TE_AUDITS))
				k.auditallow &= ~q->request;
			if (says & TE_KEEPS_SILENT)
				k.auditdeny &= ~q->request;
		}
		return q->request & (~k.allow | k.auditallow) ? te_record(q, &k, n) : 0;
	}
	return te_no_decision(q, n);
}

static __always_inline int te_avc_has_perm(u64 source, u64 target, u32 class, u32 request,
					   struct tg_note *n)
{
	return verdict_of(te_asked(source, target, class, request, n));
}

/* Is it allowed, whatever becomes of it? Nothing is recorded. */
static __always_inline bool te_is_allowed(u64 source, u64 target, u32 class, u32 request)
{
	struct te_query q = {
		.source = source, .target = target, .class = class, .request = request
	};
	struct te_av_decision k;

	if (!te_avc_lookup(&q, &k, NULL))
		return false;
	return !(request & ~k.allow) || k.permissive;
}

#endif
