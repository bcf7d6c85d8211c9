/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `capability` model: open files, what is done by them, and how they are handed over. */
#ifndef TIDEGATE_CAPS_FILE_H
#define TIDEGATE_CAPS_FILE_H

/* Set by user space once the guard is attached, cleared before it goes. */
u32 caps_guard_armed;

/* Is it without a name, by which somebody could be given it? Such a thing is whoever's has it. */
static __always_inline bool caps_is_nameless(struct inode *inode)
{
	u64 magic = inode->i_sb->s_magic;

	if (inode->i_flags & S_PRIVATE || te_is_anonymous(magic))
		return true;
	if (magic == PIPEFS_MAGIC || magic == SOCKFS_MAGIC || magic == NSFS_MAGIC ||
	    magic == PIDFS_MAGIC || magic == DMA_BUF_MAGIC)
		return true;
	/* memory that is given out by descriptors */
	return inode->i_sb->s_flags & SB_KERNMOUNT &&
	       (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC);
}

/*
 * A message queue has no hook but those for its name: what was given of it could not be taken back. So it is nobody's, like System
 * V's.
 */
static __always_inline bool caps_is_queue(struct inode *inode)
{
	return (inode->i_mode & S_IFMT) == S_IFREG && inode->i_sb->s_magic == MQUEUE_MAGIC;
}

static __always_inline u32 caps_class_of_mode(u32 mode)
{
	return (mode & S_IFMT) == S_IFDIR ? CAPS_DIR : CAPS_FILE;
}

/* What of an open file is a bind operation's to ask for. */
static __always_inline u32 caps_mode_of(struct file *file, u32 class)
{
	u32 wanted = 0;

	if (file->f_mode & FMODE_READ)
		wanted |= CAPS_READ;
	if (class == CAPS_FILE && file->f_mode & FMODE_WRITE)
		wanted |= file->f_flags & O_APPEND ? CAPS_APPEND : CAPS_WRITE;
	/* for neither, which Linux opens as if for both: a device does what it does then */
	return wanted || class == CAPS_DIR ? wanted : CAPS_READ | CAPS_WRITE;
}

/* Has the guard attached; false: it was not in time. */
static __noinline bool caps_guard(void)
{
	struct tg_note n = { .kind = TG_E_GUARD, .class = TG_C_CAPS, .source = ~0u };
	u64 until = bpf_ktime_get_ns() + TX_GUARD_NS;
	u32 i;

	if (__sync_fetch_and_or(&caps_guard_armed, 0))
		return true;
	audit(&n);
	bpf_for(i, 0, TX_PAUSES) {
		if (*(volatile u32 *)&caps_guard_armed)
			return true;
		if (!tx_again(until, true))
			break;
	}
	return false;
}

/* Binds what an open file is to a domain, the current task's or the one that it comes to be in. */
static __noinline int caps_open_asked(struct file *file, u32 domain, u32 wanted)
{
	struct tg_note n = { .op = wanted & CAPS_WRITE ? TG_OP_OPEN_WRITE : TG_OP_OPEN_READ,
			     .class = TG_C_FILE };
	u32 class = caps_class_of_mode(file->f_inode->i_mode);
	struct caps_question q = { .domain = domain, .class = class };
	struct caps_active *a;
	int err;

	n.dentry = file_dentry(file);
	n.inode = address(file->f_inode);
	q.asked.wanted = wanted;
	q.asked.beside = caps_beside(class);
	err = caps_ask_path(n.dentry, &q);
	if (err == -EAGAIN)
		return -EAGAIN;
	if (err || q.asked.given != wanted)
		return verdict_of(caps_refuse(&q, &n));
	a = caps_active_made(address(file), domain, CAPS_OPENED);
	if (!a)
		return -ENOMEM;
	caps_active_fill(a, &q);
	return 0;
}

/*
 * Is the current task to be asked? Not where the kernel acts for it with other credentials, as on what is behind an overlay,
 * which was asked about itself; but where it writes its memory down.
 */
static __always_inline bool caps_asks(void)
{
	struct task_struct *me = bpf_get_current_task_btf();

	return caps_me() &&
	       (address(me->cred) == address(me->real_cred) || me->flags & PF_DUMPCORE);
}

SEC("lsm/file_open")
int BPF_PROG(caps_file_open, struct file *file)
{
	struct caps_task *t = caps_tasks_current();
	u32 class, wanted;

	if (!t || !caps_asks())
		return 0;
	if (caps_is_queue(file->f_inode))
		return caps_never(CAPS_NOBODYS, TG_OP_IPC, TG_C_IPC);
	/* to be executed, which the execution is asked about, and mapping */
	if (opened_to_execute(file) || caps_is_nameless(file->f_inode))
		return 0;
	class = caps_class_of_mode(file->f_inode->i_mode);
	wanted = caps_mode_of(file, class);
	if (file->f_flags & TE_TMPFILE)
		wanted |= CAPS_CREATE;
	return caps_open_asked(file, t->domain, wanted);
}

/* How a file came to be a task's that did not open it. */
enum caps_handed {
	CAPS_HANDED = 1,
	CAPS_HANDED_PART, /* not with all that it is open for: that takes the guard */
};

/* One that handed it over: what it has bounds what there is to be had. False: it has ended, or there are too many. */
static __always_inline bool caps_from(struct caps_active *a, u64 file, struct caps_active *from)
{
	u32 i, k = 0;

	if (caps_ended_with(from, file, false))
		return false;
	a->counted |= from->counted;
	bpf_for(i, 0, CAPS_ANCESTORS + 1) {
		u32 one = i ? from->ancestors[BOUND(i - 1, CAPS_ANCESTORS)] : from->domain;

		if (!one)
			break;
		bpf_for(k, 0, CAPS_ANCESTORS) {
			u32 have = a->ancestors[BOUND(k, CAPS_ANCESTORS)];

			if (have == one)
				break;
			if (!have) {
				a->ancestors[BOUND(k, CAPS_ANCESTORS)] = one;
				break;
			}
		}
		if (k >= CAPS_ANCESTORS)
			return false;
	}
	return true;
}

/* Was it handed over by its domain, or may it have been? */
static __always_inline bool caps_is_sent(struct caps_active *a, u32 domain)
{
	return a->sent || caps_domain_at(domain)->hands;
}

/* What those who have handed a file over have in common of it; those who have it, if none is known to. */
static __noinline bool caps_inherit(struct caps_active *a, u64 file, u32 own, u32 *had)
{
	bool sent = false;
	u32 pass, i;

	bpf_for(pass, 0, 2) {
		struct caps_active *at = caps_active_at(file, 0, 0);

		bpf_for(i, 0, CAPS_DOMAINS * 2) {
			u32 domain, kind;

			if (!at || !at->next)
				break;
			domain = at->next;
			kind = at->next_kind;
			at = caps_active_at(file, domain, kind);
			if (!at || domain == own)
				continue;
			if (!pass) {
				sent |= caps_is_sent(at, domain);
				continue;
			}
			if (sent && !caps_is_sent(at, domain))
				continue;
			if (!caps_from(a, file, at))
				return false;
			*had &= at->rights;
		}
	}
	return true;
}

/* The same, where it is known who hands it over. */
static __noinline bool caps_inherit_from(struct caps_active *a, u64 file, u32 domain, u32 *had)
{
	u32 kind;

	bpf_for(kind, CAPS_OPENED, CAPS_ADDRESSED + 1) {
		struct caps_active *at = caps_active_of(file, domain, kind);

		if (!at)
			continue;
		if (!caps_from(a, file, at))
			return false;
		*had &= at->rights;
	}
	return true;
}

/* What a domain may do by its own layers with what a file is; a file without a name it may have. */
static __noinline int caps_ask_file(u64 file, struct caps_question *q)
{
	struct file *f = CAST(struct file, file);

	return caps_ask_path(address(f->f_path.dentry), q);
}

int caps_hand_socket(u64 file, u32 domain, u32 had, bool keeps); /* net.h */

/* What a domain may do with a file that was handed over, of `had`, what those had who did that. */
__noinline int caps_hand_asked(u64 file, u32 domain, u32 had, bool keeps)
{
	struct file *f = CAST(struct file, file);
	u32 class = caps_class_of_mode(CAST(struct inode, address(f->f_inode))->i_mode),
	    mode = caps_mode_of(f, class);
	struct caps_question q = { .domain = domain, .class = class };
	struct caps_active *a;
	int err;

	q.asked.wanted = mode;
	q.asked.beside = caps_beside(class);
	err = caps_ask_file(file, &q);
	if (err == -EAGAIN && keeps)
		return -EAGAIN;
	a = caps_active_at(file, domain, CAPS_OPENED);
	if (!a)
		return -ENOMEM;
	q.asked.given &= had;
	q.asked.extra &= had;
	caps_active_fill(a, &q);
	if (!q.asked.given && !keeps)
		return -EACCES;
	return q.asked.given == mode ? CAPS_HANDED : CAPS_HANDED_PART;
}

/*
 * A file that the current task has not opened becomes one of a domain's: enum caps_handed, or an errno. `from`: a domain that it is
 * kept from; 0: it was received. What the domain may do nothing with it gets with no rights where it is kept, and else not.
 */
__noinline int caps_hand(u64 file, u32 domain, u32 from)
{
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, address(f->f_inode));
	bool socket = inode->i_sb->s_magic == SOCKFS_MAGIC, keeps = from;
	struct caps_active *a;
	u32 had = ~0u;

	if (f->f_mode & FMODE_PATH || (!socket && caps_is_nameless(inode)))
		return CAPS_HANDED;
	if (caps_is_queue(inode))
		return -EACCES;
	a = caps_active_at(file, domain, CAPS_OPENED);
	if (a) {
		if (socket ? !a->rights : caps_mode_of(f, a->class) & ~a->rights)
			return keeps ? CAPS_HANDED_PART : -EACCES;
		return CAPS_HANDED;
	}
	a = caps_active_made(file, domain, CAPS_OPENED);
	if (!a)
		return -ENOMEM;
	if (!(from ? caps_inherit_from(a, file, from, &had) :
		     caps_inherit(a, file, domain, &had))) {
		a->class = socket ? CAPS_UNIX : caps_class_of_mode(inode->i_mode);
		a->revoked = 1;
		return keeps ? CAPS_HANDED_PART : -EACCES;
	}
	return socket ? caps_hand_socket(file, domain, had, keeps) :
			caps_hand_asked(file, domain, had, keeps);
}

/* Marks what a domain has of a file as handed over by it. */
static __noinline int caps_sent(u64 file, u32 domain)
{
	u32 kind;

	bpf_for(kind, CAPS_OPENED, CAPS_ADDRESSED + 1) {
		struct caps_active *a = caps_active_of(file, domain, kind);

		if (a)
			a->sent = 1;
	}
	return 0;
}

static __noinline int caps_hand_refused(struct file *file)
{
	struct tg_note n = { .op = TG_OP_RECEIVE_FD, .class = TG_C_FILE };
	struct caps_question q = {};
	u32 class = caps_class_of_mode(file->f_inode->i_mode);

	caps_begin(&q, class, caps_mode_of(file, class), 0);
	n.dentry = file_dentry(file);
	n.inode = address(file->f_inode);
	q.why = CAPS_MISSING;
	return verdict_of(caps_refuse(&q, &n));
}

/* A descriptor comes through a socket, or by pidfd_getfd(2). */
SEC("lsm.s/file_receive")
int BPF_PROG(caps_file_receive, struct file *file)
{
	struct caps_task *t = caps_tasks_current();
	int handed;

	if (!t || !t->domain)
		return 0;
	handed = caps_hand(address(file), t->domain, 0);
	if (handed == CAPS_HANDED || (handed == CAPS_HANDED_PART && caps_guard()))
		return 0;
	return caps_hand_refused(file);
}

/*
 * What a task holds becomes a domain's to which it has come from another by what it executes or maps; false: that could not be done
 * for all. What the domain may not use is left to the guard.
 */
static __noinline bool caps_hand_all(u32 domain, u32 from)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct fdtable *fdt =
		CAST(struct fdtable, CAST(struct files_struct, address(me->files))->fdt);
	struct file **fds = fdt->fd;
	u32 i, max = fdt->max_fds;
	bool part = false;

	if (max > TX_FDS)
		return false;
	bpf_for(i, 0, max) {
		u64 at = 0;
		int handed;

		bpf_probe_read_kernel(&at, sizeof(at), fds + i);
		if (!at)
			continue;
		handed = caps_hand(at, domain, from);
		if (handed < 0)
			return false;
		part |= handed != CAPS_HANDED;
	}
	return !part || caps_guard();
}

/* Is what is done by a file a use of it? The execution's own mappings are of one that nobody has bound. */
static __always_inline bool caps_is_used(struct file *file, u32 domain)
{
	return !opened_to_execute(file) || caps_active_of(address(file), domain, CAPS_OPENED);
}

/* A use of an open file. */
static __noinline int caps_use(u64 file, u32 right, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_FILE };
	struct caps_question q = {};
	struct caps_active *a;
	struct caps_domain *d = caps_begin(&q, CAPS_FILE, right, 0);
	struct caps_session *s;

	if (!d)
		return 0;
	a = caps_active_of(file, q.domain, CAPS_OPENED);
	if (a) {
		q.class = a->class;
		if (right & ~a->rights)
			q.why = a->revoked ? CAPS_REVOKED : CAPS_NOT_BOUND;
		else if (caps_is_shut_for(a, q.domain))
			q.why = CAPS_REVOKED;
		else
			q.why = caps_ended_with(a, file, right & a->counted);
	} else {
		/* nobody governed opened it: what was taken from the task's layers is taken */
		s = caps_session_at(d->session);
		if (s->taken && !caps_is_nameless(CAST(
					struct inode, address(CAST(struct file, file)->f_inode)))) {
			caps_ask_file(file, &q);
			if (q.why != CAPS_REVOKED)
				q.why = 0;
		}
	}
	if (!q.why)
		return 0;
	n.dentry = address(CAST(struct file, file)->f_path.dentry);
	n.inode = address(CAST(struct file, file)->f_inode);
	return verdict_of(caps_refuse(&q, &n));
}

SEC("lsm/file_lock")
int BPF_PROG(caps_file_lock, struct file *file)
{
	return caps_me() && !caps_is_nameless(file->f_inode) ?
		       caps_use(address(file), CAPS_LOCK, TG_OP_LOCK) :
		       0;
}

#define TIOCSTI 0x5412
#define TIOCLINUX 0x541c

static __always_inline int caps_ioctl_asked(struct file *file, u32 cmd)
{
	if (!caps_me())
		return 0;
	/* what is typed at a terminal in somebody else's name */
	if (cmd == TIOCSTI || cmd == TIOCLINUX || cmd == FIOSETOWN || cmd == SIOCSPGRP)
		return caps_never(CAPS_NOBODYS, TG_OP_TTY, TG_C_FILE);
	/* of the descriptor, and not of the file */
	if (cmd == FIOCLEX || cmd == FIONCLEX || cmd == FIONBIO || cmd == FIOASYNC ||
	    cmd == FIONREAD)
		return 0;
	if (caps_is_nameless(file->f_inode))
		return 0;
	return caps_use(address(file), CAPS_IOCTL, TG_OP_TTY);
}

SEC("lsm/file_ioctl")
int BPF_PROG(caps_file_ioctl, struct file *file, unsigned int cmd)
{
	return caps_ioctl_asked(file, cmd);
}

SEC("lsm/file_ioctl_compat")
int BPF_PROG(caps_file_ioctl_compat, struct file *file, unsigned int cmd)
{
	return caps_ioctl_asked(file, cmd);
}

/* The kernel would send the owner of a descriptor a signal in whoever's name: only one's own process. Appending may not end. */
SEC("lsm/file_fcntl")
int BPF_PROG(caps_file_fcntl, struct file *file, unsigned int cmd, unsigned long arg)
{
	if (!caps_me())
		return 0;
	if (cmd == F_SETOWN_EX ||
	    (cmd == F_SETOWN && arg && (u32)arg != bpf_get_current_pid_tgid() >> 32))
		return caps_never(CAPS_OTHERS, TG_OP_SIGNAL, TG_C_TASK);
	if (cmd == F_SETFL && file->f_flags & O_APPEND && !(arg & O_APPEND) &&
	    !caps_is_nameless(file->f_inode))
		return caps_use(address(file), CAPS_WRITE, TG_OP_OPEN_WRITE);
	return 0;
}

/* The calls that write at the end by a descriptor for appending, as x86-64 numbers them: write, writev, pwrite64, pwritev. */
#define CAPS_APPENDS(call) ((call) == 1 || (call) == 20 || (call) == 18 || (call) == 296)

/* Others may not: pwritev2(2) has RWF_NOAPPEND, and fallocate(2) clears what is there. */
static __always_inline u32 caps_write_by(struct file *file)
{
	struct pt_regs *regs;

	if (!(file->f_flags & O_APPEND))
		return CAPS_WRITE;
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return CAPS_APPENDS(regs->orig_ax) ? CAPS_APPEND : CAPS_APPEND | CAPS_WRITE;
}

/* The guard: reads and writes through descriptors. Attached only where something is checked at each use, or was taken back. */
SEC("lsm/file_permission")
int BPF_PROG(caps_guard_file_permission, struct file *file, int mask)
{
	u32 right = 0;

	if (!caps_me() || caps_is_nameless(file->f_inode))
		return 0;
	if (mask & MAY_READ)
		right |= CAPS_READ;
	if (mask & (MAY_WRITE | MAY_APPEND))
		right |= caps_write_by(file);
	return right ? caps_use(address(file), right,
				mask & MAY_READ ? TG_OP_READ_REVOKED : TG_OP_WRITE_REVOKED) :
		       0;
}

#endif
