/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How everybody began: processes, and what they hold, as iterators. */
#ifndef TIDEGATE_RECORDER_BEGIN_H
#define TIDEGATE_RECORDER_BEGIN_H

/* Keeps the types of the lines in the object's BTF, where user space finds them. */
const struct tr_line *type_line;
const struct tr_end *type_end;

static __always_inline void tell_seq(struct seq_file *seq, struct tr_note *n)
{
	struct tg_scratch *w = scratch_get();

	if (!w) {
		__sync_fetch_and_add(&lines_lost, 1);
		return;
	}
	compose(n, w);
	bpf_seq_write(seq, &w->line, sizeof(w->line) + BOUND(w->at, 2 * TR_PATH));
	scratch_put(w);
}

static __always_inline bool is_there(struct task_struct *task)
{
	return task && !(task->flags & PF_KTHREAD) && task->pid == task->tgid &&
	       task->tgid != policy.recorder;
}

SEC("iter/task")
int begin_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct tr_note n = { .what = TR_PROCESS };
	struct mm_struct___ps *mm;

	if (!is_there(task))
		return 0;
	n.task = address(task);
	n.peer = task->real_parent->tgid;
	mm = CAST(struct mm_struct___ps, task->mm);
	if (task->mm && mm->exe_file) {
		struct file *f = CAST(struct file, mm->exe_file);

		n.inode = address(f->f_inode);
		n.dentry = address(f->f_path.dentry);
	}
	tell_seq(ctx->meta->seq, &n);
	return 0;
}

static __always_inline void held(struct seq_file *seq, struct task_struct *task, u64 file,
				 struct tr_note *n)
{
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, f->f_inode);
	u16 type = inode->i_mode & S_IFMT;

	n->what = TR_HELD;
	n->task = address(task);
	n->inode = address(inode);
	n->dentry = address(f->f_path.dentry);
	if (type == S_IFSOCK && inode->i_sb->s_magic == SOCKFS_MAGIC) {
		struct socket *sock = CAST(struct socket, f->private_data);

		if (!sock->sk)
			return;
		note_sock(CAST(struct sock, sock->sk), n);
		n->class = TG_C_SOCKET;
		if (n->family == AF_UNIX) {
			struct sock *peer = CAST(struct unix_sock, sock->sk)->peer;

			n->class = TG_C_UNIX;
			n->channel = peer ? socket_inode(address(peer)) : 0;
		}
	} else if (type == S_IFDIR) {
		return;
	}
	tell_seq(seq, n);
}

SEC("iter/task_file")
int begin_file(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct tr_note n = { .op = TG_OP_OPEN_READ, .class = TG_C_FILE };
	struct file *file = ctx->file;

	if (!file || !is_there(task))
		return 0;
	n.flags = (file->f_mode & FMODE_READ ? TR_READS : 0) |
		  (file->f_mode & FMODE_WRITE ? TR_WRITES : 0);
	held(ctx->meta->seq, task, address(file), &n);
	return 0;
}

SEC("iter/task_vma")
int begin_vma(struct bpf_iter__task_vma *ctx)
{
	struct task_struct *task = ctx->task;
	struct vm_area_struct *vma = ctx->vma;
	struct tr_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP };

	if (!vma || !is_there(task) || !vma->vm_file)
		return 0;
	if (vma->vm_flags & (VM_READ | VM_EXEC))
		n.flags |= TR_READS;
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == (VM_SHARED | VM_MAYWRITE))
		n.flags |= TR_WRITES;
	held(ctx->meta->seq, task, address(vma->vm_file), &n);
	return 0;
}

#endif
