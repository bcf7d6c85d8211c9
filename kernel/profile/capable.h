/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the profile model: Linux's capabilities, and user namespaces. */
#ifndef TIDEGATE_PROFILE_CAPABLE_H
#define TIDEGATE_PROFILE_CAPABLE_H

#include "profile/verdict.h"

SEC("lsm/capable")
int BPF_PROG(profile_capable, const struct cred *cred, struct user_namespace *ns, int cap,
	     unsigned int opts)
{
	struct tg_note note = { .op = TG_OP_CAPABLE, .class = TG_C_SYSTEM };
	struct tg_profile __arena *p;
	struct tg_perms perms = {};
	struct tg_who who;
	u64 bit = 1ull << (cap & 63);

	who = who_is_confined();
	if (!who.profile)
		return 0;
	p = ARENA_PTR(struct tg_profile, who.profile);
	perms.allow = !!(p->caps_allow & bit);
	perms.audit = !!(p->caps_audit & bit);
	perms.quiet = !!(p->caps_quiet & bit);
	if (opts & CAP_OPT_NOAUDIT && p->mode != TG_MODE_COMPLAIN)
		return verdict_of(perms.allow || policy.permissive ? 0 : -EPERM);
	note.port = cap;
	return profile_decide(&who, perms, 1, -EPERM, &note);
}

/* A class of rules but that on files: the state behind its number; 0: the profile has none. */
static __always_inline u32 class_state(u32 profile, u8 class)
{
	struct tg_profile __arena *p = ARENA_PTR(struct tg_profile, profile);

	return p->policy.table ? profile_step(p->policy.table, p->policy.start, class) : 0;
}

/* May the current task make a user namespace? */
__noinline int userns_asked(void)
{
	struct tg_note note = { .op = TG_OP_USERNS, .class = TG_C_SYSTEM };
	struct tg_perms perms;
	struct tg_who who;
	u32 try, state;

	for (try = 0; try < PROFILE_TRIES; try++) {
		who = who_is_confined();
		if (!who.profile)
			return 0;
		state = class_state(who.profile, PROFILE_CLASS_NS);
		if (!state)
			return 0;
		perms = perms_of(profile_perms(
			ARENA_PTR(struct tg_profile, who.profile)->policy.table, state, false));
		if (policy_seqno() == who.number)
			return profile_decide(&who, perms, USERNS_CREATE_, -EACCES, &note);
	}
	return profile_refuse(USERNS_CREATE_, TG_R_BUSY, -EAGAIN, &note);
}

SEC("lsm/userns_create")
int BPF_PROG(profile_userns_create, const struct cred *cred)
{
	return profile_subjects_current() ? verdict_of(userns_asked()) : 0;
}

#endif
