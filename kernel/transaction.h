/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The demotion transaction: all that must be true before a subject that falls
 * may see the low data that makes it fall.
 *
 * Invariants, which hold between transactions:
 *   - the tasks of one address space, and of one descriptor table, have one level;
 *   - no reader of a channel (pipe, FIFO, socketpair, memfd) stands above any of
 *     its writers, so that pipe reads, splice, tee and vmsplice need no check;
 *   - no subject has a shared writable mapping of an object above it;
 *   - a descriptor through which a subject could write to a higher object exists
 *     only while the guard on file_permission is attached.
 *
 * Levels only fall and sharing arises only by fork or through a hook, so what a
 * fall touches is known when it happens. The demoting operation is held:
 *   1. who falls with it: a fixpoint over channels, address spaces and tables;
 *   2. refuse if one of them maps an object shared and writable, or has
 *      asynchronous I/O that could still write;
 *   3. publish the new levels: from here on every hook decides by them;
 *   4. wait until each of their other threads has left any system call that it
 *      entered under its old level (a write in flight, an open or a fork about
 *      to finish), then look again for who was born meanwhile;
 *   5. if one of them has a descriptor open for writing, have the guard attached;
 *   6. write the cause into the history, let the operation go on.
 * What cannot be completed in time puts the levels back and refuses.
 */
#ifndef TIDEGATE_TRANSACTION_H
#define TIDEGATE_TRANSACTION_H

#define TX_ROUNDS 16
#define TX_DEADLINE_NS 400000000ull
#define TX_FDS 65536

/* One at a time, system-wide. `lock` is held while the rest is written. */
struct tg_tx {
	u32 lock;
	u32 writable; /* descriptors seen that may need the guard */
	u32 mapping;  /* mappings in the way */
	u32 async;    /* rings or AIO contexts in the way */
	u32 busy;     /* threads not at rest */
	u32 changed;
	u32 failed;
	u32 born;     /* tasks marked since the levels were last published */
	u32 channels; /* descriptors of channels seen */
	u32 channels_used; /* entries made in the table of channels */
	u64 id;
	u64 cause;
} tx;

/* Sleeps a moment: taking a mm's lock lets others run under every preemption model. */
static __always_inline void tx_pause(struct task_struct *task)
{
	u64 word;

	bpf_copy_from_user_task(&word, sizeof(word), (void *)policy.hold_page, task, 0);
}

static __always_inline struct tg_channel *channel(u64 key)
{
	struct tg_channel *c = bpf_map_lookup_elem(&channels, &key);

	if (!c) {
		struct tg_channel fresh = {};

		if (bpf_map_update_elem(&channels, &key, &fresh, BPF_ANY)) {
			tx.failed = 1;
			return NULL;
		}
		tx.channels_used++;
		c = bpf_map_lookup_elem(&channels, &key);
		if (!c) {
			tx.failed = 1;
			return NULL;
		}
	}
	if (c->tx != tx.id) {
		c->tx = tx.id;
		c->lowest_writer = 0xff;
	}
	return c;
}

static __always_inline void channel_write(u64 key, u8 level)
{
	struct tg_channel *c = channel(key);

	if (c && level < c->lowest_writer) {
		c->lowest_writer = level;
		tx.changed = 1;
	}
}

static __always_inline u8 channel_read(u64 key, u8 level)
{
	struct tg_channel *c = channel(key);

	return c && c->lowest_writer < level ? c->lowest_writer : level;
}

/* What one descriptor means to the transaction. */
enum tx_kind { TX_OTHER, TX_PIPE, TX_UNIX, TX_MEMORY, TX_FILE };

static __always_inline enum tx_kind tx_kind_of(struct file *f)
{
	struct inode *inode = CAST(struct inode, f->f_inode);
	u16 type = inode->i_mode & S_IFMT;

	if (type == S_IFIFO)
		return TX_PIPE;
	if (type == S_IFSOCK) {
		struct socket *sock = CAST(struct socket, f->private_data);
		struct sock *sk = CAST(struct sock, sock->sk);

		return sock->sk && sk->__sk_common.skc_family == AF_UNIX ? TX_UNIX : TX_OTHER;
	}
	if (type == S_IFREG)
		return inode->i_sb->s_magic == TMPFS_MAGIC && inode->i_nlink == 0 ? TX_MEMORY : TX_FILE;
	if (type == S_IFBLK)
		return TX_FILE;
	if (type == S_IFCHR)
		return device_is_neutral(inode->i_rdev) ? TX_OTHER : TX_FILE;
	return TX_OTHER;
}

/* Looks at one descriptor of a task that stands, or will stand, at `level`. */
static __always_inline u8 tx_file(u64 addr, u8 level, bool falls)
{
	struct file *f = CAST(struct file, addr);
	enum tx_kind kind = tx_kind_of(f);
	u32 mode = f->f_mode;
	u64 key = (u64)f->f_inode;

	if (kind == TX_PIPE || kind == TX_MEMORY) {
		tx.channels++;
		if (mode & FMODE_WRITE)
			channel_write(key, level);
		if (mode & FMODE_READ)
			level = channel_read(key, level);
	} else if (kind == TX_UNIX) {
		tx.channels++;
		struct socket *sock = CAST(struct socket, f->private_data);
		struct unix_sock *u = CAST(struct unix_sock, sock->sk);

		if (u->peer)
			channel_write((u64)u->peer, level);
		level = channel_read((u64)u, level);
	} else if (kind == TX_FILE && falls && (mode & FMODE_WRITE)) {
		tx.writable++;
	}
	return level;
}

/* Looks at every descriptor of a task; the level it has to fall to. */
static __always_inline u8 tx_files(struct files_struct *files, u8 level, bool falls)
{
	struct fdtable *fdt = CAST(struct fdtable, files->fdt);
	u32 max = fdt->max_fds, i, j;
	struct file **fds = fdt->fd;
	unsigned long *open = fdt->open_fds;

	if (max > TX_FDS) {
		tx.failed = 1;
		return level;
	}
	bpf_for(i, 0, max / 64) {
		u64 word = 0;

		bpf_probe_read_kernel(&word, sizeof(word), open + i);
		if (!word)
			continue;
		bpf_for(j, 0, 64) {
			u64 f = 0;

			if (!(word >> j & 1))
				continue;
			bpf_probe_read_kernel(&f, sizeof(f), fds + i * 64 + j);
			if (f)
				level = tx_file(f, level, falls);
		}
	}
	return level;
}

/* Shared writable mappings that a falling task would keep. */
static __always_inline void tx_mappings(struct task_struct *t)
{
	struct vm_area_struct *vma;

	bpf_for_each(task_vma, vma, t, 0) {
		struct inode *inode;
		struct file *f;
		u16 type;

		if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) != (VM_SHARED | VM_MAYWRITE))
			continue;
		f = CAST(struct file, vma->vm_file);
		if (!vma->vm_file)
			continue;
		inode = CAST(struct inode, f->f_inode);
		type = inode->i_mode & S_IFMT;
		if (type == S_IFCHR && device_is_neutral(inode->i_rdev))
			continue;
		if (type == S_IFREG || type == S_IFBLK || type == S_IFCHR)
			tx.mapping++;
	}
}

/* Marks a task to fall with this transaction. */
static __always_inline void tx_mark(struct task_struct *t, u8 level)
{
	struct tg_subject *s = bpf_task_storage_get(&subjects, t, 0, 0);

	if (!s) {
		struct tg_subject fresh = { .level = policy.top };

		s = bpf_task_storage_get(&subjects, t, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!s) {
			tx.failed = 1;
			return;
		}
	}
	if (s->tx != tx.id) {
		s->tx = tx.id;
		s->tx_old = s->level;
		s->tx_level = s->level;
		s->settled = 0;
	}
	if (level < s->tx_level) {
		s->tx_level = level;
		tx.changed = 1;
		tx.born++;
	}
}

/* The level a task will have after the transaction as far as it is known. */
static __always_inline u8 tx_level_of(struct task_struct *t)
{
	struct tg_subject *s = subject_of(t);

	return s && s->tx == tx.id ? s->tx_level : subject_level(s);
}

/* One pass over every task: who has to fall with whom. */
static __always_inline void tx_spread(void)
{
	struct task_struct *t;

	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct files_struct *files = t->files;
		struct tg_subject *s;
		u8 level, low;
		bool falls;

		if (!t->mm || t->flags & PF_KTHREAD)
			continue;
		/* a tracer writes its tracee's memory without a hook */
		if (t->ptraced.next != &t->ptraced)
			channel_write((u64)t, tx_level_of(t));
		s = subject_of(t);
		falls = s && s->tx == tx.id;
		level = falls ? s->tx_level : subject_level(s);
		low = level;
		if (t->ptrace)
			low = channel_read((u64)t->parent, low);
		channel_write((u64)t->mm, level);
		low = channel_read((u64)t->mm, low);
		if (files) {
			channel_write((u64)files, level);
			low = channel_read((u64)files, low);
			low = tx_files(files, low, falls);
		}
		if (low < level && !(s && s->attrs & TG_NODEMOTE))
			tx_mark(t, low);
	}
	bpf_rcu_read_unlock();
}

/*
 * A thread is at rest if it is in user space, or in a call that can only wait
 * or observe: nothing it passed a hook for under its old level is under way.
 * The numbers are x86-64's; a 32-bit call counts as under way.
 */
static __always_inline bool tx_at_rest(struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	s64 nr = regs->orig_ax;

	if (nr < 0)
		return true;
	switch (nr) {
	case 0:	  /* read */
	case 7:	  /* poll */
	case 17:  /* pread64 */
	case 19:  /* readv */
	case 23:  /* select */
	case 24:  /* sched_yield */
	case 34:  /* pause */
	case 35:  /* nanosleep */
	case 42:  /* connect */
	case 43:  /* accept */
	case 45:  /* recvfrom */
	case 47:  /* recvmsg */
	case 61:  /* wait4 */
	case 73:  /* flock */
	case 128: /* rt_sigtimedwait */
	case 130: /* rt_sigsuspend */
	case 202: /* futex */
	case 219: /* restart_syscall */
	case 230: /* clock_nanosleep */
	case 232: /* epoll_wait */
	case 247: /* waitid */
	case 270: /* pselect6 */
	case 271: /* ppoll */
	case 281: /* epoll_pwait */
	case 288: /* accept4 */
	case 299: /* recvmmsg */
	case 441: /* epoll_pwait2 */
	case 449: /* futex_waitv */
		return true;
	}
	return false;
}

/* Is this thread only waiting for a child that vfork gave its memory to? */
static __always_inline bool tx_waits_for(struct task_struct *t, struct task_struct *child)
{
	return child->vfork_done && (u64)child->real_parent == (u64)t;
}

enum tx_step { TX_CHECK, TX_PUBLISH, TX_SETTLE, TX_BACK };

/* Does one step for every task that falls. */
static __always_inline void tx_each(enum tx_step step, struct task_struct *me)
{
	struct task_struct *t;

	tx.busy = 0;
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct tg_subject *s = subject_of(t);

		if (!s || s->tx != tx.id)
			continue;
		switch (step) {
		case TX_CHECK:
			if (t->io_uring)
				tx.async++;
			if (t->mm && t->mm->ioctx_table)
				tx.async++;
			if (t->pid == t->tgid || t->group_leader->exit_state)
				tx_mappings(t);
			break;
		case TX_PUBLISH:
			s->level = s->tx_level;
			s->cause = tx.cause;
			break;
		case TX_SETTLE:
			if (s->settled || t->pid == me->pid || t->exit_state)
				break;
			if (t->flags & PF_EXITING || tx_at_rest(t) || tx_waits_for(t, me))
				s->settled = 1;
			else
				tx.busy++;
			break;
		case TX_BACK:
			s->level = s->tx_old;
			break;
		}
	}
	bpf_rcu_read_unlock();
}

static __always_inline int tx_fail(u8 reason, struct tg_note *n, struct task_struct *me)
{
	tx_each(TX_BACK, me);
	n->reason = reason;
	return reason == TG_R_MAPPING || reason == TG_R_ASYNC ? -EACCES : -EAGAIN;
}

/* Has the guard attached. The order is the daemon's in reverse: see guard.rs. */
static __always_inline bool tx_guard(struct task_struct *me, u64 deadline, bool may_sleep)
{
	struct tg_note ask = { .kind = TG_E_GUARD, .op = TG_OP_OPEN_WRITE };
	u32 i;

	__sync_fetch_and_add(&guard_wanted, 1);
	if (*(volatile u32 *)&guard_armed)
		return true;
	audit(&ask);
	if (!may_sleep)
		return false;
	bpf_for(i, 0, 1 << 20) {
		if (*(volatile u32 *)&guard_armed)
			return true;
		if (bpf_ktime_get_ns() > deadline)
			break;
		tx_pause(me);
	}
	return false;
}

/* Who falls: passes over all tasks until one changes nothing. */
static __always_inline bool tx_fixpoint(void)
{
	u32 i;

	bpf_for(i, 0, TX_ROUNDS) {
		tx.changed = 0;
		tx.writable = 0;
		tx_spread();
		if (tx.failed)
			return false;
		if (!tx.changed)
			return true;
	}
	return false;
}

/* The whole of it, under the lock. */
static __always_inline int tx_run(struct task_struct *me, u8 to, struct tg_note *n, bool may_sleep)
{
	u64 deadline = bpf_ktime_get_ns() + TX_DEADLINE_NS;
	u32 round, i;
	bool alone;

	tx.mapping = tx.async = tx.failed = tx.writable = tx.channels = 0;
	tx.born = 0;
	tx_mark(me, to);
	/* one thread, no channel: nobody else can be touched */
	alone = me->mm && me->mm->mm_users.counter == 1 && me->files &&
		me->files->count.counter == 1 && !me->ptrace;
	if (alone)
		tx_files(me->files, to, true);
	alone = alone && !tx.channels;
	bpf_for(round, 0, TX_ROUNDS) {
		if (!alone && !tx_fixpoint())
			return tx_fail(TG_R_BUSY, n, me);
		if (round && !tx.born)
			break;
		tx.born = 0;
		tx_each(TX_PUBLISH, me);
		bpf_for(i, 0, 1 << 20) {
			tx_each(TX_SETTLE, me);
			if (!tx.busy)
				break;
			if (!may_sleep || bpf_ktime_get_ns() > deadline)
				return tx_fail(TG_R_BUSY, n, me);
			tx_pause(me);
		}
		tx.mapping = tx.async = 0;
		tx_each(TX_CHECK, me);
		if (tx.mapping)
			return tx_fail(TG_R_MAPPING, n, me);
		if (tx.async)
			return tx_fail(TG_R_ASYNC, n, me);
	}
	if (tx.born)
		return tx_fail(TG_R_BUSY, n, me);
	if (tx.writable && !tx_guard(me, deadline, may_sleep))
		return tx_fail(TG_R_BUSY, n, me);
	return 0;
}

struct bpf_map;

static long tx_forget(struct bpf_map *map, u64 *key, struct tg_channel *c, void *ctx)
{
	bpf_map_delete_elem(map, key);
	return 0;
}

/*
 * Demotes the current subject to `to`. 0 when its operation may go on; -EACCES or
 * -EAGAIN, with the reason in the note, when it has to be refused.
 */
static __always_inline int tx_demote(u8 to, struct tg_note *n, bool may_sleep)
{
	struct task_struct *me = bpf_get_current_task_btf();
	u64 deadline = bpf_ktime_get_ns() + TX_DEADLINE_NS;
	u32 i;
	int err;

	bpf_for(i, 0, 1 << 20) {
		if (!__sync_val_compare_and_swap(&tx.lock, 0, 1))
			goto locked;
		if (!may_sleep || bpf_ktime_get_ns() > deadline)
			break;
		tx_pause(me);
	}
	n->reason = TG_R_BUSY;
	return -EAGAIN;
locked:
	tx.id++;
	if (tx.channels_used > (1 << 15)) {
		bpf_for_each_map_elem(&channels, tx_forget, NULL, 0);
		tx.channels_used = 0;
	}
	n->kind = TG_E_DEMOTED;
	n->to = to;
	tx.cause = audit(n);
	err = tx_run(me, to, n, may_sleep);
	__sync_lock_test_and_set(&tx.lock, 0);
	return err;
}

/* For hooks that may sleep, and for those that may not: they wait for nothing. */
__noinline int demote_held(u8 to, struct tg_note *n)
{
	return n ? tx_demote(to, n, true) : -EAGAIN;
}

__noinline int demote_now(u8 to, struct tg_note *n)
{
	return n ? tx_demote(to, n, false) : -EAGAIN;
}

#endif
