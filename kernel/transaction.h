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
#define TX_STAY 0xff /* the level it has */
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
	u32 verify; /* the pass that compares mappings */
	u32 pending;  /* entries in tx_pending */
	u32 overflow; /* it was too short */
	u32 published; /* levels have been changed */
	u64 id;
	u64 join;	/* a channel's descriptor that the subject is about to get */
	u64 join_unix;	/* a Unix socket that it is about to connect or send to */
	u64 join_inode;
	u32 join_readers; /* descriptors that read from `join`, seen */
	u32 drag_tgid;
	u64 drag_cause; /* record of the process dragged along last */
	u64 deadline;
} tx;

/*
 * What a pass met and could not look up so deep in the stack: named sockets,
 * shared memory. Looked up between the passes.
 */
#define TX_PENDING 512
u64 tx_pending[TX_PENDING];

static __always_inline void tx_later(u64 key)
{
	u32 n = tx.pending;

	if (n >= TX_PENDING) {
		tx.overflow = 1;
		return;
	}
	tx_pending[BOUND(n, TX_PENDING)] = key;
	tx.pending = n + 1;
}

/* The transaction's own records are written here: a stack is too small for them. */
struct tg_note tx_note;
struct tg_subject tx_fresh; /* the label of a subject that had none */

/* A step for hooks that may sleep, and the same for those that may not. */
#define TX_TWICE(step)                                                        \
	static __noinline bool step##_held(void) { return step##_body(true); } \
	static __noinline bool step##_now(void) { return step##_body(false); }

/* Sleeps a moment: taking a mm's lock lets others run under every preemption model. */
static __always_inline void tx_pause(void)
{
	u64 word;

	bpf_copy_from_user_task(&word, sizeof(word), (void *)policy.hold_page, bpf_get_current_task_btf(), 0);
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
		c->maps = 0;
		c->lowest_writer = 0xff;
		c->admits = 0xff;
	}
	return c;
}

/* Of global functions the verifier looks at each once, and not at every call. */
__noinline int channel_write(u64 key, u8 level)
{
	struct tg_channel *c = channel(key);

	if (c && level < c->lowest_writer) {
		c->lowest_writer = level;
		tx.changed = 1;
	}
	return 0;
}

__noinline u8 channel_read(u64 key, u8 level)
{
	struct tg_channel *c = channel(key);

	return c && c->lowest_writer < level ? c->lowest_writer : level;
}

/* The lowest level that may send to a socket. What has no name takes from anybody. */
__noinline u8 unix_admits(u64 sock)
{
	struct unix_sock *u = CAST(struct unix_sock, sock);
	struct lomac_object o;
	struct dentry *d;

	if (!u->path.dentry)
		return 0;
	d = CAST(struct dentry, u->path.dentry);
	o = object(label_peek(address(d->d_inode), address(d)));
	if (!o.known)
		return policy.top;
	return o.attrs & (TG_LOWWRITE | TG_NEUTRAL) ? 0 : o.level;
}

/* A subject of this level writes to a socket, if it may: then its readers fall. */
__noinline int channel_send(u64 sock, u8 level, bool falls)
{
	struct unix_sock *u = CAST(struct unix_sock, sock);
	struct tg_channel *c = channel(sock);

	if (!c)
		return 0;
	if (u->path.dentry && level < policy.top) {
		if (c->admits == 0xff) {
			tx_later(sock);
			return 0;
		}
		if (level < c->admits) {
			tx.writable += falls;
			return 0;
		}
	}
	if (level < c->lowest_writer) {
		c->lowest_writer = level;
		tx.changed = 1;
	}
	return 0;
}

/* What one descriptor means to the transaction. */
enum tx_kind { TX_OTHER, TX_PIPE, TX_UNIX, TX_MEMORY, TX_FILE };

static __always_inline enum tx_kind tx_kind_of(struct file *f)
{
	struct inode *inode = CAST(struct inode, f->f_inode);
	u16 type = inode->i_mode & S_IFMT;

	if (type == S_IFIFO || inode->i_sb->s_magic == MQUEUE_MAGIC)
		return TX_PIPE;
	if (type == S_IFSOCK) {
		struct socket *sock = CAST(struct socket, f->private_data);
		struct sock *sk = CAST(struct sock, sock->sk);

		return sock->sk && sk->__sk_common.skc_family == AF_UNIX ? TX_UNIX : TX_OTHER;
	}
	if (type == S_IFREG)
		return inode_is_memory(inode) ? TX_MEMORY : TX_FILE;
	if (type == S_IFBLK)
		return TX_FILE;
	if (type == S_IFCHR)
		return device_is_neutral(inode->i_rdev) ? TX_OTHER : TX_FILE;
	return TX_OTHER;
}

/* Mappings of an object that exist anywhere; up to TG_DEPTH, then more. */
static __always_inline u32 mappings_of(struct inode *inode)
{
	struct address_space *as = CAST(struct address_space, inode->i_mapping);
	struct tg_scratch *w = scratch_get();
	u32 i, count = 0;

	if (!w)
		return ~0u;
	w->n = 0;
	if (as->i_mmap.rb_root.rb_node) {
		w->up[0] = address(as->i_mmap.rb_root.rb_node);
		w->n = 1;
	}
	bpf_for(i, 0, TG_DEPTH) {
		struct rb_node *node;

		if (!w->n || w->n > TG_DEPTH - 2)
			break;
		w->n--;
		node = CAST(struct rb_node, w->up[BOUND(w->n, TG_DEPTH)]);
		count = i + 1;
		if (node->rb_left) {
			w->up[BOUND(w->n, TG_DEPTH)] = address(node->rb_left);
			w->n++;
		}
		if (node->rb_right) {
			w->up[BOUND(w->n, TG_DEPTH)] = address(node->rb_right);
			w->n++;
		}
	}
	if (w->n)
		count = ~0u;
	scratch_put(w);
	return count;
}

/* Is memory that the subject can go on writing mapped by somebody who does not fall? */
__noinline int tx_memory(u64 inode)
{
	struct tg_channel *c = channel(inode);

	if (c && mappings_of(CAST(struct inode, inode)) != c->maps)
		tx.mapping++;
	return 0;
}

__noinline int channel_map(u64 key)
{
	struct tg_channel *c = channel(key);

	if (c)
		c->maps++;
	return 0;
}

/* A Unix socket: it reads what is sent to itself, and writes to its peer. */
static __always_inline u8 tx_unix(struct unix_sock *u, u8 level, bool falls)
{
	u64 self = address(u), head = self + bpf_core_field_offset(struct sock, sk_receive_queue);
	u32 i;

	if (u->peer) {
		channel_send(address(u->peer), level, falls);
		return channel_read(self, level);
	}
	/* without a peer: whoever is about to connect reads what its holders will write */
	channel_write(self + 1, level);
	level = channel_read(self, level);
	if (u->sk.__sk_common.skc_state == TCP_LISTEN) {
		struct sk_buff *skb = u->sk.sk_receive_queue.next;

		/* connections that wait to be accepted are the listener's already */
		bpf_for(i, 0, 4096) {
			struct unix_sock *waiting;

			if (!skb || address(skb) == head)
				break;
			skb = CAST(struct sk_buff, skb);
			waiting = CAST(struct unix_sock, skb->sk);
			if (skb->sk) {
				level = channel_read(address(skb->sk), level);
				if (waiting->peer)
					channel_write(address(waiting->peer), level);
			}
			skb = skb->next;
		}
	}
	return level;
}

/* Looks at one descriptor of a task that stands, or will stand, at `level`. */
__noinline u8 tx_file(u64 addr, u8 level, bool falls)
{
	struct file *f = CAST(struct file, addr);
	enum tx_kind kind = tx_kind_of(f);
	u32 mode = f->f_mode;
	u64 key = address(f->f_inode);

	if (kind == TX_PIPE || kind == TX_MEMORY) {
		tx.channels++;
		if (tx.verify) {
			if (kind == TX_MEMORY && falls && mode & FMODE_WRITE)
				tx_later(key);
			return level;
		}
		if (mode & FMODE_WRITE)
			channel_write(key, level);
		if (mode & FMODE_READ) {
			level = channel_read(key, level);
			if (key == tx.join_inode && addr != tx.join)
				tx.join_readers++;
		}
	} else if (kind == TX_UNIX && !tx.verify) {
		struct socket *sock = CAST(struct socket, f->private_data);

		tx.channels++;
		level = tx_unix(CAST(struct unix_sock, sock->sk), level, falls);
	} else if (kind == TX_FILE && falls && mode & FMODE_WRITE) {
		tx.writable++;
	}
	return level;
}

/* Looks at every descriptor of a task; the level it has to fall to. */
__noinline u8 tx_files(u64 table, u8 level, bool falls)
{
	struct files_struct *files = CAST(struct files_struct, table);
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
		u64 key;
		u16 type;

		if (!(vma->vm_flags & VM_SHARED) || !vma->vm_file)
			continue;
		f = CAST(struct file, vma->vm_file);
		inode = CAST(struct inode, f->f_inode);
		key = address(f->f_inode);
		if (inode_is_memory(inode)) {
			if (tx.verify) {
				if (vma->vm_flags & VM_MAYWRITE)
					tx_later(key);
			} else {
				channel_map(key);
			}
			continue;
		}
		type = inode->i_mode & S_IFMT;
		if (type == S_IFCHR && device_is_neutral(inode->i_rdev))
			continue;
		if (vma->vm_flags & VM_MAYWRITE && (type == S_IFREG || type == S_IFBLK || type == S_IFCHR))
			tx.mapping++;
	}
}

/* Marks a task to fall with this transaction. */
static __always_inline void tx_mark(struct task_struct *t, u8 level)
{
	struct tg_subject *s = bpf_task_storage_get(&subjects, t, 0, 0);

	if (!s) {
		tx_fresh.level = policy.top;
		s = bpf_task_storage_get(&subjects, t, &tx_fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
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

/* What the subject is about to get counts as if it had it. */
static __always_inline u8 tx_joins(u8 level)
{
	if (tx.join)
		level = tx_file(tx.join, level, false);
	if (tx.join_unix) {
		struct sock *sk = CAST(struct sock, tx.join_unix);

		channel_send(tx.join_unix, level, false);
		if (sk->sk_type == SOCK_STREAM || sk->sk_type == SOCK_SEQPACKET)
			level = channel_read(tx.join_unix + 1, level);
	}
	return level;
}

/* One pass over every task: who has to fall with whom. */
__noinline int tx_spread(void)
{
	struct task_struct *t, *me = bpf_get_current_task_btf();

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
			channel_write(address(t), tx_level_of(t));
		s = subject_of(t);
		falls = s && s->tx == tx.id;
		level = falls ? s->tx_level : subject_level(s);
		low = level;
		if (t->ptrace)
			low = channel_read(address(t->parent), low);
		channel_write(address(t->mm), level);
		low = channel_read(address(t->mm), low);
		if (files) {
			channel_write(address(files), level);
			low = channel_read(address(files), low);
			low = tx_files(address(files), low, falls);
		}
		if (t->pid == me->pid)
			low = tx_joins(low);
		if (low < level && !(s && s->attrs & TG_NODEMOTE))
			tx_mark(t, low);
	}
	bpf_rcu_read_unlock();
	return 0;
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

enum tx_step { TX_PUBLISH, TX_SETTLE, TX_COUNT, TX_VERIFY, TX_COMMIT, TX_BACK };

/* The record of a process that fell with another's channel. */
static __always_inline u64 tx_dragged(struct task_struct *t, struct tg_subject *s, struct task_struct *me)
{
	if (tx.drag_tgid == t->tgid)
		return tx.drag_cause;
	__builtin_memset(&tx_note, 0, sizeof(tx_note));
	tx_note.kind = TG_E_DEMOTED;
	tx_note.op = TG_OP_PIPE;
	tx_note.class = TG_C_TASK;
	tx_note.reason = TG_R_CHANNEL;
	tx_note.source = ~0u;
	tx_note.other = 1;
	audit_other.task = address(t);
	audit_other.prev = s->cause;
	audit_other.from = s->tx_old;
	tx_note.to = s->tx_level;
	tx_note.object = s->tx_level;
	tx_note.peer = me->tgid;
	tx.drag_tgid = t->tgid;
	tx.drag_cause = audit(&tx_note);
	return tx.drag_cause;
}

/* Does one step for every task that falls. */
__noinline int tx_each(u32 step, u64 cause)
{
	struct task_struct *t, *me = bpf_get_current_task_btf();

	tx.busy = 0;
	tx.verify = step == TX_VERIFY;
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct tg_subject *s = subject_of(t);

		if (!s || s->tx != tx.id)
			continue;
		switch (step) {
		case TX_PUBLISH:
			s->level = s->tx_level;
			break;
		case TX_SETTLE:
			if (s->settled || t->pid == me->pid || t->exit_state)
				break;
			if (t->flags & PF_EXITING || tx_at_rest(t) || tx_waits_for(t, me))
				s->settled = 1;
			else
				tx.busy++;
			break;
		case TX_COUNT:
		case TX_VERIFY:
			if (t->io_uring || (t->mm && t->mm->ioctx_table))
				tx.async++;
			if (t->pid == t->tgid || t->group_leader->exit_state)
				tx_mappings(t);
			if (step == TX_VERIFY && t->files)
				tx_files(address(t->files), s->level, true);
			break;
		case TX_COMMIT:
			s->cause = t->tgid == me->tgid ? cause : tx_dragged(t, s, me);
			break;
		case TX_BACK:
			s->level = s->tx_old;
			break;
		}
	}
	bpf_rcu_read_unlock();
	tx.verify = 0;
	return 0;
}

static __always_inline int tx_fail(u8 reason, struct tg_note *n)
{
	tx_each(TX_BACK, 0);
	n->reason = reason;
	return reason == TG_R_MAPPING || reason == TG_R_ASYNC ? -EACCES : -EAGAIN;
}

/* Has the guard attached. The order is the daemon's in reverse: see guard.rs. */
static __always_inline bool tx_guard_body(bool may_sleep)
{
	u32 i;

	__sync_fetch_and_add(&guard_wanted, 1);
	if (*(volatile u32 *)&guard_armed)
		return true;
	__builtin_memset(&tx_note, 0, sizeof(tx_note));
	tx_note.kind = TG_E_GUARD;
	tx_note.source = ~0u;
	audit(&tx_note);
	if (!may_sleep)
		return false;
	bpf_for(i, 0, 1 << 20) {
		if (*(volatile u32 *)&guard_armed)
			return true;
		if (bpf_ktime_get_ns() > tx.deadline)
			break;
		tx_pause();
	}
	return false;
}
TX_TWICE(tx_guard)

/* Looks up the named sockets that the pass met first; then another pass is due. */
static __always_inline void tx_admit(void)
{
	u32 i;

	bpf_for(i, 0, tx.pending) {
		u64 key = tx_pending[BOUND(i, TX_PENDING)];
		u8 admits = unix_admits(key);
		struct tg_channel *c = channel(key);

		if (c)
			c->admits = admits;
		tx.changed = 1;
	}
}

/* Who falls: passes over all tasks until one changes nothing. */
static __always_inline bool tx_fixpoint(void)
{
	u32 i;

	bpf_for(i, 0, TX_ROUNDS) {
		tx.changed = 0;
		tx.writable = tx.join_readers = tx.pending = tx.overflow = 0;
		tx_spread();
		if (tx.failed)
			return false;
		tx_admit();
		if (!tx.changed)
			return true;
	}
	return false;
}

/* Waits until the other threads that fall are at rest. */
static __always_inline bool tx_settle_body(bool may_sleep)
{
	u32 i;

	bpf_for(i, 0, 1 << 20) {
		tx_each(TX_SETTLE, 0);
		if (!tx.busy)
			return true;
		if (!may_sleep || bpf_ktime_get_ns() > tx.deadline)
			break;
		tx_pause();
	}
	return false;
}
TX_TWICE(tx_settle)

/* Looks for mappings and asynchronous I/O that nothing could revoke. */
static __noinline u8 tx_irrevocable(void)
{
	u32 i;

	tx_each(TX_COUNT, 0);
	tx.pending = tx.overflow = 0;
	tx_each(TX_VERIFY, 0);
	bpf_for(i, 0, tx.pending)
		tx_memory(tx_pending[BOUND(i, TX_PENDING)]);
	return tx.overflow ? TG_R_BUSY : tx.async ? TG_R_ASYNC : tx.mapping ? TG_R_MAPPING : TG_R_RULE;
}

/* The whole of it, under the lock. */
static __always_inline int tx_run(struct task_struct *me, u8 to, struct tg_note *n, bool may_sleep)
{
	struct tg_subject *s;
	bool alone;
	u32 round;
	u8 reason;

	tx.mapping = tx.async = tx.failed = tx.writable = tx.channels = 0;
	tx.born = tx.published = 0;
	if (to != TX_STAY)
		tx_mark(me, to);
	/* one thread, no channel: nobody else can be touched */
	alone = !tx.join && !tx.join_unix && me->mm && me->mm->mm_users.counter == 1 &&
		me->files && me->files->count.counter == 1 && !me->ptrace;
	if (alone)
		tx_files(address(me->files), to, true);
	alone = alone && !tx.channels;
	bpf_for(round, 0, TX_ROUNDS) {
		if (!alone && !tx_fixpoint())
			return tx_fail(TG_R_BUSY, n);
		if (!tx.born)
			break;
		tx.born = 0;
		tx.published = 1;
		tx_each(TX_PUBLISH, 0);
		if (!(may_sleep ? tx_settle_held() : tx_settle_now()))
			return tx_fail(TG_R_BUSY, n);
		reason = tx_irrevocable();
		if (reason)
			return tx_fail(reason, n);
	}
	if (tx.born)
		return tx_fail(TG_R_BUSY, n);
	s = subject_of(me);
	if (!tx.published && !tx.join && !tx.join_unix)
		return 0;
	epoch++;
	if (tx.writable && !(may_sleep ? tx_guard_held() : tx_guard_now()))
		return tx_fail(TG_R_BUSY, n);
	tx.drag_tgid = 0;
	if (s && s->tx == tx.id) {
		tx_note = *n;
		tx_note.kind = TG_E_DEMOTED;
		tx_note.other = 1;
		audit_other.task = address(me);
		audit_other.prev = s->cause;
		audit_other.from = s->tx_old;
		tx_note.to = s->tx_level;
		tx_each(TX_COMMIT, audit(&tx_note));
	} else {
		tx_each(TX_COMMIT, 0);
	}
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
static __always_inline bool tx_lock_body(bool may_sleep)
{
	u64 deadline = bpf_ktime_get_ns() + TX_DEADLINE_NS;
	u32 i;

	bpf_for(i, 0, 1 << 20) {
		if (!__sync_val_compare_and_swap(&tx.lock, 0, 1))
			return true;
		if (!may_sleep || bpf_ktime_get_ns() > deadline)
			break;
		tx_pause();
	}
	return false;
}
TX_TWICE(tx_lock)

static __always_inline int tx_demote(u8 to, u64 join, u64 join_unix, struct tg_note *n, bool may_sleep)
{
	int err;

	if (!(may_sleep ? tx_lock_held() : tx_lock_now())) {
		n->reason = TG_R_BUSY;
		return -EAGAIN;
	}
	tx.id++;
	tx.deadline = bpf_ktime_get_ns() + TX_DEADLINE_NS;
	if (tx.channels_used > (1 << 15)) {
		bpf_for_each_map_elem(&channels, tx_forget, NULL, 0);
		tx.channels_used = 0;
	}
	tx.join = join;
	tx.join_unix = join_unix;
	tx.join_inode = join ? address(CAST(struct file, join)->f_inode) : 0;
	err = tx_run(bpf_get_current_task_btf(), to, n, may_sleep);
	__sync_lock_test_and_set(&tx.lock, 0);
	return err;
}

/* For hooks that may sleep, and for those that may not: they wait for nothing. */
__noinline int demote_held(u8 to, struct tg_note *n)
{
	return n ? tx_demote(to, 0, 0, n, true) : -EAGAIN;
}

__noinline int demote_now(u8 to, struct tg_note *n)
{
	return n ? tx_demote(to, 0, 0, n, false) : -EAGAIN;
}

/* The current subject gets a descriptor of a channel: levels are made to fit first. */
__noinline int join_channel(u64 file, struct tg_note *n)
{
	return n ? tx_demote(TX_STAY, file, 0, n, true) : -EAGAIN;
}

/* It connects to a Unix socket, or sends to it. */
__noinline int join_unix(u64 sock, struct tg_note *n)
{
	return n ? tx_demote(TX_STAY, 0, sock, n, false) : -EAGAIN;
}

#endif
