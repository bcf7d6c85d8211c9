/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Revocation of what the `te` model granted under an earlier policy: descriptors, mappings and connections, which
 * outlive the decision that they were made by (Flask's migrated permissions).
 *
 * Sockets are asked about at each message anyway, and what is remembered of a decision holds for its policy only. The
 * rest takes user space (crates/monitor/src/te_revoke.rs): once a policy is in force, it attaches the guard below, has
 * every governed thread be seen outside of what it began before, and looks with the iterators below for what its
 * holder may not use any more. A descriptor is left to the guard, which stays as long as there is one. A mapping is
 * asked about by nobody: its holder is killed.
 */
#ifndef TIDEGATE_TE_REVOKE_H
#define TIDEGATE_TE_REVOKE_H

#include "lib/fdtable.h"
#include "lib/look.h"
#include "lib/overlay.h"
#include "core/wait.h"
#include "te/file.h"

/* What a governed task holds, and may not use under the policy in force; and all files of the process that asks. */
struct tg_te_held {
	u64 source;
	u64 target;
	u64 ino; /* 0: of a ring, or of memory that no file is behind */
	u32 dev;
	u32 class;
	u32 denied;
	u32 pid; /* thread group id */
	u32 tid;
	u32 fd; /* ~0: a mapping; LOOK_BLOCKED: it could not be looked at */
};

const struct tg_te_held *type_te_held GLOBAL_OF(te);

/* What of a request the policy in force does not allow; of what cannot be known now, all. */
static __always_inline u32 te_lost(u64 source, u64 target, u32 class, u32 request)
{
	struct te_query q = { .source = source, .target = target, .class = class };
	struct te_av_decision k;

	if (target == TE_LATER || !te_avc_lookup(&q, &k, NULL))
		return request;
	return k.permissive ? 0 : request & ~k.allow;
}

static __always_inline void te_held(struct seq_file *seq, struct task_struct *task,
				    struct tg_te_held *line)
{
	line->pid = task->tgid;
	line->tid = task->pid;
	bpf_seq_write(seq, line, sizeof(*line));
}

static __noinline void te_held_file(struct tg_te_held *line, u64 file, u32 request)
{
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, f->f_inode);

	/* what a ring has in a table of its own nobody sees: the guard stays with it */
	if (tx_kind_of(f) == TX_RING) {
		line->target = line->source;
		line->class = SECCLASS_IO_URING;
		line->denied = 1;
		return;
	}
	/* a socket is asked about at each message */
	if (!te_is_file(inode) || inode->i_sb->s_magic == SOCKFS_MAGIC)
		return;
	line->ino = inode->i_ino;
	line->dev = inode->i_sb->s_dev;
	line->class = te_class_of_inode(address(inode));
	line->target = te_inode_peek(address(inode), address(f->f_path.dentry));
	line->denied = te_lost(line->source, line->target, line->class, request);
}

/* Of what is mapped of an overlay's file, which is behind it: the overlay's. */
static __noinline void te_held_behind(struct tg_te_held *line, u64 file, u32 request)
{
	u64 dentry = address(path_opened(file)->dentry),
	    inode = address(CAST(struct dentry, dentry)->d_inode);

	line->ino = CAST(struct inode, inode)->i_ino;
	line->dev = CAST(struct inode, inode)->i_sb->s_dev;
	line->class = te_class_of_inode(inode);
	line->target = te_inode_peek(inode, dentry);
	line->denied = te_lost(line->source, line->target, line->class, request);
}

/* The use of a descriptor, by the SID of the task that opened it. */
static __noinline void te_held_descriptor(struct tg_te_held *line, u64 file)
{
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, f->f_inode);

	if (tx_kind_of(f) == TX_RING)
		return;
	line->ino = inode->i_ino;
	line->dev = inode->i_sb->s_dev;
	line->target = te_opener(file, line->source);
	line->class = SECCLASS_FD;
	line->denied = line->target ? te_lost(line->source, line->target, SECCLASS_FD, FD__USE) : 0;
}

SEC("iter/task_file")
int ps_te_file(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct tg_te_held line = {};
	bool own;

	if (!task || !file)
		return 0;
	own = task->tgid == bpf_get_current_pid_tgid() >> 32;
	line.source = te_sid_of(task);
	line.fd = ctx->fd;
	if (!own && (!line.source || file->f_mode & FMODE_PATH))
		return 0;
	if (!own)
		te_held_descriptor(&line, address(file));
	if (!line.denied)
		te_held_file(&line, address(file), te_file_request(file));
	if (own || line.denied)
		te_held(ctx->meta->seq, task, &line);
	return 0;
}

/* May whose SID the line has not have this mapping? */
__noinline bool te_held_mapping(u64 at, struct tg_te_held *line __arg_nonnull)
{
	struct vm_area_struct *vma = CAST(struct vm_area_struct, at);
	u64 file = address(vma->vm_file);
	u32 request = FILE__MAP;

	line->denied = 0;
	line->ino = 0;
	if (file) {
		if (vma->vm_flags & VM_READ)
			request |= FILE__READ;
		if (vma->vm_flags & VM_WRITE && vma->vm_flags & VM_SHARED)
			request |= FILE__WRITE;
		if (vma->vm_flags & VM_EXEC)
			request |= FILE__EXECUTE;
		if (file_is_behind(file))
			te_held_behind(line, file, request);
		else
			te_held_file(line, file, request);
	}
	/* memory that may be written, or was, and be executed; the kernel's own, as the vDSO, has operations */
	if (!line->denied && vma->vm_flags & VM_EXEC &&
	    (file ? (vma->vm_flags & (VM_WRITE | VM_SHARED)) == VM_WRITE : !vma->vm_ops)) {
		line->ino = 0;
		line->target = line->source;
		line->class = SECCLASS_PROCESS;
		line->denied = te_lost(line->source, line->target, line->class, PROCESS__EXECMEM);
	}
	return line->denied;
}

/* One mapping of each process that has such: there is no process afterwards. */
SEC("iter/task")
int ps_te_vma(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct tg_te_held line = { .fd = ~0u };
	struct vm_area_struct *vma;
	struct look look;
	bool found = false;

	if (!task)
		return 0;
	line.source = te_sid_of(task);
	if (!line.source || !look_begins(&look, task, seq))
		return 0;
	bpf_for_each(task_vma, vma, task, 0) {
		look.seen++;
		found = te_held_mapping(address(vma), &line);
		if (found)
			break;
	}
	if (!found) {
		u32 end = look_ends(&look, task);

		if (end != LOOK_GIVEN_UP)
			return end;
		line.fd = LOOK_BLOCKED;
	}
	te_held(seq, task, &line);
	return 0;
}

/* The guard: what is read and written through descriptors of an earlier policy. selinux_file_permission() */
SEC("lsm/file_permission")
int BPF_PROG(te_guard_file_permission, struct file *file, int mask)
{
	u32 request = 0;

	if (!te_me().subject)
		return 0;
	if (mask & MAY_READ)
		request |= FILE__READ;
	if (mask & (MAY_WRITE | MAY_APPEND))
		request |= file->f_flags & O_APPEND ? FILE__APPEND : FILE__WRITE;
	return request ? te_file_asked(file, request,
				       mask & MAY_READ ? TG_OP_READ_REVOKED : TG_OP_WRITE_REVOKED) :
			 0;
}

/* Only while it is attached: set by user space afterwards, cleared before. */
u32 te_guard_armed GLOBAL_OF(te);

/*
 * Does the current task, which has come to another domain, hold descriptors that this may not use? It is set already: user
 * space looks for such tasks once more after it has cleared the flag above, and we read that after the SID was set, so one of
 * the two sees the other.
 */
static __noinline bool te_inherits(u64 sid)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct fdtable *fdt =
		CAST(struct fdtable, CAST(struct files_struct, address(me->files))->fdt);
	struct file **fds = fdt->fd;
	u32 i, max = fdt->max_fds;

	if (max > FDTABLE_MAX)
		return true;
	bpf_for(i, 0, max) {
		struct tg_te_held held = { .source = sid };
		struct file *f;
		u64 at = 0;

		bpf_probe_read_kernel(&at, sizeof(at), fds + i);
		if (!at)
			continue;
		f = CAST(struct file, at);
		if (f->f_mode & FMODE_PATH)
			continue;
		te_held_descriptor(&held, at);
		if (!held.denied)
			te_held_file(&held, at, te_file_request(f));
		if (held.denied)
			return true;
	}
	return false;
}

/* Is the guard attached? If not, it is asked for. */
static __noinline bool te_guard_now(void)
{
	struct tg_note n = { .kind = TG_E_GUARD, .class = TG_C_TE, .source = ~0u };

	if (__sync_fetch_and_or(&te_guard_armed, 0))
		return true;
	audit(&n);
	return false;
}

/* Has it attached; false: it was not in time. */
static __noinline bool te_guard(void)
{
	return te_guard_now() || guard_wait(&te_guard_armed);
}

#endif
