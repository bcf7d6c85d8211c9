/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What becomes of a confined task's request, and the record of it. */
#ifndef TIDEGATE_PROFILE_VERDICT_H
#define TIDEGATE_PROFILE_VERDICT_H

#include "core/policy.h"
#include "core/record.h"
#include "core/subject.h"
#include "profile/subject.h"
#include "profile/rules.h"

/* The current task as the profile model decides about it. */
struct tg_who {
	struct tg_confined *subject;
	u32 number;  /* of the policy */
	u32 profile; /* struct tg_profile; 0: not confined */
};

static __always_inline struct tg_who who_of(struct tg_confined *c)
{
	struct tg_who who = { .subject = c };

	if (!c)
		return who;
	who.number = policy_seqno();
	who.profile = confined_at(who.subject, who.number);
	if (!confines(who.profile))
		who.profile = 0;
	return who;
}

static __always_inline struct tg_who who_is_confined(void)
{
	return who_of(profile_subjects_current());
}

/* Writes the record of a request. */
__noinline u64 profile_audit(u32 request, u32 denied, struct tg_note *n __arg_nonnull)
{
	struct tg_confined *c;
	struct tg_event *e;
	u64 id;

	e = record_begin(&id);
	if (!e)
		return 0;
	c = profile_subjects_current();
	/* a task that is not confined is refused what another's profile does not let be done */
	if (c && n->reason >= TG_R_PROFILE) {
		e->profile = c->profile;
		e->request = request;
		e->denied = denied;
	}
	return record_end(e, id, n);
}

/* Records a request; the verdict, where `err` is that of a refusal. */
__noinline int profile_record(u32 verdict, u32 request, u32 denied, int err, struct tg_note *n)
{
	struct tg_stats *st;

	if (!n || err < -4095 || err > 0)
		return -EACCES;
	if (verdict == PROFILE_ALLOWED || policy.permissive == TG_LET_THROUGH)
		return 0;
	if (n->reason == TG_R_RULE)
		n->reason = TG_R_PROFILE;
	n->source = ~0u;
	n->to = subject_level(subject_current());
	st = stats_of(n->class);
	if (st && verdict >= PROFILE_QUIET)
		__sync_fetch_and_add(&st->denied, 1);
	if (verdict == PROFILE_AUDITED) {
		n->kind = TG_E_AUDITED;
		profile_audit(request, denied, n);
		return 0;
	}
	if (verdict == PROFILE_QUIET)
		return policy.permissive ? 0 : err;
	n->kind = verdict == PROFILE_COMPLAIN || policy.permissive ? TG_E_WOULD : TG_E_DENIED;
	profile_audit(request, denied, n);
	if (n->kind == TG_E_WOULD)
		return 0;
	if (verdict == PROFILE_KILLED)
		bpf_send_signal(9);
	return err;
}

/* What a profile says to a request that an automaton has decided. */
static __always_inline int profile_says(u32 profile, struct tg_perms perms, u32 request, int err,
					struct tg_note *n)
{
	struct tg_profile __arena *p = ARENA_PTR(struct tg_profile, profile);
	u32 verdict = profile_judge(p->mode, p->audit, perms, request);

	if (verdict == PROFILE_ALLOWED)
		return 0;
	/* of what is no file's, the kernel's AppArmor kills for a capability and a mount only */
	if (verdict == PROFILE_KILLED &&
	    (n->class == TG_C_SOCKET || n->class == TG_C_TASK || n->op == TG_OP_USERNS))
		verdict = PROFILE_REFUSED;
	return verdict_of(
		profile_record(verdict, request, request & (~perms.allow | perms.deny), err, n));
}

/*
 * The same of the current task's. A program that no rule of a profile in complain mode led
 * to is let do everything: a null profile's program.
 */
static __always_inline int profile_decide(struct tg_who *who, struct tg_perms perms, u32 request,
					  int err, struct tg_note *n)
{
	if (who->subject->learning &&
	    ARENA_PTR(struct tg_profile, who->profile)->mode == TG_MODE_COMPLAIN)
		perms = (struct tg_perms){};
	return profile_says(who->profile, perms, request, err, n);
}

/* What cannot be decided by rules is refused, in complain mode, too. */
static __always_inline int profile_refuse(u32 request, u8 reason, int err, struct tg_note *n)
{
	struct tg_who who = who_is_confined();
	u32 verdict = PROFILE_REFUSED;

	if (who.profile && ARENA_PTR(struct tg_profile, who.profile)->mode == TG_MODE_KILL &&
	    n->class != TG_C_SOCKET)
		verdict = PROFILE_KILLED;
	n->reason = reason;
	return verdict_of(profile_record(verdict, request, request, err, n));
}

static __always_inline struct tg_perms perms_of(ARENA(struct tg_perms) * from)
{
	struct tg_perms p = {
		.allow = from->allow,
		.deny = from->deny,
		.audit = from->audit,
		.quiet = from->quiet,
		.exec = from->exec,
	};

	return p;
}

/* What both allow, of an object whose owner cannot be told. */
static __always_inline struct tg_perms perms_both(struct tg_perms a, struct tg_perms b)
{
	a.allow &= b.allow;
	a.deny |= b.deny;
	a.audit |= b.audit;
	a.quiet &= b.quiet;
	return a;
}

/* Whose an object is. */
enum tg_owner { OWNER_SELF, OWNER_OTHER, OWNER_UNSURE };

/* An idmapped mount may give it to somebody else than the inode says. */
static __always_inline u32 owner_by(u32 uid, u64 mnt)
{
	struct task_struct *me = bpf_get_current_task_btf();

	if ((u64)CAST(struct vfsmount, mnt)->mnt_idmap != symbols.nop_mnt_idmap)
		return OWNER_UNSURE;
	return uid == me->cred->fsuid.val ? OWNER_SELF : OWNER_OTHER;
}

static __always_inline struct tg_perms perms_by(u32 table, u32 state, u32 owner)
{
	struct tg_perms p = perms_of(profile_perms(table, state, owner != OWNER_OTHER));

	return owner == OWNER_UNSURE ? perms_both(p, perms_of(profile_perms(table, state, false))) :
				       p;
}

/* Is all of it allowed, and nothing to be recorded? */
static __always_inline bool is_plain(struct tg_profile __arena *p, u32 allow, u32 deny, u32 audit,
				     u32 request)
{
	return !(request & (~allow | deny | audit)) && !p->audit;
}

/* Does the rules' state say so, whoever's the object is? */
static __always_inline bool is_simply_allowed(struct tg_who *who, u32 table, u32 state, u32 request)
{
	return !(request & ~profile_pair(table, state)->plain) &&
	       !ARENA_PTR(struct tg_profile, who->profile)->audit && !who->subject->learning;
}

/* The state after a profile's name, 0: that of none. */
static __always_inline u32 profile_named(u32 table, u32 state, u32 of)
{
	static const char unconfined[] = "unconfined";
	u32 i;

	if (!of) {
		for (i = 0; i < sizeof(unconfined) - 1; i++)
			state = profile_step(table, state, unconfined[i]);
		return state;
	}
	bpf_for(i, 0, ARENA_PTR(struct tg_profile, of)->name_len)
		state = profile_step(table, state,
				     ARENA_PTR(u8, ARENA_PTR(struct tg_profile, of)->name)[i]);
	return state;
}

/* Policies that come while a request is decided, before it is refused. */
#define PROFILE_TRIES 8

#endif
