/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: capabilities and user namespaces. */
#ifndef TIDEGATE_TE_CAPABLE_H
#define TIDEGATE_TE_CAPABLE_H

#include "te/task.h"

SEC("lsm/capget")
int BPF_PROG(te_capget, const struct task_struct *target)
{
	struct task_struct *t = bpf_task_from_pid(CAST(struct task_struct, address(target))->pid);
	int err;

	if (!t)
		return 0;
	err = te_task_asked(t, PROCESS__GETCAP, TG_OP_GETATTR);
	bpf_task_release(t);
	return err;
}

SEC("lsm/capset")
int BPF_PROG(te_capset, struct cred *new)
{
	struct tg_note n = { .op = TG_OP_SYSTEM, .class = TG_C_TASK };
	struct te_who who = te_me();

	return who.subject ?
		       te_avc_has_perm(who.sid, who.sid, SECCLASS_PROCESS, PROCESS__SETCAP, &n) :
		       0;
}

SEC("lsm/capable")
int BPF_PROG(te_capable, const struct cred *cred, struct user_namespace *ns, int cap,
	     unsigned int opts)
{
	struct tg_note n = { .op = TG_OP_CAPABLE, .class = TG_C_SYSTEM };
	struct te_who who = te_me();
	bool initial = !CAST(struct user_namespace, address(ns))->level;
	u32 class, bit;

	if (!who.subject)
		return 0;
	if (cap & 32)
		class = initial ? SECCLASS_CAPABILITY2 : SECCLASS_CAP2_USERNS;
	else
		class = initial ? SECCLASS_CAPABILITY : SECCLASS_CAP_USERNS;
	bit = 1u << (cap & 31);
	n.port = cap;
	if (opts & CAP_OPT_NOAUDIT)
		return te_is_allowed(who.sid, who.sid, class, bit) ? 0 : -EACCES;
	return te_avc_has_perm(who.sid, who.sid, class, bit, &n) ? -EPERM : 0;
}

SEC("lsm/userns_create")
int BPF_PROG(te_userns_create, const struct cred *cred)
{
	struct tg_note n = { .op = TG_OP_USERNS, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	return who.subject ? te_avc_has_perm(who.sid, who.sid, SECCLASS_USER_NAMESPACE,
					     USER_NAMESPACE__CREATE, &n) :
			     0;
}

#endif
