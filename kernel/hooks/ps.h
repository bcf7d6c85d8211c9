/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What user space asks of the kernel, as iterators: the labels of all
 * processes, and what they hold that does not agree with them. Decided by the
 * very functions the hooks use. No hooks.
 */
#ifndef TIDEGATE_HOOK_PS_H
#define TIDEGATE_HOOK_PS_H

/*
 * A descriptor or a mapping that a subject would have fallen by, or through
 * which it could change something above it; of the asking process, all.
 */
struct tg_held {
	u64 label; /* of what is held; of a socket, only its level */
	u64 ino;
	u32 dev;
	u32 generation;
	u32 pid; /* thread group id */
	u32 tid;
	u32 fd;     /* ~0: a mapping */
	u32 mode;   /* FMODE_READ, FMODE_WRITE */
	u32 source; /* rule: index into the bundle's rules, ~0: none */
	u16 type;   /* i_mode & S_IFMT */
	u8 level;   /* of the subject */
	u8 to;      /* the level it would have fallen to */
	u8 revoke;  /* it could write to what is above it */
	u8 family;  /* of the network it is connected to, 0: none */
	u16 pad[3];
	u8 addr[16];
};

/*
 * What a process executes, a line for each of its mappings that may be. mm->exe_file is the process's own word: who has a user
 * namespace may exchange it (PR_SET_MM), of memory that it shares with a process outside, too. What it cannot exchange is the
 * code that it runs.
 */
struct tg_code {
	u64 label; /* of what is executed; unknown: it is no file's, or not what the file has */
	u32 pid;   /* thread group id */
	u32 own;   /* it is the program's, which was executed, in the first user namespace */
};

/* Keeps the types of the lines in the object's BTF, where user space finds them. */
const struct tg_ps *type_ps;
const struct tg_held *type_held;
const struct tg_code *type_code;

/* Was a process's program opened by an execution? No other open has this flag (linux/fcntl.h, VALID_OPEN_FLAGS). */
static __always_inline bool exe_is_executed(struct file *exe)
{
	return exe->f_flags & FMODE_EXEC_FLAG;
}

static __always_inline void held_socket(struct tg_held *line, struct file *f,
					struct lomac_subject who, bool own)
{
	struct socket *sock = CAST(struct socket, f->private_data);
	struct sock *sk = CAST(struct sock, sock->sk);
	struct net_peer p = {};

	if (!sock->sk)
		return;
	p.family = sk->__sk_common.skc_family;
	if (p.family == AF_UNIX) {
		struct unix_sock *u = CAST(struct unix_sock, sock->sk);
		u8 floor = floor_of(address(u));

		/* who asks for its own is told the lowest who may have written there */
		if (own && floor < line->to)
			line->to = floor;
		if (u->peer) {
			u8 admits = unix_admits(address(u->peer));

			line->label = admits == UNIX_LATER ? policy.top : admits;
		}
		return;
	}
	if (p.family == AF_INET || p.family == AF_INET6)
		net_peer_of(sk, &p);
	else if (p.family != AF_PACKET && p.family != AF_VSOCK && p.family != AF_XDP)
		return;
	/* nobody at the other end yet: what arrives will be observed */
	if (!p.known && p.family != AF_PACKET && p.family != AF_XDP && sk->sk_type != SOCK_RAW)
		return;
	line->label = net_believed(&p);
	line->to = lomac_observe_net(who, label_level(line->label));
	line->family = p.family;
	__builtin_memcpy(line->addr, p.addr, sizeof(p.addr));
}

static __always_inline void held(struct seq_file *seq, struct task_struct *task, u64 file, u32 fd,
				 u32 mode)
{
	bool own = task->tgid == bpf_get_current_pid_tgid() >> 32;
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, f->f_inode);
	struct tg_label label = subject_label(task);
	struct lomac_subject who = { .level = label.level, .attrs = label.attrs };
	struct tg_held line = {};

	line.type = inode->i_mode & S_IFMT;
	line.to = who.level;
	line.level = who.level;
	line.source = ~0u;
	line.revoke = who.level < policy.top && file_is_revoked(file, who.level, mode);
	if (line.type == S_IFSOCK && inode->i_sb->s_magic == SOCKFS_MAGIC) {
		held_socket(&line, f, who, own);
	} else if (own || line.type == S_IFREG || line.type == S_IFBLK || line.type == S_IFCHR) {
		struct lomac_object o;

		if (inode_is_memory(inode) && !own &&
		    memory_admits(address(inode), address(f->f_path.dentry), who.level))
			return;
		line.label =
			own ? label_peek(address(inode), address(f->f_path.dentry), &line.source) :
			      label_held(address(inode), address(f->f_path.dentry), &line.source);
		o = object(line.label);
		if (mode & FMODE_READ)
			line.to = lomac_observe(who, o);
	}
	if (!own && line.to >= who.level && !line.revoke)
		return;
	line.ino = inode->i_ino;
	line.dev = inode->i_sb->s_dev;
	line.generation = inode->i_generation;
	line.pid = task->tgid;
	line.tid = task->pid;
	line.fd = fd;
	line.mode = mode;
	bpf_seq_write(seq, &line, sizeof(line));
}

SEC("iter/task")
int ps_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct tg_ps line = {};
	struct mm_struct___ps *mm;
	struct tg_label label;
	u32 source;

	if (!task || task->flags & PF_KTHREAD)
		return 0;
	line.rings = task->io_uring && task->io_uring->xa.xa_head;
	if (task->pid != task->tgid && !line.rings)
		return 0;
	label = subject_label(task);
	line.pid = task->tgid;
	line.tid = task->pid;
	line.ppid = task->real_parent->tgid;
	line.uid = task->cred->uid.val;
	line.level = label.level;
	line.attrs = label.attrs;
	line.governed = label.governed;
	line.start = task->start_boottime;
	line.cause = label.cause;
	line.sid = te_sid_of(task);
	line.caps = caps_domain_of(task);
	mm = CAST(struct mm_struct___ps, task->mm);
	if (task->mm && mm->exe_file) {
		struct file *f = CAST(struct file, mm->exe_file);

		line.exe = label_peek(address(f->f_inode), address(f->f_path.dentry), &source);
		line.executed = exe_is_executed(f);
	}
	bpf_probe_read_kernel_str(line.comm, sizeof(line.comm), task->comm);
	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}

/*
 * User space reads and writes labels in task storage. Before it reads, who was born in
 * its slot is given storage; after it has written, the slot's word is corrected. One
 * number a task: 0, there was no memory for it.
 */
SEC("iter/task")
int ps_settle(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct tg_subject *s;
	u32 done;

	if (!task)
		return 0;
	s = subject_of(task);
	done = s != &subject_lost;
	if (s && done)
		slot_correct(address(task), s);
	bpf_seq_write(ctx->meta->seq, &done, sizeof(done));
	return 0;
}

/* The profile of each task, by its id; 0: it has none. */
SEC("iter/task")
int ps_profile(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct tg_confined *c;
	u64 profile;

	if (!task)
		return 0;
	c = confined_task(task);
	profile = c ? c->profile : 0;
	bpf_seq_write(ctx->meta->seq, &profile, sizeof(profile));
	return 0;
}

SEC("iter/task_file")
int ps_file(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;

	if (task && file)
		held(ctx->meta->seq, task, address(file), ctx->fd,
		     file->f_mode & (FMODE_READ | FMODE_WRITE));
	return 0;
}

SEC("iter/task_vma")
int ps_vma(struct bpf_iter__task_vma *ctx)
{
	struct task_struct *task = ctx->task;
	struct vm_area_struct *vma = ctx->vma;
	u32 mode = 0;

	if (!task || !vma || !vma->vm_file)
		return 0;
	if (vma->vm_flags & (VM_READ | VM_EXEC))
		mode |= FMODE_READ;
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == (VM_SHARED | VM_MAYWRITE))
		mode |= FMODE_WRITE;
	held(ctx->meta->seq, task, address(vma->vm_file), ~0u, mode);
	return 0;
}

SEC("iter/task_vma")
int ps_code(struct bpf_iter__task_vma *ctx)
{
	struct task_struct *task = ctx->task;
	struct vm_area_struct *vma = ctx->vma;
	struct tg_code line = { .label = LABEL_UNKNOWN };
	struct mm_struct___ps *mm;
	u64 dentry, inode;
	u32 source;

	if (!task || !vma || !(vma->vm_flags & VM_EXEC))
		return 0;
	/* what the kernel maps for everybody, the vdso, unless it was written to */
	if (!vma->vm_file && vma->vm_ops && !vma->anon_vma)
		return 0;
	line.pid = task->tgid;
	/* pages of its own: they were written, which a program's code is not */
	if (vma->vm_file && !vma->anon_vma) {
		dentry = address(path_opened(address(vma->vm_file))->dentry);
		inode = address(CAST(struct dentry, dentry)->d_inode);
		/* memory has no name that would say whose it is */
		if (!inode_is_memory(CAST(struct inode, inode)))
			line.label = label_held(inode, dentry, &source);
		mm = CAST(struct mm_struct___ps, task->mm);
		if (task->mm && mm->exe_file) {
			struct file *exe = CAST(struct file, mm->exe_file);

			line.own = address(exe->f_inode) == inode && exe_is_executed(exe) &&
				   !CAST(struct cred, address(task->cred))->user_ns->level;
		}
	}
	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}

#endif
