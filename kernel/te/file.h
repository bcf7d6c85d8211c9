/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: open files. selinux_file_*() of security/selinux/hooks.c. */
#ifndef TIDEGATE_TE_FILE_H
#define TIDEGATE_TE_FILE_H

/* Has it a label? */
static __always_inline bool te_is_file(struct inode *inode)
{
	u64 magic = inode->i_sb->s_magic;

	/* the kernel's own: System V shared memory, what is shared and anonymous, what all that is anonymous share */
	if (inode->i_flags & S_PRIVATE)
		return false;
	return magic != NSFS_MAGIC && magic != PIDFS_MAGIC && magic != DMA_BUF_MAGIC;
}

/* file_to_av() */
static __always_inline u32 te_file_request(struct file *file)
{
	u32 request = 0;

	if (file->f_mode & FMODE_READ)
		request |= FILE__READ;
	if (file->f_mode & FMODE_WRITE)
		request |= file->f_flags & O_APPEND ? FILE__APPEND : FILE__WRITE;
	return request ? request : FILE__IOCTL;
}

/* May the current task use a descriptor, and do this to its file? file_has_perm(); no request: the descriptor alone. */
static __noinline int te_file_asked(struct file *file, u32 request, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_FILE };
	struct inode *inode;
	int err;

	/* nobody's memory has a file: the verifier of some kernels takes that for impossible, and leaves the callers' tests out */
	if (!address(file))
		return 0;
	inode = file->f_inode;
	err = te_fd_asked(address(file), &n);
	if (err || !request || !te_is_file(inode))
		return err;
	return te_may_inode(inode, file_dentry(file), request, &n);
}

#define TE_TMPFILE 020000000 /* __O_TMPFILE */

/* A file without a name gets its label when it is opened, as no hook is told of its making. */
static __noinline int te_unnamed(struct file *file)
{
	struct tg_note n = { .op = TG_OP_CREATE, .class = TG_C_FILE };
	struct dentry *dir = file->f_path.dentry->d_parent;
	struct te_who who = te_me();
	struct te_made made = { .class = SECCLASS_FILE };
	u64 sid = who.subject ? who.subject->create_sid : 0;
	int err;

	if (!who.subject)
		return 0;
	made.source = who.sid;
	made.target = te_inode_peek(address(dir->d_inode), address(dir));
	if (made.target == TE_LATER)
		return -EAGAIN;
	if (!sid)
		sid = te_new_label(TE_TRANSITION, &made);
	if (!sid)
		return -EACCES;
	/* the kernel asks for this as it looks the directory up */
	err = te_may(who.sid, made.target, SECCLASS_DIR, DIR__WRITE | DIR__SEARCH, &n);
	if (!err)
		err = te_may(who.sid, sid, SECCLASS_FILE, FILE__CREATE, &n);
	if (err)
		return err;
	n.inode = address(file->f_inode);
	n.dentry = file_dentry(file);
	return !te_gives() || te_give(file->f_inode, sid) ? te_full(&n) : 0;
}

SEC("lsm/file_open")
int BPF_PROG(te_file_open, struct file *file)
{
	u32 request;
	int err;

	if (!te_me().subject)
		return 0;
	if (file->f_flags & TE_TMPFILE) {
		err = te_unnamed(file);
		if (err)
			return err;
	}
	request = te_file_request(file) | FILE__OPEN;
	/* the kernel asks for this as it looks the file up */
	if (opened_to_execute(file))
		request |= FILE__EXECUTE;
	return te_file_asked(file, request,
			     file->f_mode & FMODE_WRITE ? TG_OP_OPEN_WRITE : TG_OP_OPEN_READ);
}

SEC("lsm/file_receive")
int BPF_PROG(te_file_receive, struct file *file)
{
	if (!te_me().subject)
		return 0;
	/* what a ring has in a table of its own would come along, and nobody sees it */
	if (tx_kind_of(file) == TX_RING)
		return -EACCES;
	return te_file_asked(file, te_file_request(file), TG_OP_RECEIVE_FD);
}

SEC("lsm/file_lock")
int BPF_PROG(te_file_lock, struct file *file)
{
	return te_me().subject ? te_file_asked(file, FILE__LOCK, TG_OP_LOCK) : 0;
}

#define F_GETFL 3
#define F_GETLK 5
#define F_SETLKW 7
#define F_GETOWN 9
#define F_GETSIG 11
#define F_GETOWNER_UIDS 17
#define F_OFD_GETLK 36
#define F_OFD_SETLKW 38

#define FIOSETOWN 0x8901
#define SIOCSPGRP 0x8902

/*
 * Whoever is ready first has the kernel send the owner of a descriptor a signal, in whose name cannot be told then. So a governed task
 * makes nobody an owner but its own process, and those that it may send every signal.
 */
static __noinline int te_owner_asked(unsigned long pid)
{
	u32 every = PROCESS__SIGNAL | PROCESS__SIGKILL | PROCESS__SIGSTOP | PROCESS__SIGCHLD;
	struct tg_note n = { .op = TG_OP_SIGNAL, .class = TG_C_TASK };
	struct te_who who = te_me();
	struct task_struct *owner;
	int err;

	if (!who.subject || !pid)
		return 0;
	/* a process group, whoever comes to be in it */
	if ((int)pid < 0)
		return -EACCES;
	owner = bpf_task_from_pid(pid);
	if (!owner)
		return 0;
	n.peer = owner->tgid;
	err = owner->tgid == bpf_get_current_pid_tgid() >> 32 ?
		      0 :
		      te_may(who.sid, te_sid_of(owner), SECCLASS_PROCESS, every, &n);
	bpf_task_release(owner);
	return err;
}

SEC("lsm/file_fcntl")
int BPF_PROG(te_file_fcntl, struct file *file, unsigned int cmd, unsigned long arg)
{
	int err;

	if (!te_me().subject)
		return 0;
	if (cmd == F_SETOWN) {
		err = te_file_asked(file, 0, TG_OP_TTY);
		return err ? err : te_owner_asked(arg);
	}
	/* who it is about stands in memory, which may change meanwhile */
	if (cmd == F_SETOWN_EX)
		return -EACCES;
	if (cmd == F_SETFL && file->f_flags & O_APPEND && !(arg & O_APPEND))
		return te_file_asked(file, FILE__WRITE, TG_OP_OPEN_WRITE);
	if ((cmd >= F_GETLK && cmd <= F_SETLKW) || (cmd >= F_OFD_GETLK && cmd <= F_OFD_SETLKW))
		return te_file_asked(file, FILE__LOCK, TG_OP_LOCK);
	if (cmd == F_GETFL || cmd == F_SETFL || (cmd >= F_GETOWN && cmd <= F_GETSIG) ||
	    cmd == F_GETOWNER_UIDS)
		return te_file_asked(file, 0, TG_OP_TTY);
	return 0;
}

#define FIBMAP 1
#define FIGETBSZ 2
#define FIONREAD 0x541b
#define FIONBIO 0x5421
#define FIONCLEX 0x5450
#define FIOCLEX 0x5451
#define FS_IOC_GETFLAGS 0x80086601
#define FS_IOC_GETVERSION 0x80087601
#define FS_IOC32_GETFLAGS 0x80046601
#define FS_IOC32_SETFLAGS 0x40046602
#define FS_IOC32_GETVERSION 0x80047601

/* What a request to a device or a file is, where that is told by its number. */
static __always_inline u32 te_ioctl_request(u32 cmd)
{
	switch (cmd) {
	case FIONREAD:
	case FIBMAP:
	case FIGETBSZ:
	case FS_IOC_GETFLAGS:
	case FS_IOC_GETVERSION:
	case FS_IOC32_GETFLAGS:
	case FS_IOC32_GETVERSION:
		return FILE__GETATTR;
	case FS_IOC_SETFLAGS:
	case FS_IOC_SETVERSION:
	case FS_IOC32_SETFLAGS:
	case FS_IOC32_SETVERSION:
		return FILE__SETATTR;
	case FIONBIO:
	case FIOASYNC:
		return 0;
	}
	return FILE__IOCTL;
}

/* The policy capability ioctl_skip_cloexec. */
#define TE_CAP_SKIP_CLOEXEC 7
#define KDSKBENT 0x4b47
#define KDSKBSENT 0x4b49

/* ioctl_has_perm(), under a policy with rules on single ioctls. */
static __noinline int te_single_ioctl(struct file *file, u32 cmd)
{
	struct tg_note n = { .op = TG_OP_TTY, .class = TG_C_FILE };
	struct inode *inode = file->f_inode;
	struct te_who who = te_me();
	struct te_query q = { .source = who.sid, .request = FILE__IOCTL };
	int err = te_fd_asked(address(file), &n);

	if (err || !te_is_file(inode))
		return err;
	n.dentry = file_dentry(file);
	n.inode = address(inode);
	q.target = te_inode_sid(inode, n.dentry);
	q.class = te_class_of_inode(address(inode));
	if (q.target == TE_LATER)
		return verdict_of(te_no_decision(&q, &n));
	return verdict_of(te_single_asked(&q, cmd & 0xffff, &n));
}

static __always_inline int te_ioctl_asked(struct file *file, u32 cmd)
{
	struct tg_note n = { .op = TG_OP_CAPABLE, .class = TG_C_SYSTEM };
	u32 request = te_ioctl_request(cmd), p = te_tables(policy_number());
	struct te_who who = te_me();

	if (!who.subject || !p)
		return 0;
	if (cmd == FIOSETOWN || cmd == SIOCSPGRP)
		return -EACCES;
	if (cmd == KDSKBENT || cmd == KDSKBSENT)
		return te_may(who.sid, who.sid, SECCLASS_CAPABILITY, CAPABILITY__SYS_TTY_CONFIG,
			      &n);
	if ((cmd == FIOCLEX || cmd == FIONCLEX) && te_in(TE(p)->capabilities, TE_CAP_SKIP_CLOEXEC))
		return 0;
	if (request == FILE__IOCTL && TE(p)->extended)
		return te_single_ioctl(file, cmd);
	return te_file_asked(file, request, TG_OP_TTY);
}

SEC("lsm/file_ioctl")
int BPF_PROG(te_file_ioctl, struct file *file, unsigned int cmd)
{
	return te_ioctl_asked(file, cmd);
}

SEC("lsm/file_ioctl_compat")
int BPF_PROG(te_file_ioctl_compat, struct file *file, unsigned int cmd)
{
	return te_ioctl_asked(file, cmd);
}

/* Memory without a file, or whose file is the kernel's own: System V shared memory. */
static __always_inline bool te_is_nobodys(u64 file)
{
	return !file || CAST(struct inode, CAST(struct file, file)->f_inode)->i_flags & S_PRIVATE;
}

/* Memory is made that can be written, or was, and be executed. */
static __always_inline bool te_map_is_code(struct file *file, u32 prot, bool shared)
{
	return prot & PROT_EXEC_FLAG &&
	       (te_is_nobodys(address(file)) || (!shared && prot & PROT_WRITE_FLAG));
}

/* What is mapped of an overlay's file is behind it. Asked about is the overlay's, as when it was mapped; who opened that is known no more. */
static __noinline int te_behind_asked(u64 file, u32 request)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_FILE };
	struct te_query q = { .source = te_met().sid, .request = request };

	n.dentry = address(path_opened(file)->dentry);
	n.inode = address(CAST(struct dentry, n.dentry)->d_inode);
	q.target = te_inode_peek(n.inode, n.dentry);
	q.class = te_class_of_inode(n.inode);
	if (q.target == TE_LATER)
		return verdict_of(te_no_decision(&q, &n));
	return te_may(q.source, q.target, q.class, request, &n);
}

static __always_inline int te_mapped_asked(struct file *file, u32 request)
{
	if (address(file) && file_is_behind(address(file)))
		return te_behind_asked(address(file), request);
	return te_file_asked(file, request, TG_OP_MMAP);
}

static __always_inline u32 te_map_request(u32 prot, bool shared)
{
	u32 request = FILE__READ;

	if (shared && prot & PROT_WRITE_FLAG)
		request |= FILE__WRITE;
	if (prot & PROT_EXEC_FLAG)
		request |= FILE__EXECUTE;
	return request;
}

/* file_map_prot_check() */
static __always_inline int te_map_asked(struct te_who *who, struct file *file, u32 prot,
					bool shared, struct tg_note *n)
{
	int err = 0;

	if (te_map_is_code(file, prot, shared))
		err = te_may(who->sid, who->sid, SECCLASS_PROCESS, PROCESS__EXECMEM, n);
	if (err || !file)
		return err;
	return te_mapped_asked(file, te_map_request(prot, shared));
}

/*
 * SELinux asks for `map` and then for the rest. Where a hint allows all of it, that is one question; the hint knows
 * nothing of who has opened the file.
 */
static __noinline bool te_map_is_hinted(struct file *file, u32 prot, bool shared)
{
	if (!address(file) || te_map_is_code(file, prot, shared) ||
	    te_opener(address(file), te_me().sid))
		return false;
	return te_inode_is_hinted(file->f_inode, FILE__MAP | te_map_request(prot, shared));
}

SEC("lsm/mmap_file")
int BPF_PROG(te_mmap_file, struct file *file, unsigned long reqprot, unsigned long prot,
	     unsigned long flags)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP };
	struct te_who who = te_me();
	bool shared = flags & MAP_TYPE_SHARED;
	int err = 0;

	if (!who.subject)
		return 0;
	if (file) {
		if (te_map_is_hinted(file, prot, shared))
			return 0;
		err = te_file_asked(file, FILE__MAP, TG_OP_MMAP);
	}
	return err ? err : te_map_asked(&who, file, prot, shared, &n);
}

SEC("lsm/mmap_addr")
int BPF_PROG(te_mmap_addr, unsigned long addr)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP };
	struct te_who who;

	/* CONFIG_LSM_MMAP_MIN_ADDR */
	if (addr >= 65536)
		return 0;
	who = te_me();
	if (!who.subject)
		return 0;
	return te_may(who.sid, who.sid, SECCLASS_MEMPROTECT, MEMPROTECT__MMAP_ZERO, &n);
}

SEC("lsm/file_mprotect")
int BPF_PROG(te_file_mprotect, struct vm_area_struct *vma, unsigned long reqprot,
	     unsigned long prot)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP };
	struct te_who who = te_me();
	struct vm_area_struct *v;
	struct file *file;
	u64 start, end;
	int err = 0;

	if (!who.subject)
		return 0;
	v = CAST(struct vm_area_struct, address(vma));
	file = vma->vm_file;
	if (prot & PROT_EXEC_FLAG && !(v->vm_flags & VM_EXEC)) {
		struct mm_struct *mm = CAST(struct mm_struct, address(v->vm_mm));

		start = v->vm_start;
		end = v->vm_end;
		if (start < mm->brk && end > mm->start_brk)
			err = te_may(who.sid, who.sid, SECCLASS_PROCESS, PROCESS__EXECHEAP, &n);
		else if (!v->vm_file && start <= mm->start_stack && end >= mm->start_stack)
			err = te_may(who.sid, who.sid, SECCLASS_PROCESS, PROCESS__EXECSTACK, &n);
		else if (file && v->anon_vma)
			err = te_mapped_asked(file, FILE__EXECMOD);
	}
	return err ? err : te_map_asked(&who, file, prot, v->vm_flags & VM_SHARED, &n);
}

#endif
