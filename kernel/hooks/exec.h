/* SPDX-License-Identifier: GPL-2.0-only */
/* Object manager: processes begin (fork) and become programs (exec). */
#ifndef TIDEGATE_HOOK_EXEC_H
#define TIDEGATE_HOOK_EXEC_H

/* A governed parent's child is governed from its first instant, or is not born. */
SEC("lsm.s/task_alloc")
int BPF_PROG(hook_task_alloc, struct task_struct *task, unsigned long clone_flags)
{
	struct tg_subject *s = subject_current();
	struct tg_subject child = {};

	if (!s)
		return 0;
	child.level = s->level;
	child.attrs = s->attrs;
	child.cause = s->cause;
	if (!bpf_task_storage_get(&subjects, task, &child, BPF_LOCAL_STORAGE_GET_F_CREATE))
		return -ENOMEM;
	return 0;
}

/*
 * An exec is observed when the new program is alone in its memory: a vfork
 * child's parent, which lends it memory until then, has observed nothing. Until
 * that moment only the lowest level met is noted.
 */
static __always_inline int exec_observe(struct linux_binprm *bprm, bool first)
{
	struct file *file = bprm->file;
	struct inode *inode = file->f_inode;
	u64 label = label_of(inode, file_dentry(file), TG_C_EXEC);
	struct lomac_subject who = {};
	struct tg_subject *s;
	u8 to, attrs = 0;

	count_query(TG_C_EXEC);
	/* a top-level interpreter lowers nobody */
	if (!first && object(label).known && label_level(label) == policy.top)
		return 0;
	s = subject_current();
	who.level = subject_level(s);
	to = lomac_observe(who, object(label));
	if (first) {
		u16 rule = label_attrs(label);

		/* of programs that nobody below the top could have changed */
		if (label_level(label) == policy.top && object(label).known)
			attrs = rule & (TG_PERMISSIVE | TG_NODEMOTE | TG_NONETDEMOTE);
	}
	if (!s) {
		struct tg_subject fresh = { .level = policy.top };

		if (to == policy.top && !attrs)
			return 0;
		s = bpf_task_storage_get(&subjects, bpf_get_current_task_btf(), &fresh,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!s)
			return -ENOMEM;
		s->exec_level = policy.top;
	}
	if (first) {
		s->exec_level = to;
		s->exec_attrs = attrs;
	} else if (to < s->exec_level) {
		s->exec_level = to;
	}
	return 0;
}

SEC("lsm.s/bprm_creds_for_exec")
int BPF_PROG(hook_bprm_creds_for_exec, struct linux_binprm *bprm)
{
	return exec_observe(bprm, true);
}

/* Comes again for the interpreter of a script. */
SEC("lsm.s/bprm_check_security")
int BPF_PROG(hook_bprm_check_security, struct linux_binprm *bprm)
{
	return exec_observe(bprm, false);
}

/* Past the point of no return: new memory, one thread, a descriptor table of its own. */
SEC("lsm.s/bprm_committing_creds")
int BPF_PROG(hook_bprm_committing_creds, struct linux_binprm *bprm)
{
	struct tg_subject *s = subject_current();
	struct file *file = bprm->file;
	struct inode *inode = file->f_inode;
	struct tg_note n = { .op = TG_OP_EXEC, .class = TG_C_EXEC };
	bool changed;
	u64 id;

	if (!s)
		return 0;
	changed = s->exec_level < s->level || s->attrs != s->exec_attrs;
	s->attrs = s->exec_attrs;
	if (s->exec_level < s->level)
		s->attrs = 0;
	if (!changed)
		return 0;
	note_object(&n, inode, file_dentry(file), label_of(inode, file_dentry(file), TG_C_EXEC));
	if (s->exec_level < s->level && demote_held(s->exec_level, &n)) {
		/* it cannot be refused any more, so it does not live to see the data */
		deny(s, &n, -EACCES);
		if (!policy.permissive)
			bpf_send_signal(9);
		return 0;
	}
	n.kind = TG_E_STARTED;
	n.to = s->level;
	id = audit(&n);
	if (id)
		s->cause = id;
	return 0;
}

#endif
