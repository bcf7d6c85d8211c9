/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What user space asks of the kernel, as iterators: the labels of all
 * processes, and the descriptors it may have to revoke or to name. No hooks.
 */
#ifndef TIDEGATE_HOOK_PS_H
#define TIDEGATE_HOOK_PS_H

/* An open file. Of governed subjects only those open for writing are told. */
struct tg_fd {
	u64 ino;
	u32 dev;
	u32 generation;
	u32 pid; /* thread group id */
	u32 tid;
	u32 fd;
	u32 mode; /* f_mode: FMODE_READ, FMODE_WRITE */
	u16 type; /* i_mode & S_IFMT */
	u8 level; /* of the subject */
	u8 attrs;
	u32 rdev;
};

/* Keeps the types of the lines in the object's BTF, where user space finds them. */
const struct tg_ps *type_ps;
const struct tg_fd *type_fd;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seq_file;
struct bpf_iter_meta { struct seq_file *seq; };
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; };
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

#pragma clang attribute pop

SEC("iter/task")
int ps_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct tg_ps line = {};
	struct tg_subject *s;

	if (!task || task->pid != task->tgid || task->flags & PF_KTHREAD)
		return 0;
	s = subject_of(task);
	line.pid = task->tgid;
	line.ppid = task->real_parent->tgid;
	line.uid = task->cred->uid.val;
	line.level = subject_level(s);
	line.attrs = s ? s->attrs : 0;
	line.governed = s != NULL;
	line.start = task->start_boottime;
	line.cause = s ? s->cause : 0;
	bpf_probe_read_kernel_str(line.comm, sizeof(line.comm), task->comm);
	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}

SEC("iter/task_file")
int ps_file(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct tg_fd line = {};
	struct tg_subject *s;
	bool own;

	if (!task || !file)
		return 0;
	s = subject_of(task);
	own = task->tgid == bpf_get_current_pid_tgid() >> 32;
	if (!own && (!s || !(file->f_mode & FMODE_WRITE)))
		return 0;
	line.ino = file->f_inode->i_ino;
	line.dev = file->f_inode->i_sb->s_dev;
	line.generation = file->f_inode->i_generation;
	line.pid = task->tgid;
	line.tid = task->pid;
	line.fd = ctx->fd;
	line.mode = file->f_mode & (FMODE_READ | FMODE_WRITE);
	line.type = file->f_inode->i_mode & S_IFMT;
	line.level = subject_level(s);
	line.attrs = s ? s->attrs : 0;
	line.rdev = file->f_inode->i_rdev;
	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}

#endif
