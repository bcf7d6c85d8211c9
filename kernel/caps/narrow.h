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
	u64 start; /* of the process, whose number is another's once it has ended: ns of CLOCK_BOOTTIME */
	u32 pid;
	u32 layer;   /* struct caps_subject */
	u32 image;   /* that the layer is of, by its index in the table */
	u32 begins;  /* it is in no session, and asked for none */
	u32 session; /* place of the one that begins then */
	u32 now;     /* at once, all its threads; else with the next execution */
	/*
	 * root asks; for another user a thread that could get new privileges by an execution is not
	 * changed
	 */
	u32 is_root;
	u32 threads; /* back: how many threads were seen */
	s32 error;   /* an errno, negative */
	u32 pad;
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
	d->whole = 1;
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

/* A task's domain, and that of its next execution: read and changed as one, as it may execute at any moment. */
union caps_both {
	u64 word;
	struct {
		u32 domain, onexec;
	};
};

_Static_assert(offsetof(struct caps_task, domain) % 8 == 0 &&
		       offsetof(struct caps_task, onexec) == offsetof(struct caps_task, domain) + 4,
	       "both are one word");

/* Changes both, if they are still as they were; false: they are not. */
static __always_inline bool caps_exchange_both(struct caps_task *t, union caps_both was,
					       union caps_both next)
{
	u64 *word = (u64 *)&t->domain;

	return __sync_val_compare_and_swap(word, was.word, next.word) == was.word;
}

/* Lets go of those that are not those of `other`. */
static __always_inline void caps_leave_both(union caps_both both, union caps_both other)
{
	if (both.domain && both.domain != other.domain)
		caps_leave(both.domain);
	if (both.onexec && both.onexec != other.onexec)
		caps_leave(both.onexec);
}

/*
 * If a domain (0: none) has not got the layer: puts into `number` that of a new one which has it, too, with one task in it. One that its
 * tasks narrow by themselves is kept with the new one.
 */
static __noinline int caps_more(struct caps_change *c, u32 old, bool narrows, u32 *number)
{
	struct caps_domain *d;
	int error = 0;

	/* the task may leave it at any moment, and its place is another's then */
	if (old && !caps_enter(old))
		return -EAGAIN;
	if (old && caps_has(caps_domain_at(old), c->layer))
		goto out;
	d = old ? caps_domain_like(caps_domain_at(old)) : caps_domain_made(c->session);
	if (!d) {
		error = -ENOSPC;
		goto out;
	}
	if (!old)
		d->count = 0;
	if (!caps_add(d, c->layer)) {
		caps_leave(d->number);
		error = -E2BIG;
		goto out;
	}
	/* before any task has the layer, so that a revocation which does not see this came earlier */
	__sync_fetch_and_or(
		&caps_session_at(d->session)->images[BOUND(c->image / 64, CAPS_IMAGE_WORDS)],
		1ull << (c->image & 63));
	caps_keep(d, narrows ? old : 0);
	caps_finish(d);
	*number = d->number;
out:
	if (old)
		caps_leave(old);
	return error;
}

static __noinline int caps_changed(struct caps_change *c, struct task_struct *task)
{
	struct caps_task *t = caps_tasks_made(task);
	union caps_both was, next;
	int error = 0;

	if (!t)
		return -ENOMEM;
	if (!caps_may_change(c, task))
		return -EPERM;
	was.word = READ_ONCE(*(u64 *)&t->domain);
	next = was;
	/* another question of the same process was quicker */
	if (!c->begins == !was.word)
		return -ESTALE;
	if (c->now && !(was.domain && caps_has(caps_domain_at(was.domain), c->layer)) &&
	    caps_is_shared(task))
		return -EBUSY;
	/* where it is in no session yet, it is to be in that of its next execution */
	if (was.onexec)
		c->session = caps_domain_at(was.onexec)->session;
	/* a layer that is there now is there after the next execution, too */
	if (was.onexec || !c->now)
		error = caps_more(c, was.onexec ? was.onexec : was.domain, false, &next.onexec);
	if (c->now && !error)
		error = caps_more(c, was.domain, true, &next.domain);
	if (!error && !caps_exchange_both(t, was, next))
		error = -EAGAIN;
	if (error)
		caps_leave_both(next, was);
	else
		caps_leave_both(was, next);
	return error;
}

/*
 * A thread comes to be where another one of its process is, whatever that is brought into at this moment. One that has a layer which
 * that has not, as an execution brought it just now, stays.
 */
static __noinline int caps_follow(struct task_struct *task, struct caps_task *first)
{
	struct caps_task *t = caps_tasks_made(task);
	u32 try, domain, old;

	if (!t || !first)
		return -ENOMEM;
	bpf_for(try, 0, 16) {
		domain = READ_ONCE(first->domain);
		old = READ_ONCE(t->domain);
		if (old == domain)
			return 0;
		if (!caps_enter(domain))
			continue;
		if ((!old || caps_is_within(caps_domain_at(domain), caps_domain_at(old))) &&
		    __sync_val_compare_and_swap(&t->domain, old, domain) == old) {
			if (old)
				caps_leave(old);
			return 0;
		}
		caps_leave(domain);
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
	/* a thread that executes takes over the start along with the number (de_thread() of fs/exec.c) */
	if (task->start_boottime != c.start) {
		bpf_task_release(task);
		return 0;
	}
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
