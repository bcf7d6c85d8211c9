/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the profile model: resource limits. A hard limit that a profile has is not raised above that:
 * security/apparmor/resource.c. BPF cannot set a limit, so an execution does not: `tidegate run --profile` does before it.
 */
#ifndef TIDEGATE_PROFILE_RLIMIT_H
#define TIDEGATE_PROFILE_RLIMIT_H

#include "profile/verdict.h"

#define CAP_SYS_RESOURCE_ 24

/* What of a record has no letter. */
#define SET_RLIMIT_ (1u << 14)

/* May the current task, which c confines, set a limit of a task that is confined like it, or not? */
__noinline int rlimit_asked(struct tg_confined *c, u32 resource, u64 max, bool like)
{
	struct tg_note note = { .op = TG_OP_SYSTEM, .class = TG_C_SYSTEM };
	u32 try;

	if (!c)
		return -EACCES;
	note.port = resource;
	for (try = 0; try < PROFILE_TRIES; try++) {
		struct tg_who who = who_of(c);
		struct tg_perms perms = {};
		struct tg_profile __arena *p;

		if (!who.profile)
			return 0;
		p = ARENA_PTR(struct tg_profile, who.profile);
		if ((like || p->caps_allow & 1ull << CAP_SYS_RESOURCE_) &&
		    (resource >= TG_RLIMITS || !(p->limited & 1u << resource) ||
		     max <= ARENA_PTR(u64, p->limits)[resource]))
			perms.allow = SET_RLIMIT_;
		if (policy_seqno() == who.number)
			return profile_decide(&who, perms, SET_RLIMIT_, -EACCES, &note);
	}
	return profile_refuse(SET_RLIMIT_, TG_R_BUSY, -EAGAIN, &note);
}

SEC("lsm/task_setrlimit")
int BPF_PROG(profile_task_setrlimit, struct task_struct *task, unsigned int resource,
	     struct rlimit *new)
{
	struct tg_confined *c = profile_subjects_current(), *other;

	if (!c)
		return 0;
	other = profile_subjects_task(task);
	return verdict_of(
		rlimit_asked(c, resource, new->rlim_max, other && other->profile == c->profile));
}

#endif
