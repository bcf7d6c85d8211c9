/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The privilege that a user namespace gives over what is in it. Its owner has it from outside, too, and of those in it
 * some may have fallen. What a higher one opens there by a name is not for the others to say.
 */
#ifndef TIDEGATE_LOMAC_NAMESPACE_H
#define TIDEGATE_LOMAC_NAMESPACE_H

#include "lomac/check.h"

/*
 * What all in a user namespace share, and no other hook is asked about: NET_ADMIN and NET_RAW (its
 * networks), SYS_ADMIN (mounts, names, and entering it), SYS_BOOT (its processes), CHECKPOINT_RESTORE
 * (their numbers: clone3(2) gives one that a process had which a higher one is about to signal). Of
 * files the kernel asks for others, and often.
 */
#define NAMESPACE_CAPS 0x10000603000ull

#define NAMESPACES 33 /* user namespaces within each other, at most */

/* Is the second user namespace the first one, or within it? */
__noinline bool namespace_has(u64 outer, u64 inner)
{
	u32 i;

	bpf_for(i, 0, NAMESPACES) {
		if (inner == outer)
			return true;
		if (!inner)
			break;
		inner = address(CAST(struct user_namespace, inner)->parent);
	}
	return false;
}

/*
 * Is the task in the user namespace, or in a network, a name of the host or a PID namespace that belongs to it? In these
 * one may be from outside, by setns(2).
 */
static __always_inline bool namespace_holds(u64 user_ns, struct task_struct *fields)
{
	struct nsproxy *spaces = fields->nsproxy;
	struct pid *pid = fields->thread_pid;
	u64 last = address(pid) + bpf_core_field_offset(struct pid, numbers) +
		   (pid->level & 31) * bpf_core_type_size(struct upid);
	struct pid_namespace *processes =
		CAST(struct pid_namespace, address(CAST(struct upid, last)->ns));

	return namespace_has(user_ns, address(fields->cred->user_ns)) ||
	       namespace_has(user_ns, address(spaces->net_ns->user_ns)) ||
	       namespace_has(user_ns, address(spaces->uts_ns->user_ns)) ||
	       namespace_has(user_ns, address(processes->user_ns));
}

/* The same of a task that opens things by names; or, asked about mounts, is it in a mount namespace that belongs to it? */
static __always_inline bool namespaces_hold(u64 user_ns, bool mounts, struct task_struct *fields)
{
	struct nsproxy *spaces = fields->nsproxy;

	/* a task that ends, or is the kernel's, opens nothing by a name */
	return fields->mm && spaces &&
	       (namespace_holds(user_ns, fields) ||
		(mounts && namespace_has(user_ns, address(spaces->mnt_ns->user_ns))));
}

/* Is somebody above the level in the user namespace, or, asked about mounts, in a mount namespace of it? */
static __noinline bool namespace_is_higher(u64 user_ns, bool mounts, u8 level)
{
	return ANY_TASK(t, namespaces_hold(user_ns, mounts, UNTRUSTED(t)) &&
				   subject_label(t).observes > level);
}

/* May the current subject use such a privilege? */
static __noinline int namespace_is_own(u64 user_ns, bool mounts)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_MOUNT, .class = TG_C_SYSTEM, .source = ~0u };
	u8 level = subject_level(s);

	if (level >= policy.top)
		return 0;
	count_query(TG_C_SYSTEM);
	if (!namespace_is_higher(user_ns, mounts, level))
		return 0;
	n.object = policy.top;
	return deny(s, &n, -EPERM);
}

#endif
