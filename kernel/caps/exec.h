/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes of the `capability` model: births, executions, and what content brings. What is executed, or mapped to be, may bring a
 * layer with it; the process goes on with what both may do, and so does what it holds.
 */
#ifndef TIDEGATE_CAPS_EXEC_H
#define TIDEGATE_CAPS_EXEC_H

#include "caps/narrow.h"
#include "caps/service/request_ctx.h"
#include "caps/transfer.h"

/* A child is what its parent is from its first instant, or is not born. */
SEC("lsm/task_alloc")
int BPF_PROG(caps_task_alloc, struct task_struct *task)
{
	struct caps_task *me = caps_tasks_current(), *child;
	u32 domain = me ? READ_ONCE(me->domain) : 0;

	if (!domain)
		return 0;
	child = caps_tasks_made(task);
	if (!child)
		return -ENOMEM;
	/* user space may have brought it into another one at this moment */
	if (!caps_enter(domain))
		return -EAGAIN;
	child->domain = domain;
	return 0;
}

SEC("lsm/task_free")
int BPF_PROG(caps_task_free, struct task_struct *task)
{
	caps_task_free_slot(task);
	caps_room_free_slot(task);
	return 0;
}

/* Are these two the same, but for the tasks in them? */
static __noinline bool caps_is_same(struct caps_domain *d, struct caps_domain *other)
{
	u32 i;

	if (d->session != other->session || d->session_number != other->session_number ||
	    d->count != other->count)
		return false;
	for (i = 0; i < CAPS_LAYERS; i++)
		if (i < d->count && d->layers[i] != other->layers[i])
			return false;
	return true;
}

/* The number of a domain that is left and is what a new one is, which nobody has seen yet, and goes; else the new one's. */
__noinline u32 caps_again(u32 number)
{
	struct caps_domain *d = caps_domain_at(number);
	struct caps_session *s;
	u32 i;

	bpf_for(i, 0, CAPS_DOMAINS) {
		struct caps_domain *other = caps_domain_at(i);

		if (other->refs || !caps_is_same(d, other) || !caps_is_left(other) ||
		    __sync_val_compare_and_swap(&other->refs, 0, 1))
			continue;
		/* from now on it stays what it is, and whoever enters it leaves it */
		s = caps_session_at(other->session);
		__sync_fetch_and_add(&s->domains, 1);
		__sync_fetch_and_add(&caps_domains_used, 1);
		__sync_fetch_and_add(&s->tasks, 1);
		/* it may have been another one meanwhile */
		if (!caps_is_same(d, other) || !caps_is_left(other)) {
			caps_leave(other->number);
			continue;
		}
		d->whole = 0;
		caps_leave(number);
		return other->number;
	}
	return number;
}

/*
 * The number of the domain that one becomes by the layers that an answered question brings: its own, if it has them already; 0: they are too many,
 * or there is no room. Another one has this task alone in it.
 */
static __noinline u32 caps_brought(struct caps_question *q, u32 number)
{
	struct caps_domain *old = caps_domain_at(number), *d = NULL;
	u32 k, i, next;

	bpf_for(k, 0, caps_domain_at(q->domain)->count) {
		next = 0;
		bpf_for(i, 0, CAPS_LAYERS * 4) {
			u32 layer =
				caps_brings(&q->asked, q->answers[BOUND(k, CAPS_LAYERS)], &next);

			if (!layer)
				break;
			if (caps_has(d ? d : old, layer))
				continue;
			if (!d)
				d = caps_domain_like(old);
			if (!d)
				return 0;
			if (!caps_add(d, layer)) {
				caps_leave(d->number);
				return 0;
			}
		}
	}
	if (!d)
		return number;
	caps_finish(d);
	return caps_again(d->number);
}

/*
 * A library that brings layers narrows its address space, of which nobody else may have a part then; nor can that be done where the
 * hook may not wait. One whose layer was taken back is not mapped, as what is mapped beside it could not be taken.
 */
static __always_inline int caps_narrowed(u32 domain, bool may_sleep)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct caps_task *t = caps_tasks_current();

	if (!t)
		return -EACCES;
	if (caps_is_shut(domain)) {
		caps_leave(domain);
		return caps_deny(CAPS_REVOKED, TG_OP_MMAP, TG_C_MMAP);
	}
	if (!may_sleep || caps_is_shared(me) || me->signal->nr_threads > 1 ||
	    !caps_hand_all(domain, t->domain)) {
		caps_leave(domain);
		return caps_deny(CAPS_TOO_MANY, TG_OP_MMAP, TG_C_MMAP);
	}
	caps_exchange(&t->domain, domain);
	return 0;
}

/* An execution begins. What user space asked for comes into force with it. */
SEC("lsm/bprm_creds_for_exec")
int BPF_PROG(caps_bprm_creds_for_exec, struct linux_binprm *bprm)
{
	struct caps_task *t = caps_tasks_current();

	if (t && t->exec)
		caps_exchange(&t->exec, 0);
	return 0;
}

/* May a file be executed? What it brings comes into force with the execution. */
static __noinline int caps_exec_asked(struct file *file)
{
	struct tg_note n = { .op = TG_OP_EXEC, .class = TG_C_EXEC };
	struct caps_task *t = caps_tasks_current();
	struct caps_question q = {};
	u32 now, domain;
	int err;

	if (!t || !caps_begin(&q, CAPS_PROGRAM, CAPS_EXECUTE, 0))
		return 0;
	n.dentry = file_dentry(file);
	n.inode = address(file->f_inode);
	q.why = CAPS_NO_NAME;
	err = caps_is_nameless(file->f_inode) ? -EACCES : caps_ask_path(n.dentry, &q);
	if (err == -EAGAIN)
		return -EAGAIN;
	if (err || !q.asked.given)
		return verdict_of(caps_refuse(&q, &n));
	now = t->exec ? t->exec : t->onexec ? t->onexec : t->domain;
	domain = caps_brought(&q, now);
	if (!domain) {
		q.why = CAPS_TOO_MANY;
		return verdict_of(caps_refuse(&q, &n));
	}
	if (domain != now)
		caps_exchange(&t->exec, domain);
	return 0;
}

/*
 * Each file that is executed: a script, its interpreter. One that the kernel hands its interpreter as a descriptor (binfmt_misc's O
 * and C) is open to be read then.
 */
SEC("lsm/bprm_check_security")
int BPF_PROG(caps_bprm_check_security, struct linux_binprm *bprm)
{
	struct caps_task *t = caps_tasks_current();
	int err = caps_exec_asked(bprm->file);
	u32 domain;

	if (err || !t || !t->domain || !address(bprm->executable))
		return err;
	domain = t->exec ? t->exec : t->onexec ? t->onexec : t->domain;
	return caps_open_asked(bprm->executable, domain, CAPS_READ);
}

/* Past the point of no return: new memory, one thread, a descriptor table of its own. */
SEC("lsm.s/bprm_committing_creds")
int BPF_PROG(caps_bprm_committing_creds, struct linux_binprm *bprm)
{
	struct caps_task *t = caps_tasks_current();
	u32 domain, onexec, before;

	if (!t || (!t->exec && !t->onexec))
		return 0;
	onexec = __sync_lock_test_and_set(&t->onexec, 0);
	domain = __sync_lock_test_and_set(&t->exec, 0);
	if (!domain) {
		/* a task that narrows itself keeps what it has bound */
		caps_keep(caps_domain_at(onexec), t->domain);
		caps_exchange(&t->domain, onexec);
		return 0;
	}
	if (onexec)
		caps_leave(onexec);
	/* first the domain: what it is handed from now on is handed to that */
	before = t->domain;
	caps_exchange(&t->domain, domain);
	if (caps_hand_all(domain, before))
		return 0;
	/* it cannot be refused any more, so it does not live to use what it holds */
	if (caps_deny(CAPS_TOO_MANY, TG_OP_EXEC, TG_C_EXEC))
		bpf_send_signal(9);
	return 0;
}

#endif
