/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the `te` model: processes that are born, and executions. selinux_bprm_creds_for_exec() of
 * security/selinux/hooks.c.
 */
#ifndef TIDEGATE_TE_EXEC_H
#define TIDEGATE_TE_EXEC_H

#include "te/revoke.h"

/* A child is what its parent is from its first instant, or is not born. */
SEC("lsm/task_alloc")
int BPF_PROG(te_task_alloc, struct task_struct *task)
{
	struct tg_note n = { .op = TG_OP_START, .class = TG_C_TASK };
	struct te_who who = te_me();
	struct te_subject *child, *me;
	int err;

	if (!who.subject) {
		me = te_everyone ? te_subjects_current() : NULL;
		if (!me || !me->exempt)
			return 0;
		child = te_subjects_made(task);
		if (!child)
			return -ENOMEM;
		child->exempt = 1;
		return 0;
	}
	err = te_avc_has_perm(who.sid, who.sid, SECCLASS_PROCESS, PROCESS__FORK, &n);
	if (err)
		return err;
	child = te_subjects_made(task);
	if (!child)
		return -ENOMEM;
	child->osid = who.subject->osid;
	child->exec_sid = who.subject->exec_sid;
	child->create_sid = who.subject->create_sid;
	child->key_sid = who.subject->key_sid;
	child->socket_sid = who.subject->socket_sid;
	child->stray = who.subject->stray;
	child->sid = who.sid;
	return 0;
}

SEC("lsm/task_free")
int BPF_PROG(te_task_free, struct task_struct *task)
{
	te_subject_free(address(task));
	return 0;
}

/* The policy capability nnp_nosuid_transition. */
#define TE_CAP_NNP_NOSUID 5

/* Does one type bound the other? security_bounded_transition() */
__noinline bool te_is_bounded(u64 old, u64 new)
{
	u32 p = te_tables(policy_seqno()), type = sid_type(new), i;

	if (!p)
		return false;
	if (sid_type(old) == type)
		return true;
	if (!TE(p)->bounds)
		return false;
	bpf_for(i, 0, TE_BOUNDS) {
		type = ARENA_PTR(u32, TE(p)->bounds)[type];
		if (!type)
			break;
		if (type == sid_type(old))
			return true;
	}
	return false;
}

/* check_nnp_nosuid(): may a transition be where the process, or the mount, lets nobody gain anything? */
static __always_inline int te_check_nnp_nosuid(struct linux_binprm *bprm, u64 old, u64 new,
					       struct tg_note *n)
{
	bool nnp = bprm->unsafe & LSM_UNSAFE_NO_NEW_PRIVS;
	/* mnt_may_suid() */
	bool nosuid =
		CAST(struct vfsmount, address(bprm->file->f_path.mnt))->mnt_flags &
			MNT_NOSUID_FLAG ||
		CAST(struct super_block, address(bprm->file->f_inode->i_sb))->s_user_ns->level;
	u32 p = te_tables(policy_seqno()), request = 0;

	if ((!nnp && !nosuid) || old == new)
		return 0;
	if (p && te_in(TE(p)->capabilities, TE_CAP_NNP_NOSUID)) {
		if (nnp)
			request |= PROCESS2__NNP_TRANSITION;
		if (nosuid)
			request |= PROCESS2__NOSUID_TRANSITION;
		if (!te_avc_has_perm(old, new, SECCLASS_PROCESS2, request, n))
			return 0;
	}
	if (te_is_bounded(old, new))
		return 0;
	return nosuid ? -EACCES : -EPERM;
}

/* The SID of the task that traces the current one; TE_NO_LABEL: no task does. */
static __always_inline u64 te_tracer_sid(void)
{
	struct task_struct *me = bpf_get_current_task_btf(), *tracer;
	u64 sid;

	if (!me->ptrace)
		return TE_NO_LABEL;
	tracer = bpf_task_from_pid(me->parent->pid);
	if (!tracer)
		return TE_NO_LABEL;
	sid = te_sid_of(tracer);
	bpf_task_release(tracer);
	return sid;
}

#define TE_SCRUBBED 1

/* A governed task executes a program; TE_SCRUBBED: its environment is not to be trusted. */
static __noinline int te_exec_transition(struct linux_binprm *bprm, struct te_who *who)
{
	struct inode *inode = bprm->file->f_inode;
	u64 dentry = address(bprm->file->f_path.dentry), old = who->sid,
	    new = who->subject->exec_sid, tracer;
	struct tg_note n = {
		.op = TG_OP_EXEC, .class = TG_C_EXEC, .dentry = dentry, .inode = address(inode)
	};
	struct te_made made = { .source = old, .class = SECCLASS_PROCESS };
	int err;

	made.target = te_inode_sid(inode, dentry);
	if (made.target == TE_LATER)
		return -EAGAIN;
	if (new) {
		err = te_check_nnp_nosuid(bprm, old, new, &n);
		if (err)
			return err;
	} else {
		new = te_new_label(TE_TRANSITION, &made);
		if (!new)
			return -EACCES;
		if (te_check_nnp_nosuid(bprm, old, new, &n))
			new = old;
	}
	if (new == old) {
		err = te_may_inode(inode, dentry, FILE__EXECUTE_NO_TRANS, &n);
		if (err)
			return err;
	} else {
		/* what SELinux clears, and BPF cannot: PER_CLEAR_ON_SETID */
		if (bpf_get_current_task_btf()->personality & PERSONALITY_UNSAFE)
			return -EPERM;
		err = te_avc_has_perm(old, new, SECCLASS_PROCESS, PROCESS__TRANSITION, &n);
		if (!err)
			err = te_avc_has_perm(new, made.target, te_class_of_mode(inode->i_mode),
					      FILE__ENTRYPOINT, &n);
		if (err)
			return err;
		if (bprm->unsafe & LSM_UNSAFE_SHARE &&
		    te_avc_has_perm(old, new, SECCLASS_PROCESS, PROCESS__SHARE, &n))
			return -EPERM;
		if (bprm->unsafe & LSM_UNSAFE_PTRACE) {
			tracer = te_tracer_sid();
			if (tracer != TE_NO_LABEL &&
			    te_avc_has_perm(tracer, new, SECCLASS_PROCESS, PROCESS__PTRACE, &n))
				return -EPERM;
		}
	}
	who->subject->exec = new;
	return new != old &&te_avc_has_perm(old, new, SECCLASS_PROCESS, PROCESS__NOATSECURE, &n) ?
		       TE_SCRUBBED :
		       0;
}

SEC("lsm/bprm_creds_for_exec")
int BPF_PROG(te_bprm_creds_for_exec, struct linux_binprm *bprm)
{
	struct te_who who = te_me();
	struct te_subject *s;
	int err;
	u64 *asked;

	if (who.subject) {
		who.subject->exec = 0;
		err = te_exec_transition(bprm, &who);
		if (err <= 0)
			return err;
		bpf_bprm_opts_set(bprm, BPF_F_BPRM_SECUREEXEC);
		return 0;
	}
	/* a task that is not governed comes under the policy by what user space asked for */
	asked = bpf_task_storage_get(&te_onexec, bpf_get_current_task_btf(), 0, 0);
	if (!asked || !*asked || !te_tables(policy_seqno()))
		return 0;
	s = te_subjects_made(bpf_get_current_task_btf());
	if (!s)
		return -ENOMEM;
	s->exec = *asked;
	return 0;
}

/*
 * Past the point of no return: new memory, one thread, a descriptor table of its own. What of that
 * the new domain may not use is left to the guard; selinux_bprm_committing_creds() replaces it by
 * the null device. A task that is not governed and enters a domain hands over what it likes.
 */
SEC("lsm.s/bprm_committing_creds")
int BPF_PROG(te_bprm_committing_creds, struct linux_binprm *bprm)
{
	struct tg_note n = { .op = TG_OP_EXEC, .class = TG_C_EXEC };
	struct te_subject *s = te_subjects_current();

	if (!s || !s->exec) {
		/* it began before its task had a SID, which is another program's */
		if (te_everyone && s && s->sid) {
			s->sid = te_everyone;
			s->stray = 1;
			__sync_fetch_and_add(&te_strays, 1);
		}
		return 0;
	}
	s->osid = s->sid;
	s->sid = s->exec;
	s->exec = s->exec_sid = s->create_sid = s->key_sid = s->socket_sid = 0;
	s->made_dentry = 0;
	bpf_task_storage_delete(&te_onexec, bpf_get_current_task_btf());
	if (!te_cred_give(address(bprm->cred), s->sid) &&
	    (!s->osid || s->osid == s->sid || !te_inherits(s->sid) || te_guard()))
		return 0;
	/* it cannot be refused any more, so it does not live to use them */
	n.reason = TG_R_BUSY;
	n.kind = policy.permissive ? TG_E_WOULD : TG_E_DENIED;
	n.inode = address(bprm->file->f_inode);
	n.dentry = address(bprm->file->f_path.dentry);
	audit(&n);
	if (!policy.permissive)
		bpf_send_signal(9);
	return 0;
}

#endif
