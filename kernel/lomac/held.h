/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tasks that may hold what is revoked: a descriptor, or a ring, through which it could change
 * what is above it. The guard (guard.h) stays as long as there is one.
 *
 * Nobody finds that out from tables of processes that go on running: dup2(2) and close(2) pass no hook, and what is
 * looked for is moved from before the look to behind it. So it is noted of each task, in `clear` of its label:
 *   - a task that falls while the guard is needed has MAY_HOLD, as long as nothing else is known;
 *   - any other number is the count of what had been raised when it held nothing. User space counts after a policy, a
 *     promotion or a level given back has raised anything, with the guard attached from before that on (crates/monitor/src/
 *     guard.rs): from then on everybody below the top may hold what is revoked;
 *   - a child has its parent's, from before its descriptors are copied. What is handed over is asked about by whoever gets
 *     it (file_receive). So a task below the top that holds what is revoked has another number than the current one.
 * A task gets the current number by a look at its descriptors while no task that has that table
 * runs, or is inside a call that could bring one: blocked, and taken off its processor as often
 * before the look as after it (task_off). A call brings none that only waits, or reads. One that
 * writes may have in hand what another thread has closed since, and have been asked about nothing
 * yet: it may wait before that for the list of what is to be written (writev, sendmsg), or for the
 * file's position. One that receives a message may bring one that it was asked about before
 * something rose, but not if it was asked about one since, or about none at all (`received`).
 * tx_settle sees to it that a fall does not pass over such a call. A task that always runs, a
 * thread that has a table of its own, and a process that shares one with another keep their
 * numbers.
 *
 * Then one walk over the list of tasks says whether the guard may go, while no level falls. A child is at the end of that
 * list, and a thread that executes takes its process's place in it, so nobody is passed by.
 */
#ifndef TIDEGATE_LOMAC_HELD_H
#define TIDEGATE_LOMAC_HELD_H

#include "lib/arch.h"
#include "lomac/guard.h"

/*
 * Could it still write to an object of the file system that it has open, or mapped, for writing, and that is above it?
 * `later`: a pty's master without a session at the other end counts.
 */
static __always_inline bool object_is_revoked(struct lomac_subject who, struct lomac_object o,
					      struct file *f, bool later)
{
	struct inode *inode = CAST(struct inode, f->f_inode);

	return !lomac_modify(who, o, policy.top) ||
	       ((inode->i_mode & S_IFMT) == S_IFCHR && device_is_master(inode->i_rdev) &&
		master_types_up(f, who.level, later));
}

/* Could a task at this level change what is above it through a file that is open like this? */
__noinline bool file_is_revoked(u64 file, u8 level, u32 mode)
{
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, f->f_inode);
	struct lomac_subject who = { .level = level };
	u64 dentry = address(f->f_path.dentry);
	u16 type = inode->i_mode & S_IFMT;

	/* a ring's own table may hold descriptors that the task's does not show */
	if (tx_kind_of(f) == TX_RING)
		return true;
	if (type == S_IFSOCK && inode->i_sb->s_magic == SOCKFS_MAGIC) {
		u64 sk = channel_key(f);
		struct unix_sock *u = CAST(struct unix_sock, sk);

		return sk && u->sk.__sk_common.skc_family == AF_UNIX && u->peer &&
		       level < unix_admits(address(u->peer));
	}
	if (!(mode & FMODE_WRITE) || (type != S_IFREG && type != S_IFBLK && type != S_IFCHR))
		return false;
	if (writes_memory(address(inode), dentry, level))
		return false;
	/* of others who have a master open, too, one may begin a higher session there: no hook tells when a session takes a terminal */
	return object_is_revoked(who,
				 lomac_object_of_label(label_held(address(inode), dentry, NULL)), f,
				 file_references(file) > 1);
}

__noinline bool table_is_clear(u64 table, u8 level)
{
	struct fdtable *fdt = CAST(struct fdtable, CAST(struct files_struct, table)->fdt);
	struct file **fds = fdt->fd;
	u32 i, max = fdt->max_fds;

	if (max > FDTABLE_MAX)
		return false;
	bpf_for(i, 0, max) {
		u64 f = 0;

		bpf_probe_read_kernel(&f, sizeof(f), fds + i);
		if (f && file_is_revoked(f, level, CAST(struct file, f)->f_mode))
			return false;
	}
	return true;
}

/* Calls beside those of demote/quiesce.h in which a thread may stay for ever, and which write to no file or socket. */
#define CALLS_HELD(word)                                                                      \
	CALL(word, recvmsg) | CALL(word, semop) | CALL(word, msgsnd) | CALL(word, msgrcv) |   \
		CALL(word, syslog) | CALL(word, io_getevents) | CALL(word, semtimedop) |      \
		CALL(word, mq_timedsend) | CALL(word, mq_timedreceive) | CALL(word, preadv) | \
		CALL(word, recvmmsg) | CALL(word, preadv2) | CALL(word, io_pgetevents)

/* All 32-bit calls in which a thread may stay for ever, and which write to no file or socket. */
#define CALLS32_HELD(word)                                                                  \
	CALL32(word, restart_syscall) | CALL32(word, read) | CALL32(word, waitpid) |        \
		CALL32(word, pause) | CALL32(word, select) | CALL32(word, syslog) |         \
		CALL32(word, wait4) | CALL32(word, fsync) | CALL32(word, _newselect) |      \
		CALL32(word, flock) | CALL32(word, readv) | CALL32(word, fdatasync) |       \
		CALL32(word, sched_yield) | CALL32(word, nanosleep) | CALL32(word, poll) |  \
		CALL32(word, rt_sigtimedwait) | CALL32(word, rt_sigsuspend) |               \
		CALL32(word, pread64) | CALL32(word, futex) | CALL32(word, io_getevents) |  \
		CALL32(word, epoll_wait) | CALL32(word, clock_nanosleep) |                  \
		CALL32(word, mq_timedsend) | CALL32(word, mq_timedreceive) |                \
		CALL32(word, waitid) | CALL32(word, pselect6) | CALL32(word, ppoll) |       \
		CALL32(word, epoll_pwait) | CALL32(word, preadv) | CALL32(word, recvmmsg) | \
		CALL32(word, accept4) | CALL32(word, recvfrom) | CALL32(word, recvmsg) |    \
		CALL32(word, clock_nanosleep_time64) | CALL32(word, pselect6_time64) |      \
		CALL32(word, ppoll_time64) | CALL32(word, io_pgetevents_time64) |           \
		CALL32(word, recvmmsg_time64) | CALL32(word, mq_timedsend_time64) |         \
		CALL32(word, mq_timedreceive_time64) | CALL32(word, semtimedop_time64) |    \
		CALL32(word, rt_sigtimedwait_time64) | CALL32(word, futex_time64) |         \
		CALL32(word, epoll_pwait2)

const u64 held_calls[2][CALLS / 64] = { CALL_TABLE(CALLS_HELD), CALL_TABLE(CALLS32_HELD) };

/* Is it in a call that has no descriptor in hand, which it would put into its table as something that may be revoked? */
static __always_inline bool held_waits(struct task_struct *t, struct tg_subject *s, u32 number)
{
	u32 received = READ_ONCE(s->received);
	u32 abi = !!CALL_IS_32(t);
	u32 nr;

	in_order();
	nr = CALL_NUMBER(call_regs(t));
	if (tx_at_rest(t)) {
		/* nothing is on its way to it; what it is asked about from now on has the current number */
		if (received != number)
			__sync_val_compare_and_swap(&s->received, received, 0);
		return true;
	}
	if ((received && received != number) || t->flags & PF_DUMPCORE)
		return false;
	return CALL_IS_IN(held_calls[BOUND(abi, 2)], nr);
}

/* Is it in such a call, off its processor, and without a ring? Since when: task_off(); 0: it is not. */
static __always_inline u64 held_off(struct task_struct *t, struct tg_subject *s, u32 number)
{
	struct io_uring_task *rings = UNTRUSTED(t)->io_uring;
	u64 off = task_off(t);

	return off && held_waits(t, s, number) && !(rings && rings->xa.xa_head) ? off : 0;
}

/* A look at one process: only the daemon looks, at one at a time. */
struct held_look {
	u32 threads; /* of it have its table, */
	u32 unknown; /* of these have no current number, */
	u32 run;     /* are not at rest as the look begins, */
	u32 still;   /* and have not run since as it ends */
} held_look;

enum { HELD_BEGIN, HELD_END, HELD_CLEAR };

/* Begins a look at a process's table, ends it, or gives those who have it the current number. */
static __noinline int held_threads(struct task_struct *leader, u64 table, u32 step, u32 number)
{
	struct task_struct *t;

	bpf_for_each(task, t, leader, BPF_TASK_ITER_PROC_THREADS) {
		struct tg_subject *s;

		if (address(UNTRUSTED(t)->files) != table)
			continue;
		s = subject_made(t);
		if (step == HELD_BEGIN) {
			held_look.threads++;
			if (!s) {
				held_look.run++;
				continue;
			}
			s->look_clear = READ_ONCE(s->clear);
			s->look_off = held_off(t, s, number);
			held_look.unknown += s->look_clear != number;
			held_look.run += !s->look_off;
		} else if (!s) {
			continue;
		} else if (step == HELD_END) {
			held_look.still += s->look_off && held_off(t, s, number) == s->look_off;
		} else {
			__sync_val_compare_and_swap(&s->clear, s->look_clear, number);
		}
	}
	return 0;
}

/* Does a process hold nothing revoked, and has it not run while that was looked at? */
static __always_inline bool held_nothing(struct task_struct *leader, u64 table, u32 number)
{
	held_look.threads = held_look.unknown = held_look.run = held_look.still = 0;
	held_threads(leader, table, HELD_BEGIN, number);
	if (!held_look.unknown || held_look.run ||
	    held_look.threads != CAST(struct files_struct, table)->count.counter)
		return false;
	/* after the notes: a fall sets the level before it sets them */
	if (!table_is_clear(table, subject_label(leader).level))
		return false;
	held_threads(leader, table, HELD_END, number);
	return held_look.still == held_look.threads;
}

/* Looks at what a process holds, unless that is known. One number a process: 1, it holds nothing that is revoked. */
SEC("iter/task")
int ps_clear(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 number = held_now(), clear = 0;
	struct tg_label label;
	u64 table;

	if (!task || task->pid != task->tgid)
		return 0;
	table = address(UNTRUSTED(task)->files);
	label = subject_label(task);
	if (!table || !label.governed || label.level >= policy.top)
		return 0;
	if (label.clear == number && task->signal->nr_threads == 1)
		return 0;
	if (held_nothing(task, table, number)) {
		held_threads(task, table, HELD_CLEAR, number);
		clear = 1;
	}
	bpf_seq_write(ctx->meta->seq, &clear, sizeof(clear));
	return 0;
}

/* How many tasks may hold what is revoked. */
SEC("syscall")
int ps_held(u64 *held)
{
	u32 number = held_now();
	struct task_struct *t;
	u64 n = 0;

	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct task_struct *fields = UNTRUSTED(t);
		struct tg_label label = subject_label(t);

		if (!fields->files || !label.governed || label.level >= policy.top)
			continue;
		n += label.clear != number || (fields->io_uring && fields->io_uring->xa.xa_head);
	}
	bpf_rcu_read_unlock();
	*held = n;
	return 0;
}

#endif
