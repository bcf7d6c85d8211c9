/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager: root's privilege. Below the top level no capability over what all share is
 * of use but those of LOMAC_CAPS (docs/reference/lomac.md has the reason of each), and none but limits
 * by CAP_SYS_RESOURCE. So what root may do that others may not needs no list of calls: the
 * kernel asks for a capability.
 */
#ifndef TIDEGATE_LOMAC_CAPABLE_H
#define TIDEGATE_LOMAC_CAPABLE_H

#include "lomac/namespace.h"
#include "lomac/privilege.h"

/* A function of its own: a task at the top does not come here. */
static __noinline int refuse_capability(u32 cap)
{
	struct tg_note n = {
		.op = TG_OP_CAPABLE, .class = TG_C_SYSTEM, .source = ~0u, .reason = TG_R_TOP_ONLY
	};

	n.port = cap;
	n.object = policy.top;
	count_query(TG_C_SYSTEM);
	return deny(subject_current(), &n, -EPERM);
}

SEC("lsm/capable")
int BPF_PROG(lomac_capable, const struct cred *cred, struct user_namespace *ns, int cap,
	     unsigned int opts)
{
	struct lomac_subject who = {};

	if (ns->level)
		return NAMESPACE_CAPS >> (cap & 63) & 1 ?
			       namespace_is_own(address(ns), cap == CAP_SYS_ADMIN) :
			       0;
	if (!is_privilege(cred, ns, cap))
		return 0;
	who.level = level_modifies();
	if (lomac_has_capability(who, cap, policy.net_highest, policy.top))
		return 0;
	if (is_no_news(cred, cap, opts))
		return policy.permissive ? 0 : -EPERM;
	return verdict_of(refuse_capability(cap));
}

/*
 * A ring's request may name credentials that were registered with the ring. The kernel then
 * acts by those, as it does for an overlay: below the top they may have no privilege.
 */
SEC("lsm/uring_override_creds")
int BPF_PROG(lomac_uring_override_creds, const struct cred *new)
{
	if (new->user_ns->level || !(new->cap_effective.val & ~LOMAC_CAPS))
		return 0;
	return top_only(TG_OP_SYSTEM);
}

#endif
