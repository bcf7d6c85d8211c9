/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel's questions for a capability are about. The monitor refuses by it, and
 * the recorder tells by it.
 */
#ifndef TIDEGATE_LOMAC_PRIVILEGE_H
#define TIDEGATE_LOMAC_PRIVILEGE_H

#include "lib/arch.h"
#include "lib/verifier.h"
#include "lomac/rules.h"

/*
 * Does the kernel act by credentials that are not the task's? An overlay does so behind its files,
 * by those of the task that mounted it. A ring's worker does so too, by the task's own of before.
 */
static __always_inline bool by_others_credentials(const struct cred *cred)
{
	struct task_struct *me = bpf_get_current_task_btf();

	return address(cred) == address(me->cred) && address(me->cred) != address(me->real_cred) &&
	       !(me->flags & PF_IO_WORKER);
}

/*
 * What an overlay asks for: DAC_READ_SEARCH, LINUX_IMMUTABLE, SYS_ADMIN (attributes `trusted.*`), SYS_RESOURCE (a disk's
 * reserve) and MKNOD. A ring's request that waited is finished by the credentials of when it began, and may ask then for
 * more: tcp_sendmsg_locked() waits for the connection before it asks whether SO_MARK may be set.
 */
#define OVERLAY_CAPS 0x9200204ull

/* RLIMIT_NICE, RLIMIT_RTPRIO: to raise them is CAP_SYS_NICE by another name. */
static __always_inline bool is_of_priority(u64 resource)
{
	return (u32)resource == 13 || (u32)resource == 14;
}

/*
 * Is a limit of a process set: by setrlimit and prlimit64, in 32-bit calls, too? PAM sets
 * those of a session anew, Debian's to what process 1 has, and sudo ends where it may not.
 */
static __always_inline bool sets_limit(void)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct pt_regs *regs = call_regs(me);
	s32 nr = CALL_NUMBER(regs);

	if (may_be_request())
		return false;
	if (CALL_IS_32(me))
		return (nr == NR32_setrlimit && !is_of_priority(CALL32_FIRST(regs))) ||
		       (nr == NR32_prlimit64 && !is_of_priority(CALL32_SECOND(regs)));
	return (nr == NR_setrlimit && !is_of_priority(CALL_FIRST(regs))) ||
	       (nr == NR_prlimit64 && !is_of_priority(CALL_SECOND(regs)));
}

/* Is it about a capability that is not for every level, over what all share? */
static __always_inline bool is_privilege(const struct cred *cred, struct user_namespace *ns,
					 int cap)
{
	if (ns->level || LOMAC_CAPS >> (cap & 63) & 1)
		return false;
	if (OVERLAY_CAPS >> (cap & 63) & 1 && by_others_credentials(cred))
		return false;
	return cap != CAP_SYS_RESOURCE || !sets_limit();
}

/*
 * Is a refusal no news? It is none where the kernel only wants to know. Nor is it where the
 * kernel asks for CAP_DAC_READ_SEARCH first and for CAP_DAC_OVERRIDE then, as it does for
 * every file; open_by_handle_at(2) asks for the first alone.
 */
static __always_inline bool is_no_news(const struct cred *cred, int cap, unsigned int opts)
{
	struct pt_regs *regs = call_regs(bpf_get_current_task_btf());

	if (opts & CAP_OPT_NOAUDIT)
		return true;
	return cap == CAP_DAC_READ_SEARCH && cred->cap_effective.val >> CAP_DAC_OVERRIDE & 1 &&
	       CALL_NUMBER(regs) != NR_open_by_handle_at &&
	       CALL_NUMBER(regs) != NR32_open_by_handle_at;
}

#endif
