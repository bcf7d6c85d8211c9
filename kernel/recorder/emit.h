/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a line is made and sent, and what is not told again. */
#ifndef TIDEGATE_RECORDER_EMIT_H
#define TIDEGATE_RECORDER_EMIT_H

/* An equal access is told again after so long, ns; and where its subject observed anything new since. */
#define TR_AGAIN 1000000000ull

/* What a hook knows; the rest is the task's. */
struct tr_note {
	u64 inode;  /* address */
	u64 dentry; /* address */
	u64 other;  /* dentry of the other path, 0: none */
	u64 task;   /* address of the task that did it, 0: the current one */
	u64 channel;
	u64 over; /* inode that is replaced, 0: none */
	u32 flags;
	u32 peer;
	s32 refused;
	u16 port;
	u8 what;
	u8 op;
	u8 class;
	u8 family;
	u8 sock_type;
	u8 always; /* a change of names, or of tasks that there are: never like another */
	u8 addr[16];
	u8 bound[16];
};

static __always_inline bool is_recorded(struct task_struct *task)
{
	u32 pid = task->tgid;

	if (pid == policy.recorder)
		return false;
	if (policy.follow)
		return bpf_map_lookup_elem(&followed, &pid);
	return !(task->flags & PF_KTHREAD);
}

static __always_inline struct tr_object object_of(struct inode *inode)
{
	struct tr_object o = {
		.ino = inode->i_ino,
		.dev = inode->i_sb->s_dev,
		.generation = inode->i_generation,
	};
	return o;
}

/* What a filesystem decides of a label before any map does. */
static __always_inline u32 kind_of_fs(u64 magic)
{
	return (fs_is_neutral(magic) ? TR_NEUTRAL : 0) | (fs_is_kernel(magic) ? TR_KERNEL : 0) |
	       (fs_is_foreign(magic) ? TR_FOREIGN : 0) | (fs_is_memory(magic) ? TR_MEMORY : 0);
}

/* The same of an inode. */
__noinline u32 kind_of(u64 addr)
{
	struct inode *inode = CAST(struct inode, addr);
	u32 flags = 0;

	if ((inode->i_mode & S_IFMT) == S_IFCHR && device_is_neutral(inode->i_rdev))
		flags |= TR_NEUTRAL;
	if (inode_is_memory(inode))
		flags |= TR_UNNAMED;
	if (inode->i_flags & S_PRIVATE)
		flags |= TR_PRIVATE;
	if (inode->i_readcount.counter || inode->i_writecount.counter)
		flags |= TR_OPEN;
	return flags;
}

/* Whose directory in procfs it is in; 0: nobody's. */
static __always_inline u32 process_of(struct inode *inode)
{
	u64 at = address(inode) - bpf_core_field_offset(struct proc_inode, vfs_inode);
	struct pid *pid = CAST(struct proc_inode, at)->pid;

	return pid ? CAST(struct pid, address(pid))->numbers[0].nr : 0;
}

/* Writes the components that were walked, from the root. */
static __always_inline u32 write_components(struct tg_scratch *w)
{
	u32 i, from = w->at, flags = 0;

	bpf_for(i, 0, w->n) {
		struct dentry *c = CAST(struct dentry, w->up[BOUND(w->n - 1 - i, TG_DEPTH)]);
		u32 len = c->d_name.len;

		if (w->at - from + len + 1 > TR_PATH || len > 255) {
			flags = TR_CUT;
			break;
		}
		w->text[BOUND(w->at, 2 * TR_PATH)] = '/';
		if (bpf_probe_read_kernel(w->text + 1 + BOUND(w->at, 2 * TR_PATH), BOUND(len, 256),
					  c->d_name.name)) {
			flags = TR_UNKNOWN;
			break;
		}
		w->at += len + 1;
	}
	if (w->at == from) {
		w->text[BOUND(w->at, 2 * TR_PATH)] = '/';
		w->at++;
	}
	return flags;
}

/* Writes an object's canonical path behind what is written; flags of what came of it. */
__noinline u32 write_path(u64 dentry, struct tg_scratch *w)
{
	u32 try, from, flags = TR_UNKNOWN;

	if (!w)
		return TR_UNKNOWN;
	from = w->at;
	bpf_rcu_read_lock();
	bpf_for(try, 0, TG_TRIES) {
		struct dentry *d = CAST(struct dentry, dentry);
		u64 before = path_settled(), m;

		if (before & PATH_ODD)
			break;
		w->at = from;
		flags = TR_UNKNOWN;
		if (!walk_filesystem(dentry, w))
			break;
		m = canonical_mount(address(d->d_sb), w);
		if (m == MOUNT_LATER)
			break;
		if (!m) {
			if (w->up[BOUND(w->n - 1, TG_DEPTH)] == address(d->d_sb->s_root))
				flags = TR_UNMOUNTED;
		} else if (walk_mounts(m, w)) {
			flags = write_components(w);
		}
		if (path_sequence() == before)
			break;
		flags = TR_UNKNOWN;
	}
	bpf_rcu_read_unlock();
	if (flags & (TR_UNKNOWN | TR_UNMOUNTED))
		w->at = from;
	return flags;
}

/* Was an equal access told a moment ago, and has its subject observed nothing new since? */
static __noinline bool is_known(struct tr_note *n, u64 subject, u64 now)
{
	u32 how = TR_READS | TR_WRITES | TR_FIRST | TR_APPENDS | TR_EXECUTES | TR_CONTENT |
		  TR_CONTROL;
	struct tr_key key = { .subject = subject, .op = n->op, .flags = n->flags & how };
	u64 *last, *fresh;
	bool known;

	if (n->inode)
		key.object = object_of(CAST(struct inode, n->inode));
	if (n->dentry) {
		struct dentry *d = CAST(struct dentry, n->dentry);

		key.name = address(d->d_parent) ^ d->d_name.hash_len;
	} else {
		u64 half[2];

		__builtin_memcpy(half, n->addr, sizeof(half));
		key.name = half[0] ^ (half[1] << 1) ^ n->port;
		/* what has no inode is told apart by what it has */
		if (!n->inode)
			key.object.ino = n->channel ^ n->peer;
	}
	last = bpf_map_lookup_elem(&told, &key);
	fresh = bpf_map_lookup_elem(&observed, &subject);
	known = last && now - *last < TR_AGAIN && fresh && *fresh <= *last;
	if (known)
		return true;
	if (!fresh || (!last && n->flags & TR_READS))
		bpf_map_update_elem(&observed, &subject, &now, BPF_ANY);
	bpf_map_update_elem(&told, &key, &now, BPF_ANY);
	return false;
}

/* Fills the scratch's line, and writes the paths behind it. */
__noinline int compose(struct tr_note *n, struct tg_scratch *w)
{
	struct task_struct *task;
	struct tr_line *l;

	if (!n || !w)
		return 0;
	l = &w->line;
	task = CAST(struct task_struct, n->task ? n->task : address(bpf_get_current_task_btf()));
	__builtin_memset(l, 0, sizeof(*l));
	l->time = bpf_ktime_get_boot_ns();
	l->start = task->group_leader->start_boottime;
	l->pid = task->tgid;
	l->tid = task->pid;
	l->uid = task->cred->uid.val;
	bpf_probe_read_kernel_str(l->comm, sizeof(l->comm), task->comm);
	l->what = n->what;
	l->op = n->op;
	l->class = n->class;
	l->flags = n->flags;
	l->peer = n->peer;
	l->refused = n->refused;
	l->channel = n->channel;
	l->family = n->family;
	l->sock_type = n->sock_type;
	l->port = n->port;
	__builtin_memcpy(l->addr, n->addr, sizeof(l->addr));
	__builtin_memcpy(l->bound, n->bound, sizeof(l->bound));
	w->at = 0;
	if (n->inode) {
		struct inode *inode = CAST(struct inode, n->inode);

		l->object = object_of(inode);
		l->links = inode->i_nlink;
		l->type = inode->i_mode & S_IFMT;
		l->flags |= kind_of(n->inode);
		if (inode->i_sb->s_magic == PROC_MAGIC) {
			l->peer = process_of(inode);
			if (l->peer)
				l->flags |= TR_PROC;
		}
	}
	if (n->dentry) {
		struct dentry *d = CAST(struct dentry, n->dentry);

		l->flags |= kind_of_fs(d->d_sb->s_magic);
		if (n->class == TG_C_DIR)
			l->dir = object_of(
				CAST(struct inode,
				     address(CAST(struct dentry, address(d->d_parent))->d_inode)));
		if (n->other) {
			d = CAST(struct dentry, n->other);
			d = CAST(struct dentry, address(d->d_parent));
			l->other_dir = object_of(CAST(struct inode, address(d->d_inode)));
		} else if (l->flags & TR_FOREIGN) {
			n->other = address(d->d_sb->s_root);
		}
	}
	if (n->over) {
		l->over = object_of(CAST(struct inode, n->over));
		l->flags |= TR_REPLACED;
		if (CAST(struct inode, n->over)->i_nlink <= 1)
			l->flags |= TR_LAST;
	}
	if (n->dentry && !(l->flags & TR_NEUTRAL)) {
		l->flags |= write_path(n->dentry, w);
		l->path_len = w->at;
		if (n->other) {
			write_path(n->other, w);
			l->other_len = w->at - l->path_len;
		}
	}
	return 0;
}

/* Sends the scratch's line and what is behind it. */
static __always_inline void send_line(struct tg_scratch *w, u32 behind)
{
	u64 size = sizeof(w->line) + BOUND(behind, 2 * TR_PATH);

	if (bpf_ringbuf_output(&lines, &w->line, size, 0))
		__sync_fetch_and_add(&lines_lost, 1);
}

/* Tells a line, if anybody wants it and it was not told a moment ago. */
__noinline int tell(struct tr_note *n)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct tg_scratch *w;

	if (!n)
		return 0;
	me = CAST(struct task_struct, n->task ? n->task : address(me));
	if (!is_recorded(me))
		return 0;
	__sync_fetch_and_add(&seen, 1);
	if (!n->always && !policy.all &&
	    is_known(n, me->group_leader->start_boottime ^ (u64)me->tgid << 40,
		     bpf_ktime_get_boot_ns()))
		return 0;
	w = scratch_get();
	if (!w) {
		__sync_fetch_and_add(&lines_lost, 1);
		return 0;
	}
	compose(n, w);
	send_line(w, w->at);
	scratch_put(w);
	return 0;
}

/* What the function came to, on whose exit a program stands. */
#define RESULT(ctx)                             \
	({                                      \
		u64 result = 0;                 \
		bpf_get_func_ret(ctx, &result); \
		(s32) result;                   \
	})

#endif
