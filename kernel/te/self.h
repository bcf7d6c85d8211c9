/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the `te` model: what a process asks for itself by /proc/self/attr, and files that are relabelled by
 * security.selinux. selinux_setprocattr(), selinux_inode_setxattr() of security/selinux/hooks.c. A context comes as text, which the
 * policy's image has the parts of.
 */
#ifndef TIDEGATE_TE_SELF_H
#define TIDEGATE_TE_SELF_H

#include "te/attr.h"
#include "te/exec.h"

/* The SID of a text in the kernel's memory by the policy in force; 0: it is none that may be. */
__noinline u64 te_context(u64 text, u32 len)
{
	u32 try, number, p;
	u64 sid = 0;

	/* as people write it, and as C does */
	if (len && te_byte(text + len - 1) == '\n')
		len--;
	if (len && !te_byte(text + len - 1))
		len--;
	for (try = 0; try < TE_TRIES; try++) {
		number = policy_seqno();
		p = te_tables(number);
		sid = p ? te_parse(p, text, len) : 0;
		if (policy_seqno() == number)
			return sid;
	}
	return 0;
}

/* May a process come to another domain by itself, and does it? */
static __always_inline int te_setcon(struct te_who *who, u64 sid, struct tg_note *n)
{
	struct task_struct *me = bpf_get_current_task_btf();
	u64 tracer;
	int err;

	if (!sid)
		return -EINVAL;
	/* the ring's workers would stay what this one was */
	if (me->io_uring)
		return -EBUSY;
	/* memory that others share is theirs as well: only towards less */
	if ((me->signal->nr_threads > 1 || me->mm->mm_users.counter > 1) &&
	    !te_is_bounded(who->sid, sid))
		return -EPERM;
	err = te_avc_has_perm(who->sid, sid, SECCLASS_PROCESS, PROCESS__DYNTRANSITION, n);
	if (err)
		return err;
	tracer = te_tracer_sid();
	if (tracer != TE_NO_LABEL &&
	    te_avc_has_perm(tracer, sid, SECCLASS_PROCESS, PROCESS__PTRACE, n))
		return -EACCES;
	/* what it holds and may not use there takes the guard, which cannot be waited for here; first the SID, as revoke.h says */
	who->subject->sid = sid;
	if (te_inherits(sid) && !te_guard_now()) {
		who->subject->sid = who->sid;
		return -EAGAIN;
	}
	/* with it what it has opened so far */
	return te_cred_give(address(bpf_get_current_task_btf()->cred), sid) ? -ENOMEM : 0;
}

/* Which of the files of /proc/self/attr this is: the permission that it takes, 0: none that may be written. */
static __always_inline u32 te_attr_request(const char *name)
{
	char which[12] = {};

	bpf_probe_read_kernel_str(which, sizeof(which), name);
	switch (which[0]) {
	case 'e':
		return PROCESS__SETEXEC;
	case 'f':
		return PROCESS__SETFSCREATE;
	case 'k':
		return PROCESS__SETKEYCREATE;
	case 's':
		return PROCESS__SETSOCKCREATE;
	case 'c':
		return which[1] == 'u' ? PROCESS__SETCURRENT : 0;
	}
	return 0;
}

/* Decides in place of the kernel's own, as profile_setprocattr() does. What is returned but 0 is what the write returns. */
SEC("fmod_ret/security_setprocattr")
int BPF_PROG(te_setprocattr, int lsmid, const char *name, void *value, u64 size)
{
	struct tg_note n = { .op = TG_OP_SYSTEM, .class = TG_C_TASK };
	u32 request = te_attr_request(name), len = size;
	struct te_who who = te_me();
	u64 text = address(value), sid = 0;
	int err;
	u8 first;

	if (!who.subject || !request || (lsmid != LSM_ID_UNDEF && lsmid != LSM_ID_SELINUX))
		return 0;
	err = te_avc_has_perm(who.sid, who.sid, SECCLASS_PROCESS, request, &n);
	if (err)
		return err;
	first = size ? te_byte(text) : 0;
	if (first && first != '\n') {
		sid = te_context(text, len);
		if (!sid)
			return -EINVAL;
	}
	switch (request) {
	case PROCESS__SETEXEC:
		who.subject->exec_sid = sid;
		break;
	case PROCESS__SETFSCREATE:
		who.subject->create_sid = sid;
		break;
	case PROCESS__SETSOCKCREATE:
		who.subject->socket_sid = sid;
		break;
	case PROCESS__SETKEYCREATE:
		if (sid && te_avc_has_perm(who.sid, sid, SECCLASS_KEY, KEY__CREATE, &n))
			return -EACCES;
		who.subject->key_sid = sid;
		break;
	default:
		err = te_setcon(&who, sid, &n);
		if (err)
			return err;
	}
	return size;
}

/* security.selinux: what other names there are is asked about as any attribute. */
static __always_inline bool te_is_label(const char *name)
{
	static const char label[] = "security.selinux";
	char text[sizeof(label) + 1] = {};
	u32 i;

	bpf_probe_read_kernel_str(text, sizeof(text), name);
	for (i = 0; i < sizeof(label); i++) {
		if (text[i] != label[i])
			return false;
	}
	return true;
}

/* Whoever relabels a file: is there room for its label, or has it one already that is written over? */
static __noinline int te_relabel_full(struct inode *inode, u64 dentry)
{
	struct tg_note n = {
		.op = TG_OP_XATTR, .class = TG_C_FILE, .dentry = dentry, .inode = address(inode)
	};

	return te_gives() || (!given_closed && te_given_sid(inode)) ? 0 : te_full(&n);
}

/* May the current task give a file this label? The label is given once the kernel has written it. */
static __noinline int te_relabel_asked(struct inode *inode, u64 dentry, u64 value, u32 size)
{
	struct tg_note n = {
		.op = TG_OP_XATTR, .class = TG_C_FILE, .dentry = dentry, .inode = address(inode)
	};
	u32 class = te_class_of_inode(address(inode)), p;
	u64 old = te_inode_sid(inode, dentry), new = te_context(value, size);
	struct te_who who = te_me();
	int err;

	if (old == TE_LATER)
		return -EAGAIN;
	err = te_avc_has_perm(who.sid, old, class, FILE__RELABELFROM, &n);
	if (err)
		return err;
	p = te_tables(policy_seqno());
	if (!new || !p)
		return -EINVAL;
	err = te_avc_has_perm(who.sid, new, class, FILE__RELABELTO, &n);
	if (err)
		return err;
	if (!te_validates(p, te_valid(p, old), new, te_valid(p, who.sid), class))
		return -EPERM;
	err = te_avc_has_perm(new, te_super_sid(p, CAST(struct inode, address(inode))->i_sb),
			      SECCLASS_FILESYSTEM, FILESYSTEM__ASSOCIATE, &n);
	return err ? err : te_relabel_full(inode, dentry);
}

/* An argument that the verifier lets nobody read, as it points to no structure. */
static __always_inline u64 te_void(const u64 *ctx, u32 which)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), ctx + which);
	return value;
}

SEC("lsm/inode_setxattr")
int BPF_PROG(te_inode_setxattr, struct mnt_idmap *idmap, struct dentry *dentry, const char *name)
{
	struct inode *inode = dentry->d_inode;
	u64 value;
	u32 size;

	if (!inode || !te_is_file(inode))
		return 0;
	if (te_is_label(name)) {
		value = te_void(ctx, 3);
		size = te_void(ctx, 4);
		if (te_me().subject)
			return te_relabel_asked(inode, address(dentry), value, size);
		return te_context(value, size) ? te_relabel_full(inode, address(dentry)) : 0;
	}
	return te_attr_asked(dentry, FILE__SETATTR, TG_OP_XATTR);
}

/* By whomever it was written: a file is what it was labelled. */
SEC("lsm/inode_post_setxattr")
int BPF_PROG(te_inode_post_setxattr, struct dentry *dentry, const char *name)
{
	struct inode *inode = dentry->d_inode;
	u64 sid;

	if (!inode || !te_is_label(name))
		return 0;
	sid = te_context(te_void(ctx, 2), te_void(ctx, 3));
	if (sid && te_give(inode, sid))
		te_not_given();
	/*
	 * a task that has it open by the label of before is asked from now on, as soon as that is
	 * there
	 */
	if (sid)
		te_guard_now();
	return 0;
}

SEC("lsm/inode_removexattr")
int BPF_PROG(te_inode_removexattr, struct mnt_idmap *idmap, struct dentry *dentry, const char *name)
{
	if (te_me().subject && te_is_label(name))
		return -EACCES;
	return te_attr_asked(dentry, FILE__SETATTR, TG_OP_XATTR);
}

#endif
