/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system-wide start of the `te` model: every task gets a SID (crates/monitor/src/system.rs).
 * User space reads which tasks there are, makes of it what executions since the machine started
 * would have made, and says so in a table; a task that is met before that is a stray, and has the
 * SID of what has no label (subject.h).
 */
#ifndef TIDEGATE_TE_ADOPT_H
#define TIDEGATE_TE_ADOPT_H

#include "core/ps.h"
#include "lib/file.h"
#include "te/cred.h"
#include "te/net.h"

/* A thread, and its program. */
struct tg_te_task {
	u64 start;   /* nanoseconds of CLOCK_BOOTTIME */
	u64 sid;     /* 0: it has none yet */
	u64 label;   /* its program's SID, 0: it has no program; ~1: it cannot be known now */
	u64 program; /* which one: an address, for comparison */
	u32 pid;     /* thread group id */
	u32 tid;
	u32 ppid;
	u32 session;
	u32 kernel;
	u32 stray;
	u32 executed; /* its program was opened by an execution, and not named later */
	u32 pad;
};

const struct tg_te_task *type_te_task GLOBAL_OF(te);

SEC("iter/task")
int ps_te_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct tg_te_task line = {};
	struct te_subject *s;
	struct mm_struct___ps *mm;

	if (!task)
		return 0;
	s = te_subjects_task(task);
	if (s && s->exempt)
		return 0;
	line.sid = s ? s->sid : 0;
	line.stray = s && s->stray;
	line.start = task->start_boottime;
	line.pid = task->tgid;
	line.tid = task->pid;
	line.ppid = task->real_parent->tgid;
	line.session = task->signal->pids[PIDTYPE_SID]->numbers[0].nr;
	line.kernel = !!(task->flags & PF_KTHREAD);
	mm = CAST(struct mm_struct___ps, task->mm);
	if (task->mm && mm->exe_file) {
		struct file *f = CAST(struct file, mm->exe_file);

		line.program = address(f->f_inode);
		line.label = te_inode_peek(address(f->f_inode), address(f->f_path.dentry));
		line.executed = opened_to_execute(f);
	}
	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}

struct te_adopted {
	u64 start;
	u32 tid;
	u32 pad;
};

/* The SID that a thread is to have; TE_EXEMPT: none. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, struct te_adopted);
	__type(value, u64);
} te_adopted SEC(".maps");

#define TE_EXEMPT (~0ull)

/* One number a task that the table names: 0, there was no memory for it. */
SEC("iter/task")
int ps_te_adopt(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct te_adopted key = {};
	struct te_subject *s;
	u32 done;
	u64 *sid;

	if (!task)
		return 0;
	key.start = task->start_boottime;
	key.tid = task->pid;
	sid = bpf_map_lookup_elem(&te_adopted, &key);
	if (!sid)
		return 0;
	s = te_subjects_made(task);
	done = !!s;
	if (s && *sid == TE_EXEMPT) {
		s->exempt = 1;
		s->sid = 0;
	} else if (s && (!s->sid || s->stray)) {
		/* an execution that began before this is by nobody: it ends in a stray */
		s->exec = 0;
		s->sid = *sid;
		s->stray = 0;
		/* what it opens, and has opened, is its own */
		done = !te_cred_give(address(CAST(struct task_struct, address(task))->cred), *sid);
	}
	bpf_seq_write(ctx->meta->seq, &done, sizeof(done));
	return 0;
}

/* The SID of each thread. */
SEC("iter/task")
int ps_te_sid(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	return task ? ps_write_model(ctx, task, te_sid_of(task)) : 0;
}

/* Whether the first process's sockets are meant, or all others'. */
u32 te_first_holds GLOBAL_OF(te);

/*
 * A socket that was there before is what its holder is: without, what governed processes do with their own would be asked
 * about the kernel's. What the first process holds for others, as a service manager does, is theirs.
 */
SEC("iter/task_file")
int ps_te_socket(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct te_sock fresh = {};
	struct socket *sock;
	struct sock *sk, *at;

	if (!task || !file || (task->tgid == 1) != te_first_holds)
		return 0;
	fresh.sid = te_sid_of(task);
	sock = fresh.sid ? bpf_sock_from_file(file) : NULL;
	if (!sock)
		return 0;
	sk = sock->sk;
	if (!sk || bpf_sk_storage_get(&te_socks, sk, 0, 0))
		return 0;
	at = CAST(struct sock, address(sk));
	fresh.class = te_socket_class(at->__sk_common.skc_family, at->sk_type, at->sk_protocol);
	if (!STORAGE_MADE(bpf_sk_storage_get, &te_socks, sk, &fresh))
		__sync_fetch_and_add(&labels_failed, 1);
	return 0;
}

#endif
