/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The demotion transaction: all that must be true before a subject that falls
 * may see the low data that makes it fall.
 *
 * Invariants, which hold between transactions:
 *   - the tasks of one address space, of one descriptor table, of one working
 *     directory, root and umask (CLONE_FS), of one priority for disks (CLONE_IO) and
 *     of one list of semaphores to be undone (CLONE_SYSVSEM) have one level;
 *   - no reader of a channel (pipe, FIFO, socketpair, memfd) stands above any of
 *     its writers, so that pipe reads, splice, tee and vmsplice need no check;
 *   - no subject has a shared writable mapping of an object above it;
 *   - a descriptor through which a subject could write to a higher object exists
 *     only while the guard on file_permission is attached, and in the tables of tasks
 *     that are noted for it (hooks/held.h).
 *
 * Levels only fall and sharing arises only by fork or through a hook, so what a
 * fall touches is known when it happens. The demoting operation is held:
 *   1. who falls with it: a fixpoint over channels, address spaces, tables and
 *      what else clone(2) shares;
 *   2. refuse if one of them maps an object shared and writable, or has
 *      asynchronous I/O that could still write;
 *   3. if one of them has a descriptor open for writing, have the guard attached: a
 *      write that stalls may not begin when only the level is known. Each of them is
 *      noted as one that may hold what is revoked (hooks/held.h);
 *   4. publish the new levels: from here on every hook decides by them what is
 *      changed; who would observe waits for the end, as the levels may be put back.
 *      Wait until each of their other threads has left any system call that it entered
 *      under its old level (a write in flight, an open or a fork about to finish), then
 *      look again for who was born meanwhile, and for descriptors: one that needs a
 *      guard that was not there puts the levels back, and 3 comes again. So does a
 *      thread that ran while its descriptors were looked at: it may have moved one
 *      from before the look to behind it;
 *   5. write the cause into the history, let the operation go on.
 * What cannot be completed in time puts the levels back and refuses. So does whoever takes the turn from one that has
 * had it long enough and waits (turn.h); that one tries again.
 */
#ifndef TIDEGATE_TRANSACTION_H
#define TIDEGATE_TRANSACTION_H

#define TX_ROUNDS 16
#define TX_STAY 0xff /* the level it has */

/* Marks a task to fall with this transaction. */
static __always_inline void tx_mark(struct task_struct *t, u8 level)
{
	struct tg_subject *s = subject_made(t);

	if (!s) {
		tx.failed = 1;
		return;
	}
	if (s->tx != tx.id) {
		s->tx = tx.id;
		s->tx_old = s->level;
		s->tx_level = s->level;
		s->settled = 0;
	}
	if (level < s->tx_level) {
		s->tx_level = level;
		s->settled = 0;
		tx.changed = 1;
		tx.born++;
		if (t->tgid != bpf_get_current_task_btf()->tgid)
			tx.others = 1;
	}
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

/* Whatever both change for each other: who shares it has one level. */
static __always_inline u8 tx_shares(u64 what, u8 level, u8 low)
{
	channel_write(what, level);
	return channel_read(what, low);
}

/* What clone(2) shares with another process, apart from memory and descriptors (CLONE_FS, CLONE_IO, CLONE_SYSVSEM); 0: not. */
static __always_inline u64 tx_shared_fs(struct task_struct *t)
{
	struct fs_struct *fs = CAST(struct fs_struct, address(t->fs));

	return t->fs && fs->users > 1 ? address(fs) : 0;
}

static __always_inline u64 tx_shared_io(struct task_struct *t)
{
	struct io_context *io = CAST(struct io_context, address(t->io_context));

	return t->io_context && io->active_ref.counter > 1 ? address(io) : 0;
}

static __always_inline u64 tx_shared_undo(struct task_struct *t)
{
	u64 undo = address(t->sysvsem.undo_list);

	return undo && CAST(struct sem_undo_list, undo)->refcnt.refs.counter > 1 ? undo : 0;
}

/*
 * The level a task has to fall to by what it shares, and by what it has open. A trusted one treats as data what it hears; but
 * whoever writes its memory, or all that it does by a path, does not speak to it.
 */
__noinline u8 tx_holds(u64 task, u8 level, bool falls)
{
	struct task_struct *t = CAST(struct task_struct, task);
	u32 trusted = tx.trusted;
	u64 shared;
	u8 low = level;

	/* a tracer reads and writes its tracee's memory without a hook; the tracee's data a trusted one may see */
	if (t->ptraced.next != &t->ptraced) {
		channel_write(task, level);
		low = channel_read(task + 1, low);
	}
	tx.trusted = 0;
	if (t->ptrace) {
		shared = address(t->parent);
		channel_write(shared + 1, level);
		low = channel_read(shared, low);
	}
	low = tx_shares(address(t->mm), level, low);
	/* what one opens by a relative name, and who may open what it makes, the other chooses */
	shared = tx_shared_fs(t);
	if (shared)
		low = tx_shares(shared, level, low);
	/* how soon a disk answers */
	shared = tx_shared_io(t);
	if (shared)
		low = tx_shares(shared, level, low);
	/* what is to be undone at one's end waits for the other's */
	shared = tx_shared_undo(t);
	if (shared)
		low = tx_shares(shared, level, low);
	shared = address(t->files);
	if (shared)
		low = tx_shares(shared, level, low);
	tx.trusted = trusted;
	return shared ? tx_table(shared, low, falls) : low;
}

/*
 * Has user space given it a level below the top (at the start), and no transaction since then made what it shares fit?
 * Until then its channels are looked at as if it fell.
 */
static __always_inline bool tx_unsettled(struct tg_subject *s)
{
	if (!s->labelled_tx)
		s->labelled_tx = tx.id;
	if (tx.good >= s->labelled_tx)
		s->labelled = 0;
	return s->labelled;
}

/* One pass over every task: who has to fall with whom. */
__noinline int tx_spread(void)
{
	struct task_struct *t, *me = bpf_get_current_task_btf();

	tx.level = subject_level(subject_current());
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct task_struct *fields = UNTRUSTED(t);
		struct tg_subject *s;
		struct tg_label label;
		u8 level, low;
		u32 waits;
		bool falls;

		if (!fields->mm || fields->flags & PF_KTHREAD)
			continue;
		label = subject_label(t);
		s = subject_stored(t);
		falls = s && s->tx == tx.id;
		tx.trusted = label.attrs & TG_NODEMOTE;
		level = falls ? s->tx_level : label.level;
		tx.was = falls ? s->tx_old : level;
		tx.makes = falls || (level < policy.top && s && s->labelled && tx_unsettled(s)) ||
			   (tx.itself && t->tgid == me->tgid);
		low = tx_holds(address(t), level, falls);
		if (fields->io_uring && fields->io_uring->xa.xa_head) {
			tx.rings += !falls;
			tx.above += tx.was > tx.level;
		}
		if (t->pid == me->pid) {
			tx.makes = 1;
			low = tx_joins(low);
		} else if (s && s->joins)
			low = tx_file(s->joins, low, falls);
		waits = fifo_waits(t->pid);
		if (waits) {
			tx.fifo_seen |= 1 << (waits - 1);
			low = channel_read(tx.join_key, low);
			/* once woken it may have left the pipe's count */
			tx.join_readers += t->__state & TASK_INTERRUPTIBLE;
		}
		if (low < level)
			tx_mark(t, low);
	}
	tx.trusted = 0;
	bpf_rcu_read_unlock();
	return 0;
}

/* Has it a ring that is not torn down, or an AIO context? */
__noinline bool tx_asynchronous(u64 task)
{
	struct task_struct *t = CAST(struct task_struct, task);
	struct kioctx_table *contexts;
	u32 i;

	if (t->io_uring && t->io_uring->xa.xa_head)
		return true;
	contexts = t->mm ? t->mm->ioctx_table : NULL;
	if (!contexts)
		return false;
	contexts = CAST(struct kioctx_table, contexts);
	bpf_for(i, 0, 1 << 16) {
		u64 context = 1;

		if (i >= contexts->nr)
			return false;
		bpf_probe_read_kernel(&context, sizeof(context), &contexts->table[i]);
		if (context)
			return true;
	}
	return true;
}

/* The record of a process that fell with another's channel. */
static __always_inline u64 tx_dragged(struct task_struct *t, struct tg_subject *s,
				      struct task_struct *me)
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

/* Is it to be taken for one that holds what is revoked? After its level: who looks reads this before that. */
static __always_inline void tx_note_held(struct tg_subject *s, bool committed)
{
	if (tx.writable || tx.guards)
		*(volatile u32 *)&s->clear = MAY_HOLD | (u32)tx.id;
	else if (committed && s->tx_old >= policy.top)
		*(volatile u32 *)&s->clear = tx.began;
}

/* Does one step for every task that falls. */
__noinline int tx_each(u32 step, u64 cause)
{
	struct task_struct *t, *me = bpf_get_current_task_btf();

	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct tg_subject *s = subject_stored(t);

		if (!s || s->tx != tx.id)
			continue;
		if (step == TX_PUBLISH) {
			subject_set_level(address(t), s, s->tx_level, s->tx_old + 1);
			tx_note_held(s, false);
		} else if (step == TX_BACK) {
			subject_set_level(address(t), s, s->tx_old, 0);
			s->settled = 0;
		} else {
			subject_set_level(address(t), s, s->tx_level, 0);
			tx_note_held(s, true);
			/* who was at rest receives nothing that it was asked about before */
			if (!s->waits && !(tx.receives && t->pid == me->pid))
				__sync_val_compare_and_swap(&s->received, MAY_HOLD, 0);
			s->cause = t->tgid == me->tgid ? cause : tx_dragged(t, s, me);
		}
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* Counts the threads that fall and are not at rest yet, or are about to be traced. */
__noinline int tx_wait(void)
{
	struct task_struct *t, *me = bpf_get_current_task_btf();

	tx.busy = 0;
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct tg_subject *s = subject_stored(t);

		if (!s || s->tx != tx.id || s->settled || t->exit_state)
			continue;
		if (tx_is_attached(t)) {
			tx.busy++;
			continue;
		}
		if (t->pid == me->pid)
			continue;
		/* a ring's worker counts where rings are looked for */
		if (t->flags & (PF_EXITING | PF_IO_WORKER) || s->waits || tx_at_rest(t) ||
		    tx_waits_for(t, me) || fifo_waits(t->pid))
			s->settled = 1;
		else
			tx.busy++;
	}
	bpf_rcu_read_unlock();
	return 0;
}

/*
 * Before a look at descriptors, and after it: has one of the other threads that fall run meanwhile, or ended? Who waits
 * for the turn does nothing else.
 */
__noinline int tx_still(bool begins)
{
	struct task_struct *t, *me = bpf_get_current_task_btf();

	if (begins)
		tx.moved = tx.still = 0;
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct tg_subject *s = subject_stored(t);
		u64 off;

		if (!s || s->tx != tx.id || t->pid == me->pid || !address(UNTRUSTED(t)->files))
			continue;
		off = s->waits ? 1ull << 63 | s->waited : task_off(t);
		if (begins) {
			s->tx_off = off;
			tx.still++;
		} else {
			tx.moved |= !off || off != s->tx_off;
			tx.still--;
		}
	}
	bpf_rcu_read_unlock();
	if (!begins && tx.still)
		tx.moved = 1;
	return 0;
}

/* Is somebody else's call reading the memory of who falls (process_vm_readv, /proc/PID/mem)? */
__noinline int tx_readers(u64 mm)
{
	struct tg_channel *c = channel(mm);

	if (!c)
		return 0;
	if (tx.stage == TX_COUNT) {
		if (c->maps_pass != tx.pass)
			c->maps = 0;
		c->maps_pass = tx.pass;
		c->maps++;
	} else if (tx.stage == TX_VERIFY &&
		   CAST(struct mm_struct, mm)->mm_users.counter > c->maps) {
		tx.overflow = 1;
	}
	return 0;
}

/* Looks at the mappings and the asynchronous I/O of who falls, and but to count at the descriptors. */
__noinline int tx_look(u32 stage)
{
	struct task_struct *t;

	tx.stage = stage;
	tx.pass++;
	tx.makes = 1;
	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct tg_subject *s = subject_stored(t);
		u64 mm, files;

		if (!s || s->tx != tx.id)
			continue;
		tx.async += tx_asynchronous(address(t));
		tx.was = s->tx_old;
		tx.payer = payer_of(address(t));
		mm = address(UNTRUSTED(t)->mm);
		files = address(UNTRUSTED(t)->files);
		if (mm)
			tx_readers(mm);
		if (mm && channel_first(mm))
			tx_mappings(t, s->level);
		if (tx.stage != TX_COUNT && files)
			tx_table(files, s->level, true);
	}
	bpf_rcu_read_unlock();
	tx.payer = tx.own;
	tx.stage = TX_SPREAD;
	return 0;
}

static __always_inline int tx_fail(u8 reason, struct tg_note *n)
{
	tx_each(TX_BACK, 0);
	n->reason = reason == TG_R_BUSY && tx.crowded ? TG_R_TABLE_FULL : reason;
	return reason == TG_R_MAPPING || reason == TG_R_ASYNC ? -EACCES : -EAGAIN;
}

static __always_inline bool tx_armed(void)
{
	return *(volatile u16 *)&tx.guard_armed;
}

/* Has the guard attached. The order is the daemon's in reverse: see guard.rs. As all that waits: 0, or what tx_rest says. */
static __always_inline int tx_guard(bool may_sleep, u32 mine)
{
	int err;
	u32 i;

	__builtin_memset(&tx_note, 0, sizeof(tx_note));
	tx_note.kind = TG_E_GUARD;
	tx_note.source = ~0u;
	audit(&tx_note);
	if (!may_sleep)
		return -EAGAIN;
	tx.deadline = bpf_ktime_get_ns() + TX_GUARD_NS;
	bpf_for(i, 0, TX_PAUSES) {
		if (tx_armed()) {
			tx.deadline = bpf_ktime_get_ns() + TX_SETTLE_NS;
			return 0;
		}
		err = tx_rest(tx.deadline, true, mine);
		if (err)
			return err;
	}
	return -EAGAIN;
}

/* Looks up the named sockets that the pass met first; then another pass is due. */
static __always_inline void tx_admit(void)
{
	u32 i;

	tx.makes = 1;
	bpf_for(i, 0, tx.pending) {
		u64 key = tx_pending[BOUND(i, TX_PENDING)];
		u8 admits = unix_admits(key);
		struct tg_channel *c = channel(key);

		/* whether its reader falls is not known */
		if (admits == UNIX_LATER)
			tx.failed = 1;
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
		tx.pass++;
		tx.writable = tx.join_readers = tx.fifo_seen = tx.pending = tx.overflow = 0;
		tx.rings = tx.above = tx.relays = 0;
		/* counted before they are looked for: who leaves meanwhile stands for nobody else */
		tx.pipe_readers = tx.piped ? pipe_readers() : 0;
		tx_spread();
		tx_admit();
		if (tx.failed)
			return false;
		if (!tx.changed)
			return true;
	}
	return false;
}

/* Waits until the other threads that fall are at rest. */
static __always_inline int tx_settle(bool may_sleep, u32 mine)
{
	int err;
	u32 i;

	bpf_for(i, 0, TX_PAUSES) {
		tx_wait();
		if (!tx.busy)
			return 0;
		err = tx_rest(tx.deadline, may_sleep, mine);
		if (err)
			return err;
	}
	return -EAGAIN;
}

/*
 * Looks for mappings and asynchronous I/O that nothing could revoke. A process that
 * exits, or a call about to return, hides for a moment what it holds, and whose lock
 * somebody has (ps and the like) cannot be looked at: such a moment is waited for.
 * Descriptors are looked at once more while nobody moves them: for a moment such a moment is waited for, too, as without one
 * the guard is needed.
 */
static __always_inline int tx_irrevocable(bool may_sleep, u32 mine, bool alone)
{
	u64 until = bpf_ktime_get_ns() + (may_sleep ? TX_LOOK_NS : TX_SPIN_NS);
	int err;
	u32 i, k;

	bpf_for(i, 0, TX_PAUSES) {
		tx.overflow = tx.async = tx.mapping = 0;
		tx_look(TX_COUNT);
		tx.pending = tx.channels = tx.memory = tx.floors = tx.floors_others = 0;
		if (!alone)
			tx_still(true);
		tx_look(TX_VERIFY);
		if (!alone)
			tx_still(false);
		bpf_for(k, 0, tx.pending)
			tx_memory(tx_pending[BOUND(k, TX_PENDING)]);
		if (!tx.overflow &&
		    (!tx.moved || tx.writable || tx.guards || tx.guarded ||
		     bpf_ktime_get_ns() + (may_sleep ? TX_LOOK_NS - TX_SPIN_NS : 0) > until))
			return 0;
		err = tx_rest(until, may_sleep, mine);
		if (err)
			return err;
	}
	return -EAGAIN;
}

/* Why a fall cannot be, after that look; TG_R_RULE: it can. */
static __always_inline u8 tx_why_not(void)
{
	return tx.overflow || tx.failed ? TG_R_BUSY :
	       tx.async                 ? TG_R_ASYNC :
	       tx.mapping               ? TG_R_MAPPING :
					  TG_R_RULE;
}

/*
 * Is there room for the floors that a fall from one level to another needs: in the table, of which the higher level has
 * more, and for the current user's own in its share?
 */
static __always_inline bool tx_floors_fit(u8 from, u8 to)
{
	u32 own = *(volatile u32 *)share_of(TG_T_FLOORS, to, tx.own);

	return share_has_room(TG_T_FLOORS, from, tx.own, tx.floors + tx.floors_others,
			      BUDGET_LAST | BUDGET_OTHER) &&
	       budget_admits(to, policy.top, table_room(TG_T_FLOORS), 0, own, tx.floors,
			     BUDGET_LAST);
}

/* Is there no table that shows who has this socket, nor a message that carries it, whose receiver file_receive asks? */
static __always_inline bool tx_unix_hidden(u64 sock)
{
	struct tg_channel *c = channel(sock);

	return !address(CAST(struct unix_sock, sock)->vertex) && (!c || !c->seen);
}

/*
 * Is there an end of what the subject is about to get that no table shows: in a ring alone, or in a call that is under
 * way? Who reads what the subject comes to write, or who writes what it will read, is not known then. What had been
 * written before has its floor. For a FIFO fifo.h looks.
 */
__noinline bool tx_hidden(void)
{
	u8 level = subject_level(subject_current());
	struct unix_sock *u;
	struct file *f;

	tx.makes = 0;
	if (tx.join_unix) {
		u = CAST(struct unix_sock, tx.join_unix);
		/* to a datagram nobody answers */
		return address(u->sk.sk_socket) &&
		       (level < policy.top || u->sk.sk_type != SOCK_DGRAM) &&
		       tx_unix_hidden(tx.join_unix);
	}
	if (!tx.join || tx.fifo || level >= policy.top)
		return false;
	f = CAST(struct file, tx.join);
	if (tx.piped) {
		u32 own = f->f_mode & FMODE_READ && f->f_mode & FMODE_OPENED;

		/* a message that carries an end is not told from a ring, where there are any */
		return tx.above && f->f_mode & FMODE_WRITE &&
		       tx.pipe_readers > tx.join_readers + own;
	}
	/* each opening has a reference to the name, and so for a moment have others */
	if (tx_kind_of(f) == TX_MEMORY)
		return tx.above && CAST(struct dentry, address(f->f_path.dentry))->d_lockref.count >
					   tx.join_readers + 1;
	if (tx_kind_of(f) != TX_UNIX)
		return false;
	u = CAST(struct unix_sock, address(CAST(struct unix_sock, tx.join_key)->peer));
	return address(u) && u->sk.sk_shutdown != SHUTDOWN_BOTH && tx_unix_hidden(address(u));
}

/* Has it one thread, and does nobody else have its memory, its table or what else clone(2) shares, nor trace it? */
static __always_inline bool tx_alone(struct task_struct *me)
{
	struct task_struct *t = UNTRUSTED(me);

	return t->mm && t->mm->mm_users.counter == 1 && t->mm->mm_count.counter == 1 && t->files &&
	       t->files->count.counter == 1 && t->fs && !tx_shared_fs(t) && !tx_shared_io(t) &&
	       !tx_shared_undo(t) && !t->ptrace && t->ptraced.next == &t->ptraced;
}

/* The whole of it, by who has the turn and works. */
static __always_inline int tx_run(struct task_struct *me, u8 to, struct tg_note *n, bool may_sleep,
				  u32 mine)
{
	struct tg_subject *s;
	bool alone;
	u32 round;
	u8 reason;
	int err;

	/* it may have fallen as far while it waited */
	s = subject_of(me);
	if (to != TX_STAY && s != &subject_lost && subject_level(s) <= to)
		return 0;
	tx.mapping = tx.async = tx.failed = tx.writable = tx.channels = 0;
	tx.born = tx.published = tx.guarded = tx.others = tx.memory = tx.rings = tx.relays = 0;
	tx.guards = tx.moved = 0;
	tx.receives = n->op == TG_OP_RECEIVE_FD;
	if (to != TX_STAY)
		tx_mark(me, to);
	/* one thread, no channel: nobody else can be touched */
	alone = !(s && s->labelled) && !tx.join && !tx.join_unix && tx_alone(me);
	tx.pass++;
	tx.makes = 1;
	if (alone)
		tx_files(address(UNTRUSTED(me)->files), to, true);
	alone = alone && !tx.channels;
	bpf_for(round, 0, TX_ROUNDS) {
		/* until the levels were published others could come to trace it, or to read its memory */
		alone = alone && tx_alone(me);
		if (!alone && !tx_fixpoint())
			return tx_fail(TG_R_BUSY, n);
		if ((tx.others && tx.reopen) || tx.relays)
			return tx_fail(TG_R_CHANNEL, n);
		if ((tx.writable || tx.guards) && !(tx.published ? tx.guarded : tx_armed())) {
			if (tx.published)
				tx_each(TX_BACK, 0);
			err = tx_guard(may_sleep, mine);
			if (err == TX_LOST)
				return TX_LOST;
			if (err)
				return tx_fail(TG_R_BUSY, n);
			/* who falls may be others by now */
			alone = false;
			tx.published = 0;
			tx.born = 1;
			continue;
		}
		if (!tx.born) {
			if (!tx_hidden())
				break;
			err = tx_rest(tx.deadline, may_sleep, mine);
			if (err == TX_LOST)
				return TX_LOST;
			if (err)
				break;
			continue;
		}
		tx.born = 0;
		if (!tx.published)
			tx.guarded = tx_armed();
		tx.published = 1;
		tx_each(TX_PUBLISH, 0);
		err = tx_settle(may_sleep, mine);
		if (err == TX_LOST)
			return TX_LOST;
		if (err) {
			tx.failing = may_sleep;
			return tx_fail(TG_R_BUSY, n);
		}
		tx.changed = 0;
		err = tx_irrevocable(may_sleep, mine, alone);
		if (err == TX_LOST)
			return TX_LOST;
		reason = tx_why_not();
		if (reason)
			return tx_fail(reason, n);
		if (tx.writable || tx.moved)
			tx.guards = 1;
		if (tx.changed)
			alone = false;
	}
	if (tx.born || tx_hidden())
		return tx_fail(TG_R_BUSY, n);
	/* a ring may read memory by a descriptor that no table shows */
	if (tx.published && tx.memory && tx.rings)
		return tx_fail(TG_R_ASYNC, n);
	s = subject_of(me);
	if (tx.published && !tx_floors_fit(s ? s->tx_old : policy.top, subject_level(s)))
		return tx_fail(TG_R_TABLE_FULL, n);
	if (!alone)
		tx.good = tx.id;
	if (!tx.published && !tx.join && !tx.join_unix)
		return 0;
	if (tx.published || tx.join)
		epoch++;
	if (tx.published)
		tx_look(TX_FLOORS);
	if (tx.join && subject_level(s) < policy.top) {
		tx.stage = TX_FLOORS;
		tx_file(tx.join, subject_level(s), true);
		tx.stage = TX_SPREAD;
	}
	/* what has no floor must not be written by who has fallen */
	if (tx.failed)
		return tx_fail(TG_R_TABLE_FULL, n);
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
 * -EAGAIN, with the reason in the note, when it has to be refused; TX_LOST: nothing has come of it (turn.h).
 */
static __always_inline int tx_demote(u8 to, u64 join, u64 join_unix, u64 join_self,
				     struct tg_fifo *fifo, bool reopen, struct tg_note *n,
				     bool may_sleep)
{
	u32 mine = may_sleep ? tx_lock_held() : tx_lock_now();
	u32 failing, i;
	int err;

	if (!mine) {
		n->reason = TG_R_BUSY;
		return -EAGAIN;
	}
	if (!tx_enter(mine))
		return TX_LOST;
	tx_close();
	tx.open = 1;
	tx.failing = tx.crowded = tx.made = 0;
	tx.looked = 0;
	tx.began = held_now();
	tx.stage = TX_SPREAD;
	tx.own = tx.payer = payer_current();
	__builtin_memset(tx_filter, 0, sizeof(tx_filter));
	tx.id++;
	tx.deadline = bpf_ktime_get_ns() + (may_sleep ? TX_SETTLE_NS : TX_SPIN_NS);
	if (tx.channels_used > TX_CHANNELS) {
		bpf_for_each_map_elem(&channels, tx_forget, NULL, 0);
		tx.channels_used = 0;
	}
	tx.join = join;
	tx.join_unix = join_unix;
	tx.join_self = join_self;
	tx.reopen = reopen;
	tx.itself = to == TX_STAY && !join && !join_unix;
	tx.join_key = join ? channel_key(CAST(struct file, join)) : 0;
	tx.join_peer = 0;
	if (tx.join_key && tx_kind_of(CAST(struct file, join)) == TX_UNIX)
		tx.join_peer = address(CAST(struct unix_sock, tx.join_key)->peer);
	tx.piped = join && is_pipe(CAST(struct file, join));
	tx.fifo = !!fifo;
	if (fifo && CAST(struct file, join)->f_mode & FMODE_WRITE) {
		u64 until = bpf_ktime_get_ns() + TX_SPIN_NS;

		bpf_for(i, 0, TX_PAUSES) {
			if (!fifo_comes(fifo))
				break;
			err = tx_rest(until, may_sleep, mine);
			if (err == TX_LOST)
				return TX_LOST;
			if (err)
				break;
		}
	}
	if (fifo)
		fifo_look(fifo);
	err = tx_run(bpf_get_current_task_btf(), to, n, may_sleep, mine);
	if (err == TX_LOST)
		return TX_LOST;
	if (!err && fifo)
		err = fifo_join(fifo, n);
	failing = tx.failing;
	tx_unlock();
	if (may_sleep && failing)
		tx_stand_back();
	return err;
}

/* For hooks that may sleep, and for those that may not: they look again for five milliseconds. */
__noinline int demote_held(u8 to, struct tg_note *n)
{
	pipeline_let_go(to);
	return n ? tx_demote(to, 0, 0, 0, NULL, false, n, true) : -EAGAIN;
}

__noinline int demote_now(u8 to, struct tg_note *n)
{
	return n ? tx_demote(to, 0, 0, 0, NULL, false, n, false) : -EAGAIN;
}

/* The current subject gets a descriptor of a channel: levels are made to fit first. */
__noinline int join_channel(u64 file, struct tg_fifo *fifo, bool reopen, struct tg_note *n)
{
	return n ? tx_demote(TX_STAY, file, 0, 0, fifo, reopen, n, true) : -EAGAIN;
}

/* It sends to a Unix socket, or connects to it; then `self` is its own, if somebody else may have that. */
__noinline int join_unix(u64 sock, u64 self, struct tg_note *n)
{
	return n ? tx_demote(TX_STAY, 0, sock, self, NULL, false, n, false) : -EAGAIN;
}

#endif
