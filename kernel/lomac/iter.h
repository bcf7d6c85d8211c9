/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What user space asks of the kernel, as iterators: the labels of all
 * processes, and what they hold that does not agree with them. Decided by the
 * very functions the hooks use. No hooks.
 */
#ifndef TIDEGATE_LOMAC_ITER_H
#define TIDEGATE_LOMAC_ITER_H

#include "abi/ps.h"
#include "lib/arch.h"
#include "lib/look.h"
#include "lomac/held.h"
#include "lomac/network.h"
#include "lomac/terminal.h"

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
	u32 fd;     /* ~0: a mapping; LOOK_BLOCKED: it could not be looked at */
	u32 mode;   /* FMODE_READ, FMODE_WRITE */
	u32 source; /* rule: index into the bundle's rules, ~0: none */
	u16 type;   /* i_mode & S_IFMT */
	u8 level;   /* of the subject */
	u8 to;      /* the level it would have fallen to */
	u8 revoke;  /* it could write to what is above it */
	u8 family;  /* of the network it is connected to, 0: none */
	u8 written; /* somebody may have it open for writing, or mapped so */
	u8 pad[5];
	u8 addr[16]; /* of the other end; without a family how the last name of its path begins */
};

/*
 * What a process executes, a line for each of its mappings that may be. mm->exe_file is the
 * process's own word: one that has a user namespace may exchange it (PR_SET_MM), of memory that it
 * shares with a process outside, too. What it cannot exchange is the code that it runs.
 */
struct tg_code {
	u64 label; /* of what is executed; unknown: it is no file's, or not what the file has */
	u32 pid;   /* thread group id */
	u32 own;   /* it is the program's, which was executed, in the first user namespace */
	u32 fd;    /* LOOK_BLOCKED: it could not be looked at */
	u32 pad;
};

#define CALL_OF_I386 (~0u - 1)

/* The call that a thread is in, by its number. */
struct tg_call {
	u32 tid;
	u32 number; /* ~0: in none; CALL_OF_I386 */
};

/* Keeps the types of the lines in the object's BTF, where user space finds them. */
const struct tg_ps *type_ps;
const struct tg_held *type_held;
const struct tg_code *type_code;

const struct tg_call *type_call;

static __always_inline void held_socket(struct tg_held *line, struct file *f,
					struct lomac_subject who)
{
	struct socket *sock = CAST(struct socket, f->private_data);
	struct sock *sk = CAST(struct sock, sock->sk);
	struct net_peer p = {};

	if (!sock->sk)
		return;
	p.family = sk->__sk_common.skc_family;
	if (p.family == AF_UNIX) {
		line->family = AF_UNIX; /* until held_unix() */
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

/*
 * What a task holds: is it to be told? The rest of the line is the caller's. The last byte of `who`
 * is the task's level, and above it are its attributes; `own`: it is the process that asks.
 */
__noinline bool held(u64 file, u32 mode, u32 who, bool own, struct tg_held *line __arg_nonnull)
{
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, f->f_inode);
	struct lomac_subject subject = { .level = who & 0xff, .attrs = who >> 8 };
	struct tg_given_key key = given_key(inode);

	__builtin_memset(line, 0, sizeof(*line));
	line->type = inode->i_mode & S_IFMT;
	line->to = subject.level;
	line->level = subject.level;
	line->source = ~0u;
	line->ino = key.ino;
	line->dev = key.dev;
	line->generation = key.generation;
	/* devices are not counted */
	line->written = line->type != S_IFREG || inode->i_writecount.counter > 0;
	line->mode = mode;
	/* a ring's own table may hold descriptors that the task's does not show */
	if (subject.level < policy.top && tx_kind_of(f) == TX_RING)
		line->revoke = true;
	if (line->type == S_IFSOCK && inode->i_sb->s_magic == SOCKFS_MAGIC) {
		held_socket(line, f, subject);
	} else if (own || line->type == S_IFREG || line->type == S_IFBLK || line->type == S_IFCHR) {
		struct lomac_object o;
		u64 dentry = address(f->f_path.dentry);
		u32 source = ~0u;

		if (!own && writes_memory(address(inode), dentry, subject.level))
			return false;
		line->label = own ? label_peek(address(inode), dentry, &source) :
				    label_held(address(inode), dentry, &source);
		line->source = source;
		o = lomac_object_of_label(line->label);
		if (mode & FMODE_READ)
			line->to = lomac_observe(subject, o);
		if (mode & FMODE_WRITE)
			line->revoke = object_is_revoked(subject, o, f, false);
	}
	if (!own && line->to >= subject.level && !line->revoke)
		return false;
	if (!line->family)
		bpf_probe_read_kernel_str(
			line->addr, sizeof(line->addr),
			CAST(struct dentry, address(f->f_path.dentry))->d_name.name);
	return true;
}

/* The rest of it for a descriptor of a Unix socket, which nothing maps. */
__noinline bool held_unix(u64 file, bool own, struct tg_held *line __arg_nonnull)
{
	struct socket *sock = CAST(struct socket, CAST(struct file, file)->private_data);
	struct unix_sock *u = CAST(struct unix_sock, sock->sk);
	u8 floor, admits;

	line->family = 0;
	if (!address(u))
		return own;
	floor = floor_of(address(u));
	/* a process that asks for its own is told the lowest level that may have written there */
	if (own && floor < line->to)
		line->to = floor;
	if (u->peer) {
		admits = unix_admits(address(u->peer));
		line->label = admits == UNIX_LATER ? policy.top : admits;
		line->revoke = line->level < label_level(line->label);
	}
	return own || line->to < line->level || line->revoke;
}

/* The holder, as `who` of held() has it. */
static __always_inline u32 held_by(struct task_struct *task)
{
	struct tg_label label = subject_label(task);

	return (u32)label.attrs << 8 | label.level;
}

static __always_inline void held_write(struct seq_file *seq, struct task_struct *task, u32 fd,
				       struct tg_held *line)
{
	line->pid = task->tgid;
	line->tid = task->pid;
	line->fd = fd;
	bpf_seq_write(seq, line, sizeof(*line));
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
	mm = CAST(struct mm_struct___ps, task->mm);
	if (task->mm && mm->exe_file) {
		struct file *f = CAST(struct file, mm->exe_file);

		line.exe = label_peek(address(f->f_inode), address(f->f_path.dentry), &source);
		line.executed = opened_to_execute(f);
	}
	bpf_probe_read_kernel_str(line.comm, sizeof(line.comm), task->comm);
	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}

/*
 * User space reads and writes labels in task storage. Before it reads, a task that was born in its
 * slot is given storage; after it has written, the slot's word is corrected. One number a task: 0,
 * there was no memory for it.
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

/* Which call each thread is in, or was in last. Procfs would wait for an execution under way. */
SEC("iter/task")
int ps_call(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct tg_call line = {};

	if (!task || !task->mm)
		return 0;
	line.tid = task->pid;
	line.number = CALL_NUMBER(call_regs(task));
	/* where other numbers are those of calls that only wait */
	if (CALL_IS_32(task))
		line.number = CALL_OF_I386;
	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}

SEC("iter/task_file")
int ps_file(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct tg_held line = {};
	bool own, told;

	if (!task || !file)
		return 0;
	own = task->tgid == bpf_get_current_pid_tgid() >> 32;
	told = held(address(file), file->f_mode & (FMODE_READ | FMODE_WRITE), held_by(task), own,
		    &line);
	if (line.family == AF_UNIX)
		told = held_unix(address(file), own, &line);
	if (told)
		held_write(ctx->meta->seq, task, ctx->fd, &line);
	return 0;
}

/* The same of a mapping, of another process. */
static __always_inline bool held_mapping(u64 at, u32 who, struct tg_held *line)
{
	struct vm_area_struct *vma = CAST(struct vm_area_struct, at);
	u64 file = address(vma->vm_file);
	struct inode *inode;
	u32 mode = 0;

	if (!file)
		return false;
	inode = CAST(struct inode, CAST(struct file, file)->f_inode);
	if (looks_ino && (looks_ino != inode->i_ino || looks_dev != inode->i_sb->s_dev))
		return false;
	if (vma->vm_flags & (VM_READ | VM_EXEC))
		mode |= FMODE_READ;
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == (VM_SHARED | VM_MAYWRITE))
		mode |= FMODE_WRITE;
	return held(file, mode, who, false, line);
}

/* Of what would have lowered a process only what is lower than what was told before: there is room for few lines. */
SEC("iter/task")
int ps_vma(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct vm_area_struct *vma;
	struct tg_held line = {};
	struct look look;
	u32 lowest, end;

	if (!task || !look_begins(&look, task, seq) ||
	    task->tgid == bpf_get_current_pid_tgid() >> 32)
		return 0;
	look.who = held_by(task);
	lowest = look.who & 0xff;
	bpf_for_each(task_vma, vma, task, 0) {
		look.seen++;
		if (!held_mapping(address(vma), look.who, &line) ||
		    (line.to >= lowest && !(line.revoke && look_has_room(&look, seq))))
			continue;
		if (line.to < lowest)
			lowest = line.to;
		held_write(seq, task, ~0u, &line);
	}
	end = look_ends(&look, task);
	if (end != LOOK_GIVEN_UP)
		return end;
	__builtin_memset(&line, 0, sizeof(line));
	line.source = ~0u;
	line.level = look.who & 0xff;
	held_write(seq, task, LOOK_BLOCKED, &line);
	return 0;
}

/* What a mapping that is executed says of a program, by whose file's inode its process was begun; 0: that is not known. False: nothing. */
__noinline bool code_of(u64 at, u64 program, struct tg_code *line __arg_nonnull)
{
	struct vm_area_struct *vma = CAST(struct vm_area_struct, at);
	u64 file = address(vma->vm_file), dentry, inode;
	u32 source;

	if (!(vma->vm_flags & VM_EXEC))
		return false;
	/* what the kernel maps for everybody, the vdso, unless it was written to */
	if (!file && vma->vm_ops && !vma->anon_vma)
		return false;
	line->label = LABEL_UNKNOWN;
	line->own = 0;
	/* pages of its own: they were written, which a program's code is not */
	if (!file || vma->anon_vma)
		return true;
	dentry = address(path_opened(file)->dentry);
	inode = address(CAST(struct dentry, dentry)->d_inode);
	/* memory has no name that would say whose it is */
	if (!inode_is_memory(CAST(struct inode, inode)))
		line->label = label_held(inode, dentry, &source);
	line->own = inode == program;
	return true;
}

SEC("iter/task")
int ps_code(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct tg_code line = { .label = LABEL_UNKNOWN };
	struct vm_area_struct *vma;
	struct look look;
	u64 program = 0;
	struct file *exe;
	u32 end;

	if (!task || !look_begins(&look, task, seq))
		return 0;
	line.pid = task->tgid;
	exe = CAST(struct file, address(CAST(struct mm_struct___ps, look.mm)->exe_file));
	if (address(exe) && opened_to_execute(exe) &&
	    !CAST(struct cred, address(task->cred))->user_ns->level)
		program = address(exe->f_inode);
	bpf_for_each(task_vma, vma, task, 0) {
		look.seen++;
		if (!code_of(address(vma), program, &line))
			continue;
		line.pid = task->tgid;
		/* whatever else there is counts as anybody's */
		if (!look_has_room(&look, seq)) {
			line.label = LABEL_UNKNOWN;
			bpf_seq_write(seq, &line, sizeof(line));
			return 0;
		}
		bpf_seq_write(seq, &line, sizeof(line));
	}
	end = look_ends(&look, task);
	if (end != LOOK_GIVEN_UP)
		return end;
	line.label = LABEL_UNKNOWN;
	line.pid = task->tgid;
	line.own = 0;
	line.fd = LOOK_BLOCKED;
	bpf_seq_write(seq, &line, sizeof(line));
	return 0;
}

#endif
