/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: processes begin (fork) and become programs (exec). */
#ifndef TIDEGATE_LOMAC_EXEC_H
#define TIDEGATE_LOMAC_EXEC_H

#include "lomac/file.h"

/* What a child keeps of its parent beside its level. 0; -ENOMEM. */
static __always_inline int child_keeps(struct task_struct *child, unsigned long clone_flags)
{
	int err = memory_stays_open(child, clone_flags);

	return err ? err : payer_bears(child);
}

/* A governed parent's child is governed from its first instant, or is not born. */
SEC("lsm.s/task_alloc")
int BPF_PROG(lomac_task_alloc, struct task_struct *task, unsigned long clone_flags)
{
	struct tg_label label = subject_label(bpf_get_current_task_btf());
	int err;

	/* a child has one level for sure */
	if (label.level != label.observes) {
		if (!tx_let_end())
			return -EAGAIN;
		label = subject_label(bpf_get_current_task_btf());
		if (label.level != label.observes)
			return -EAGAIN;
	}
	/* control groups are written at the top, this way, too */
	err = clone_flags & CLONE_INTO_CGROUP ? top_only(TG_OP_SYSTEM) : 0;
	if (!err)
		err = bears_note(address(task), clone_flags);
	if (err)
		return err;
	if (label.governed && slot_bear(address(task), &label))
		return child_keeps(task, clone_flags);
	/* what an earlier task at this address was */
	if (slot_is(slot_of(address(task))->word, address(task)))
		slot_change(address(task), 0);
	if (!label.governed)
		return 0;
	if (!subject_begin(task, slot_word(0, label.level, label.attrs), label.cause, label.clear))
		return -ENOMEM;
	return child_keeps(task, clone_flags);
}

/* Does the kernel start it to feed it what a process left, a core dump? */
static __noinline bool reads_a_core(void)
{
	struct task_struct *me = UNTRUSTED(bpf_get_current_task_btf());
	struct file **fds;
	u64 f = 0;

	if (!(me->real_parent->flags & PF_KTHREAD))
		return false;
	fds = CAST(struct fdtable, CAST(struct files_struct, address(me->files))->fdt)->fd;
	bpf_probe_read_kernel(&f, sizeof(f), fds);
	return f && (CAST(struct inode, CAST(struct file, f)->f_inode)->i_mode & S_IFMT) == S_IFIFO;
}

/* Is the program asked for by its own path, without links? A longer one than is looked at is taken for another. */
static __noinline bool exec_is_named(struct linux_binprm *bprm)
{
	struct tg_scratch *w = scratch_get();
	bool same;
	int len;
	u32 i;

	if (!w)
		return false;
	len = bpf_path_d_path(&bprm->file->f_path, w->text, TG_PATH);
	same = len > 0 &&
	       bpf_probe_read_kernel_str(w->text + TG_PATH, TG_PATH, bprm->filename) == len;
	bpf_for(i, 0, TG_PATH) {
		if (!same || i >= len)
			break;
		same = w->text[i] == w->text[TG_PATH + i];
	}
	scratch_put(w);
	return same;
}

static __always_inline bool exec_is_script(struct linux_binprm *bprm)
{
	return address(bprm->interp) != address(bprm->filename);
}

/*
 * An interpreter is told its script's name, and opens that anew: by a link, or in a low directory, it may find another one
 * than was trusted. So it is with what a rule of binfmt_misc has executed. And it takes code from its environment
 * (PYTHONPATH, PERL5LIB), which below the top is anybody's.
 */
static __noinline int exec_by_name(void)
{
	struct tg_subject *s = subject_current();

	if (!s || s == &subject_lost)
		return 0;
	if (!s->exec_named)
		s->exec_attrs = 0;
	else if (s->exec_level < policy.top)
		s->exec_attrs &= ~LOMAC_TRUST;
	return 0;
}

#define SECCOMP_FILTERS 256 /* of a task that are looked at; whose are more counts as answered */

/* Does a process answer the current task's system calls, by a listener of seccomp's? */
static __noinline bool exec_is_answered(void)
{
	u64 at = address(UNTRUSTED(bpf_get_current_task_btf())->seccomp.filter);
	u32 i;

	bpf_for(i, 0, SECCOMP_FILTERS) {
		struct seccomp_filter *filter = CAST(struct seccomp_filter, at);

		if (!at || filter->notif)
			return at;
		at = address(filter->prev);
	}
	return true;
}

/*
 * The attributes that a program of these begins with at a level. Below the top it is not trusted where another one may act in
 * its place: its tracer, one that has its directory, or one that answers its system calls.
 */
static __always_inline u8 exec_trusts(struct linux_binprm *bprm, u8 attrs, u8 level)
{
	if (!(attrs & LOMAC_TRUST) || level >= policy.top)
		return attrs;
	if (bprm->unsafe & (LSM_UNSAFE_SHARE | LSM_UNSAFE_PTRACE) || exec_is_answered())
		attrs &= ~LOMAC_TRUST;
	return attrs;
}

/*
 * The attributes that the new program begins with. They may have been decided at the top, by a subject that has fallen since,
 * or is about to: an exec that begins while others decide whether it falls goes by the level that it may get back. Then it is
 * trusted as what is started where it stands now.
 */
static __noinline u8 exec_attrs_now(struct linux_binprm *bprm)
{
	struct tg_subject *s = subject_current();
	u8 level = subject_level(s), attrs;

	if (!s || s == &subject_lost)
		return 0;
	attrs = exec_trusts(bprm, s->exec_attrs, level);
	return level < policy.top && exec_is_script(bprm) ? attrs & ~LOMAC_TRUST : attrs;
}

/*
 * An exec is observed when the new program is alone in its memory: a vfork
 * child's parent, which lends it memory until then, has observed nothing. Until
 * that moment only the lowest level met is noted.
 */
static __always_inline int exec_observe(struct linux_binprm *bprm, bool first)
{
	u64 label = exec_label(bprm->file);
	struct lomac_subject who = {};
	struct tg_subject *s;
	u8 to, attrs = 0;

	count_query(TG_C_EXEC);
	if (exec_early(label))
		return -EAGAIN;
	if (!first && exec_is_script(bprm))
		exec_by_name();
	/* a top-level interpreter lowers nobody */
	if (!first && lomac_object_of_label(label).known && label_level(label) == policy.top)
		return 0;
	s = subject_current();
	if (s == &subject_lost)
		return -ENOMEM;
	who.level = subject_observes(s);
	to = lomac_observe(who, lomac_object_of_label(label));
	if (first && reads_a_core())
		to = 0;
	if (first) {
		u16 rule = label_attrs(label);

		/* of programs that nobody below the top could have changed */
		if (lomac_is_code(lomac_object_of_label(label), policy.top))
			attrs = exec_trusts(bprm, rule & (TG_PERMISSIVE | LOMAC_TRUST), to);
	}
	if (!s) {
		if (to == policy.top && !attrs)
			return 0;
		s = subject_made(bpf_get_current_task_btf());
		if (!s)
			return -ENOMEM;
		s->exec_level = policy.top;
	}
	if (first) {
		s->exec_level = to;
		s->exec_attrs = attrs;
		s->exec_named = attrs && exec_is_named(bprm);
	} else if (to < s->exec_level) {
		s->exec_level = to;
	}
	return 0;
}

SEC("lsm.s/bprm_creds_for_exec")
int BPF_PROG(lomac_bprm_creds_for_exec, struct linux_binprm *bprm)
{
	return exec_observe(bprm, true);
}

/* Comes again for the interpreter of a script. */
SEC("lsm.s/bprm_check_security")
int BPF_PROG(lomac_bprm_check_security, struct linux_binprm *bprm)
{
	return exec_observe(bprm, false);
}

/* The level after observing a descriptor; a task that is trusted had not observed it. */
__noinline u8 inherited_file(u64 file, u8 level, u8 attrs)
{
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, f->f_inode);
	struct lomac_subject who = { .level = level, .attrs = attrs };
	u16 type = inode->i_mode & S_IFMT;
	u32 source;

	if (!(f->f_mode & FMODE_READ))
		return level;
	if (type == S_IFSOCK) {
		struct socket *sock = CAST(struct socket, f->private_data);
		struct sock *sk = CAST(struct sock, sock->sk);
		struct net_peer p = { .family = sk->__sk_common.skc_family };

		if (!family_is_told(p.family))
			return lomac_observe_net(who, policy.net_default);
		if (p.family != AF_INET && p.family != AF_INET6)
			return level;
		net_peer_of(sk, &p);
		return p.known ? lomac_observe_net(who, net_believed(&p)) : level;
	}
	if (type == S_IFCHR && is_tap(address(inode), address(f->f_path.dentry)))
		return lomac_observe_net(who, policy.net_default);
	if ((type != S_IFREG && type != S_IFBLK && type != S_IFCHR) || inode_is_memory(inode))
		return level;
	return lomac_observe(who, lomac_object_of_label(label_held(
					  address(inode), address(f->f_path.dentry), &source)));
}

/* Trust ends with its program: what that leaves open, the next one observes. */
static __noinline u8 inherited(u8 level, u8 attrs)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct fdtable *fdt =
		CAST(struct fdtable, CAST(struct files_struct, address(me->files))->fdt);
	struct file **fds = fdt->fd;
	u32 i, max = fdt->max_fds;

	if (max > FDTABLE_MAX)
		return 0;
	bpf_for(i, 0, max) {
		u64 f = 0;

		bpf_probe_read_kernel(&f, sizeof(f), fds + i);
		if (f)
			level = inherited_file(f, level, attrs);
	}
	return level;
}

/* Past the point of no return: new memory, one thread, a descriptor table of its own. */
SEC("lsm.s/bprm_committing_creds")
int BPF_PROG(lomac_bprm_committing_creds, struct linux_binprm *bprm)
{
	struct tg_note n = { .op = TG_OP_EXEC, .class = TG_C_EXEC };
	struct file *file = bprm->file;
	struct inode *inode = file->f_inode;
	struct tg_subject *s;
	u8 to, before, attrs;
	u64 id;

	/* nothing can be refused here: a program without an account does not begin */
	if (!payer_executes(address(bprm->cred)))
		bpf_send_signal(9);
	s = subject_current();
	if (!s)
		return 0;
	to = s->exec_level;
	before = s->attrs;
	/* a task that falls by this very program is not trusted */
	attrs = to < subject_observes(s) ? 0 : exec_attrs_now(bprm);
	if (to >= subject_observes(s) && before == attrs)
		return 0;
	subject_set_attrs(s, attrs);
	before &= ~s->attrs & LOMAC_TRUST;
	if (before)
		to = inherited(to, s->attrs);
	if (to >= subject_observes(s))
		to = TX_STAY;
	note_object(&n, inode, file_dentry(file), exec_label(file));
	if ((to != TX_STAY || before) && TX_TRIED(demote_sleepable(to, &n))) {
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
