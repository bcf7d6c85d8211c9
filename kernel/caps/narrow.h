/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What user space has the kernel do about domains (crates/monitor/src/caps): programs that it runs, attached to nothing. */
#ifndef TIDEGATE_CAPS_NARROW_H
#define TIDEGATE_CAPS_NARROW_H

#include "core/ps.h"
#include "lib/arena.h"
#include "caps/session.h"
#include "caps/table.h"

/* The domain of each thread, by its number. */
SEC("iter/task")
int ps_caps_domain(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	return task ? ps_write_model(ctx, task, caps_domain_of(task)) : 0;
}

/* A process is given a layer more. */
struct caps_change {
	u32 pid;
	u32 layer;   /* struct caps_subject */
	u32 session; /* place of the one that begins, where the process is in none */
	u32 now;     /* at once, all its threads; else with the next execution */
	/*
	 * root asks; for another user a thread that could get new privileges by an execution is not
	 * changed
	 */
	u32 is_root;
	u32 threads; /* back: how many threads were seen */
	s32 error;   /* an errno, negative */
};

/* Does somebody else have a process's memory or descriptors? */
static __always_inline bool caps_is_shared(struct task_struct *task)
{
	u32 threads = task->signal->nr_threads;
	struct files_struct *files = CAST(struct files_struct, address(task->files));
	struct mm_struct *mm = CAST(struct mm_struct, address(task->mm));

	return !task->files || files->count.counter > threads || !task->mm ||
	       mm->mm_users.counter > threads;
}

/* What all layers of a domain have in common. */
static __noinline int caps_finish(struct caps_domain *d)
{
	u32 i, k;

	d->services = 0;
	for (k = 0; k < CAPS_CLASSES; k++)
		d->control[k] = 0;
	USES_ARENA();
	bpf_for(i, 0, d->count) {
		ARENA(struct caps_subject) *s =
			ARENA_PTR(struct caps_subject, d->layers[BOUND(i, CAPS_LAYERS)]);

		for (k = 0; k < CAPS_CLASSES; k++)
			d->control[k] |= s->control[k];
		d->services |= ARENA_PTR(struct caps_image, s->image)->services_count;
	}
	return 0;
}

/* Puts a layer in its place among others; false: there are too many. */
static __noinline bool caps_add(struct caps_domain *d, u32 layer)
{
	u32 i, at = 0;

	bpf_for(i, 0, d->count) {
		u32 have = d->layers[BOUND(i, CAPS_LAYERS)];

		if (have == layer)
			return true;
		if (have < layer)
			at = i + 1;
	}
	if (d->count >= CAPS_LAYERS)
		return false;
	for (i = CAPS_LAYERS - 1; i > 0; i--)
		if (i > at)
			d->layers[i] = d->layers[i - 1];
	d->layers[BOUND(at, CAPS_LAYERS)] = layer;
	d->count++;
	return true;
}

/* A domain with the layers of another; NULL: there is no place. */
static __noinline struct caps_domain *caps_domain_like(struct caps_domain *old)
{
	struct caps_domain *d = caps_domain_made(old->session);
	u32 i;

	if (!d)
		return NULL;
	d->count = old->count;
	for (i = 0; i < CAPS_LAYERS; i++)
		d->layers[i] = old->layers[i];
	return d;
}

/* Has a domain this layer? */
static __noinline bool caps_has(struct caps_domain *d, u32 layer)
{
	u32 i;

	bpf_for(i, 0, d->count)
		if (d->layers[BOUND(i, CAPS_LAYERS)] == layer)
			return true;
	return false;
}

static __always_inline void caps_exchange(u32 *of, u32 number)
{
	u32 old = __sync_lock_test_and_set(of, number);

	if (old)
		caps_leave(old);
}

/* Looked at where a thread is changed, where no other program can have taken the place of the one that asked. */
static __always_inline bool caps_may_change(struct caps_change *c, struct task_struct *task)
{
	return c->is_root || task->atomic_flags & PFA_NO_NEW_PRIVS_BIT;
}

static __noinline int caps_changed(struct caps_change *c, struct task_struct *task)
{
	struct caps_task *t = caps_tasks_made(task);
	struct caps_domain *old, *d;
	u32 number;

	if (!t)
		return -ENOMEM;
	if (!caps_may_change(c, task))
		return -EPERM;
	number = t->onexec && !c->now ? t->onexec : t->domain;
	old = number ? caps_domain_at(number) : NULL;
	if (old && caps_has(old, c->layer))
		return 0;
	if (c->now && caps_is_shared(task))
		return -EBUSY;
	d = old ? caps_domain_like(old) : caps_domain_made(c->session);
	if (!d)
		return -ENOSPC;
	if (!old)
		d->count = 0;
	if (!caps_add(d, c->layer)) {
		caps_leave(d->number);
		return -E2BIG;
	}
	/* its own domain has the task in it, and whoever asks for it waits */
	caps_keep(d, c->now ? t->domain : 0);
	caps_finish(d);
	caps_exchange(c->now ? &t->domain : &t->onexec, d->number);
	return 0;
}

/* A thread comes to be where another one of its process is, whatever that is brought into at this moment. */
static __noinline int caps_follow(struct task_struct *task, struct caps_task *first)
{
	struct caps_task *t = caps_tasks_made(task);
	u32 try, domain;

	if (!t || !first)
		return -ENOMEM;
	bpf_for(try, 0, 16) {
		domain = READ_ONCE(first->domain);
		if (t->domain == domain)
			return 0;
		if (caps_enter(domain))
			caps_exchange(&t->domain, domain);
	}
	return -EAGAIN;
}

/* The threads of a process come to be where its leader is. One that is being born at this moment is seen to by its parent, in the program below. */
static __noinline int caps_changed_threads(struct caps_change *c, struct task_struct *leader)
{
	struct caps_task *first = caps_tasks_task(leader);
	struct task_struct *other;
	int error = 0;

	bpf_rcu_read_lock();
	bpf_for_each(task, other, leader, BPF_TASK_ITER_PROC_THREADS) {
		c->threads++;
		error = caps_may_change(c, other) ? caps_follow(other, first) : -EPERM;
		if (error)
			break;
	}
	bpf_rcu_read_unlock();
	return error;
}

SEC("syscall")
int ps_caps_change(struct caps_change *ctx)
{
	struct task_struct *task = bpf_task_from_pid(ctx->pid);
	struct caps_change c;

	ctx->error = -ESRCH;
	if (!task)
		return 0;
	c = *ctx;
	/* any thread may execute, and it alone is then the process */
	if (!c.now && task->signal->nr_threads > 1)
		c.error = -EINVAL;
	else
		c.error = verdict_of(caps_changed(&c, task));
	if (c.now && !c.error)
		c.error = verdict_of(caps_changed_threads(&c, task));
	ctx->threads = c.threads;
	ctx->error = c.error;
	bpf_task_release(task);
	return 0;
}

/* A thread is born, is among its process's, and has not run yet. The process may have been given a layer since it took its parent's domain. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(caps_sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct caps_task *me = parent->tgid == child->tgid ? caps_tasks_current() : NULL;

	/* it ends rather than go on as more than its process */
	if (me && me->domain && caps_follow(child, me))
		bpf_send_signal(9);
	return 0;
}

#endif
