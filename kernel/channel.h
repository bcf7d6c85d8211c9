/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Channels, and what each descriptor and mapping means to a demotion: who reads
 * what whom writes, what could still be written to, what nothing could revoke.
 */
#ifndef TIDEGATE_CHANNEL_H
#define TIDEGATE_CHANNEL_H

#define TX_FDS (1 << 20) /* entries of a descriptor table that is looked at */

/*
 * Bounds on what is done under the lock. Channels of those who fall or join: they, and nobody else, are refused. And
 * places in all tables together, of which a processor sees a hundred million a second.
 */
#define TX_CHANNELS (1 << 14)
#define TX_LOOKS (1ull << 26)

/* Which channels have entries, roughly: what is looked at first of a descriptor. */
#define TX_FILTER 4096
u64 tx_filter[TX_FILTER / 64];

static __always_inline u32 filter_bit(u64 key)
{
	return (key & ~1ull) * 0x9e3779b97f4a7c15ull >> 52;
}

static __always_inline bool filter_has(u64 key)
{
	u32 bit = filter_bit(key);

	return tx_filter[BOUND(bit >> 6, TX_FILTER / 64)] >> (bit & 63) & 1;
}

struct tg_channel tx_fresh; /* an entry as it begins */

/*
 * An entry for a channel; NULL: there is none. Only who falls, or joins, has entries made, and has so many: between
 * transactions no reader stands above a writer, so what others write to each other lowers nobody, however much there
 * is of it. What was written before the entry came is seen in the next pass.
 */
static __always_inline struct tg_channel *channel(u64 key)
{
	struct tg_channel *c = bpf_map_lookup_elem(&channels, &key);
	u32 bit;
	u8 floor;

	if (c && c->tx == tx.id)
		return c;
	if (!tx.makes)
		return NULL;
	if (tx.made >= TX_CHANNELS) {
		tx.crowded = tx.failed = 1;
		return NULL;
	}
	if (!c) {
		if (bpf_map_update_elem(&channels, &key, &tx_fresh, BPF_ANY)) {
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
	tx.made++;
	floor = floor_of(key);
	bit = filter_bit(key);
	tx_filter[BOUND(bit >> 6, TX_FILTER / 64)] |= 1ull << (bit & 63);
	c->tx = tx.id;
	c->maps = 0;
	/* who writes at the top lowers nobody, and makes no further pass */
	c->lowest_writer = floor < policy.top ? floor : policy.top;
	c->admits = 0xff;
	c->seen = 0;
	if (tx.stage == TX_SPREAD)
		tx.changed = 1;
	return c;
}

/* Charges a floor that a fall needs, for which there was room (tx_floors_fit), or one who joins a channel. */
static __always_inline void tx_floor(u64 key, u8 level)
{
	u32 how = tx.published ? BUDGET_ALWAYS : BUDGET_LAST;

	if (floor_charge(key, level, tx.payer, how))
		tx.crowded = tx.failed = 1;
}

static __always_inline void tx_floor_needed(u64 key)
{
	if (floor_of(key) != 0xff)
		return;
	if (tx.payer == tx.own)
		tx.floors++;
	else
		tx.floors_others++;
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

	if (!c)
		return level;
	c->seen = 1;
	return c->lowest_writer < level && !tx.trusted ? c->lowest_writer : level;
}

/*
 * The lowest level that may send to a socket. What has no name takes from anybody. UNIX_LATER:
 * that cannot be told now; as a level it admits nobody.
 */
#define UNIX_LATER 0xfe

__noinline u8 unix_admits(u64 sock)
{
	struct unix_sock *u = CAST(struct unix_sock, sock);
	struct lomac_object o;
	struct dentry *d;
	u64 label;
	u32 source;

	if (!u->path.dentry)
		return 0;
	d = CAST(struct dentry, u->path.dentry);
	label = label_peek(address(d->d_inode), address(d), &source);
	o = object(label);
	if (!o.known)
		return label & LABEL_LATER ? UNIX_LATER : policy.top;
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
enum tx_kind {
	TX_OTHER,
	TX_SHARED,
	TX_PIPE,
	TX_UNIX,
	TX_MEMORY,
	TX_FILE,
	TX_RING,
	TX_FAULTS,
	TX_PROCESS,
	TX_MASTER
};

__noinline u32 tx_kind_anonymous(u64 dentry)
{
	struct dentry *d = CAST(struct dentry, dentry);
	char name[8] = {};

	bpf_probe_read_kernel(name, sizeof(name), d->d_name.name);
	/* a seccomp listener answers another's calls; a read of fanotify installs a descriptor */
	if (!__builtin_memcmp(name, "[io_urin", 8) || !__builtin_memcmp(name, "seccomp ", 8) ||
	    !__builtin_memcmp(name, "[fanotif", 8))
		return TX_RING;
	if (!__builtin_memcmp(name, "[userfau", 8))
		return TX_FAULTS;
	if (!__builtin_memcmp(name, "[eventfd", 8) || !__builtin_memcmp(name, "[pidfd]", 8))
		return TX_OTHER;
	/*
	 * Of any other, what one of its holders does another has: a page that all may map (perf, KVM, BPF), what is to be
	 * told, in words of one's own, and when (epoll, inotify, signalfd, timerfd), rules and mounts in the making, and
	 * whatever a driver lets them do to its device.
	 */
	return TX_SHARED;
}

/* /proc/PID/mem: no other file of procfs has that name. */
__noinline bool is_process_memory(u64 dentry)
{
	struct dentry *d = CAST(struct dentry, dentry);
	char name[4] = {};

	bpf_probe_read_kernel(name, sizeof(name), d->d_name.name);
	return !__builtin_memcmp(name, "mem", 4);
}

static __always_inline enum tx_kind tx_kind_of(struct file *f)
{
	struct inode *inode = CAST(struct inode, f->f_inode);
	u16 type = inode->i_mode & S_IFMT;

	if (inode->i_sb->s_magic == ANON_INODE_MAGIC)
		return tx_kind_anonymous(address(f->f_path.dentry));
	if (inode->i_sb->s_magic == DMA_BUF_MAGIC)
		return TX_SHARED;
	if (type == S_IFIFO || inode->i_sb->s_magic == MQUEUE_MAGIC)
		return TX_PIPE;
	if (type == S_IFSOCK) {
		struct socket *sock = CAST(struct socket, f->private_data);
		struct sock *sk = CAST(struct sock, sock->sk);

		if (!sock->sk || sk->__sk_common.skc_family == AF_INET ||
		    sk->__sk_common.skc_family == AF_INET6)
			return TX_OTHER;
		/* what the kernel answers one, another who has it reads, too */
		return sk->__sk_common.skc_family == AF_UNIX ? TX_UNIX : TX_PIPE;
	}
	if (type == S_IFREG && inode->i_sb->s_magic == PROC_MAGIC &&
	    is_process_memory(address(f->f_path.dentry)))
		return TX_PROCESS;
	if (type == S_IFREG)
		return inode_is_memory(inode) ? TX_MEMORY : TX_FILE;
	if (type == S_IFBLK)
		return TX_FILE;
	if (type == S_IFCHR && device_is_master(inode->i_rdev))
		return TX_MASTER;
	if (type == S_IFCHR && device_has_buffers(inode->i_rdev))
		return TX_SHARED;
	if (type == S_IFCHR)
		return device_is_neutral(inode->i_rdev) ? TX_OTHER : TX_FILE;
	return TX_OTHER;
}

static __always_inline bool is_device(struct file *f)
{
	return (CAST(struct inode, f->f_inode)->i_mode & S_IFMT) == S_IFCHR;
}

static __always_inline bool is_pipe(struct file *f)
{
	return (CAST(struct inode, f->f_inode)->i_mode & S_IFMT) == S_IFIFO;
}

/* What a channel's readers, writers and floor are kept under. A socket's sock does not go before it; 0: gone. */
static __always_inline u64 channel_key(struct file *f)
{
	struct inode *inode = CAST(struct inode, f->f_inode);

	if ((inode->i_mode & S_IFMT) == S_IFSOCK && inode->i_sb->s_magic == SOCKFS_MAGIC)
		return address(CAST(struct socket, f->private_data)->sk);
	return address(inode);
}

/* Not of an address space that its owner's exec has left and not freed yet, and nobody else has. */
static __always_inline bool mapping_counts(u64 node)
{
	u64 at = node - bpf_core_field_offset(struct vm_area_struct, shared.rb), owner;
	struct mm_struct *mm = CAST(struct mm_struct, CAST(struct vm_area_struct, at)->vm_mm);

	if (!bpf_core_field_exists(struct mm_struct, owner))
		return true;
	owner = address(mm->owner);
	return !owner || address(mm) == address(CAST(struct task_struct, owner)->mm) ||
	       mm->mm_users.counter != 1;
}

/* Mappings of an object that exist anywhere; up to TG_DEPTH, then more. */
static __always_inline u32 mappings_of(struct inode *inode)
{
	struct address_space *as = CAST(struct address_space, inode->i_mapping);
	struct tg_scratch *w = scratch_get();
	u32 i, count;

	if (!w)
		return ~0u;
	w->n = w->off = 0;
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
		w->off += mapping_counts(address(node));
		if (node->rb_left) {
			w->up[BOUND(w->n, TG_DEPTH)] = address(node->rb_left);
			w->n++;
		}
		if (node->rb_right) {
			w->up[BOUND(w->n, TG_DEPTH)] = address(node->rb_right);
			w->n++;
		}
	}
	count = w->n ? ~0u : w->off;
	scratch_put(w);
	return count;
}

__noinline bool memory_is_mapped(u64 inode)
{
	return mappings_of(CAST(struct inode, inode)) != 0;
}

/* Is memory that the subject can go on writing mapped by somebody who does not fall? */
__noinline int tx_memory(u64 inode)
{
	struct tg_channel *c = channel(inode);

	tx.memory++;
	if (!c || mappings_of(CAST(struct inode, inode)) != c->maps)
		tx.mapping++;
	return 0;
}

__noinline int channel_map(u64 key, u8 level)
{
	struct tg_channel *c = channel(key);

	if (!c)
		return 0;
	if (c->maps_pass != tx.pass) {
		c->maps = 0;
		c->maps_level = level;
	}
	c->maps_pass = tx.pass;
	/* who shares memory has one level */
	c->maps += c->maps_level == level ? 1 : TG_DEPTH;
	return 0;
}

/* A pipe that is read, but by no descriptor in sight: a call still waits, or a message carries it. */
static __always_inline void tx_unread(u64 key)
{
	struct inode *inode = CAST(struct inode, key);
	struct pipe_inode_info *pipe = CAST(struct pipe_inode_info, inode->i_pipe);
	struct tg_channel *c;

	if ((inode->i_mode & S_IFMT) != S_IFIFO || !inode->i_pipe || !pipe->readers)
		return;
	c = channel(key);
	if (!c || !c->seen)
		tx.overflow = 1;
}

/*
 * A connection being accepted right now is in nobody's table and in no queue: who
 * will read from it cannot be told, so its other end may not fall yet.
 */
static __always_inline void tx_unseen(struct unix_sock *u, u8 level)
{
	struct unix_sock *peer = CAST(struct unix_sock, u->peer);
	struct tg_channel *c;

	if (!u->peer || peer->sk.sk_shutdown == SHUTDOWN_BOTH)
		return;
	c = channel(address(u->peer));
	/* what the passes have not met is not known to admit it */
	if (tx.stage == TX_VERIFY && peer->path.dentry && (!c || level < c->admits))
		tx.writable++;
	if (!c || !c->seen)
		tx.overflow = 1;
	else if (tx.stage == TX_FLOORS && c->lowest_writer <= level)
		tx_floor(address(u->peer), level);
	else if (tx.stage == TX_VERIFY && c->lowest_writer <= level)
		tx_floor_needed(address(u->peer));
}

/*
 * Would one that keeps its level hear the current subject, which is below it, by an abstract name: as that connects or
 * sends, or as it is handed a connection? Of a named socket its file says whom a server may hear; of this one nothing does.
 */
static __always_inline bool tx_is_relay(struct unix_sock *u, u8 level)
{
	u64 self = address(u);

	if (!tx.trusted || tx.level >= level || u->path.dentry)
		return false;
	return self == tx.join_unix || (self == tx.join_peer && address(u->addr));
}

/* A Unix socket: it reads what is sent to itself, and writes to its peer. */
static __always_inline u8 tx_unix(struct unix_sock *u, u8 level, bool falls)
{
	u64 self = address(u), head = self + bpf_core_field_offset(struct sock, sk_receive_queue);
	u32 i;

	if (tx_is_relay(u, level))
		tx.relays = 1;
	if (u->peer) {
		channel_send(address(u->peer), level, falls);
		return channel_read(self, level);
	}
	/* it is being connected: all that have it will speak by it, and hear; none of them may be below the subject that connects */
	if (self == tx.join_self) {
		tx.relays |= !falls && level < tx.level;
		channel_send(tx.join_unix, level, falls);
		level = channel_read(tx.join_unix + 1, level);
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

/* Is it the first time in this pass? Of an address space, which tasks share. */
__noinline bool channel_first(u64 key)
{
	struct tg_channel *c = channel(key);

	if (!c || c->pass == tx.pass)
		return false;
	c->pass = tx.pass;
	return true;
}

/* The level of whose address space it is. */
__noinline u8 memory_owner(u64 mm)
{
	struct mm_struct *m = CAST(struct mm_struct, mm);
	struct task_struct *t;
	u8 level = policy.top;

	if (!bpf_core_field_exists(struct mm_struct, owner))
		return level;
	if (!m->owner)
		return 0;
	t = bpf_task_from_pid(m->owner->pid);
	if (!t)
		return 0;
	level = subject_label(t).level;
	bpf_task_release(t);
	return level;
}

/* References to an open file. Since Linux 6.13 the first one counts as none. */
static __always_inline u64 file_references(u64 file)
{
	struct file *f = CAST(struct file, file);

	if (bpf_core_field_exists(((struct file___6_12 *)0)->f_count))
		return ((struct file___6_12 *)f)->f_count.counter;
	return ((struct file___6_13 *)f)->f_ref.refcnt.counter + 1;
}

#define TX_LEASES 1024

/* Has the open file a lease, or a directory's delegation? Whoever opens it for writing waits for its holder. */
__noinline bool tx_leased(u64 file)
{
	u64 inode = address(CAST(struct file, file)->f_inode), head;
	u64 locks = address(CAST(struct inode, inode)->i_flctx);
	struct list_head *at;
	u32 i;

	if (!locks)
		return false;
	head = locks + bpf_core_field_offset(struct file_lock_context, flc_lease);
	at = CAST(struct file_lock_context, locks)->flc_lease.next;
	bpf_for(i, 0, TX_LEASES) {
		struct file_lock_core *lease;

		if (!at || address(at) == head)
			return false;
		lease = CAST(struct file_lock_core,
			     address(at) - bpf_core_field_offset(struct file_lock_core, flc_list));
		if (address(lease->flc_file) == file)
			return true;
		at = CAST(struct list_head, at)->next;
	}
	return true;
}

/*
 * Is it a clock (/dev/ptp0) that is open to be set? clock_settime(2) of its descriptor asks no hook. Only the top makes
 * devices, so what is called so is one.
 */
__noinline bool tx_sets_clock(u64 file)
{
	struct file *f = CAST(struct file, file);
	char name[4] = {};

	if (!(f->f_mode & FMODE_WRITE) || !is_device(f))
		return false;
	bpf_probe_read_kernel(name, sizeof(name),
			      CAST(struct dentry, address(f->f_path.dentry))->d_name.name);
	return !__builtin_memcmp(name, "ptp", 3) && name[3] >= '0' && name[3] <= '9';
}

/* Looks at one descriptor of a task that stands, or will stand, at `level`. */
__noinline u8 tx_file(u64 addr, u8 level, bool falls)
{
	struct file *f = CAST(struct file, addr);
	enum tx_kind kind = tx_kind_of(f);
	u32 mode = f->f_mode;
	u64 key = channel_key(f);

	if (!key)
		return level; /* a socket that is being closed */
	if (kind == TX_PIPE || kind == TX_MEMORY) {
		tx.channels++;
		if (kind == TX_MEMORY && mode & FMODE_WRITE &&
		    !memory_admits(key, address(f->f_path.dentry), tx.was)) {
			tx.writable += falls;
			mode &= ~FMODE_WRITE;
		}
		if (tx.stage == TX_FLOORS && falls && mode & FMODE_WRITE)
			tx_floor(key, level);
		/* what it sends outlives it, what it receives is gone, and both by the level that the queue has */
		if (tx.stage == TX_VERIFY && falls && mode & (FMODE_READ | FMODE_WRITE) &&
		    CAST(struct inode, f->f_inode)->i_sb->s_magic == MQUEUE_MAGIC)
			tx.mapping++;
		if (tx.stage == TX_VERIFY && falls && mode & FMODE_WRITE) {
			tx_floor_needed(key);
			if (kind == TX_MEMORY)
				tx_later(key);
			else
				tx_unread(address(f->f_inode));
		}
		if (tx.stage != TX_SPREAD)
			return level;
		if (mode & FMODE_WRITE)
			channel_write(key, level);
		/* who opens a pipe by a name in /proc cannot tell which of its holders filled it */
		if (tx.reopen && key == tx.join_key && kind == TX_PIPE) {
			channel_write(key + 1, level);
			if (addr == tx.join)
				level = channel_read(key + 1, level);
		}
		if (mode & FMODE_READ) {
			level = channel_read(key, level);
		}
		/* an opening counts once, in however many tables it is; of memory each is a way to read it */
		if (key == tx.join_key && addr != tx.join &&
		    (mode & FMODE_READ || kind == TX_MEMORY)) {
			u32 makes = tx.makes;

			tx.makes = 1;
			tx.join_readers += channel_first(addr);
			tx.makes = makes;
		}
	} else if (kind == TX_UNIX) {
		struct socket *sock = CAST(struct socket, f->private_data);

		tx.channels++;
		if (tx.stage == TX_SPREAD)
			level = tx_unix(CAST(struct unix_sock, sock->sk), level, falls);
		else if (falls)
			tx_unseen(CAST(struct unix_sock, sock->sk), level);
	} else if (kind == TX_SHARED && file_references(addr) > 1) {
		tx.channels++;
		if (tx.stage == TX_SPREAD) {
			channel_write(addr, level);
			level = channel_read(addr, level);
		}
	} else if (kind == TX_RING) {
		tx.async += falls;
		tx.rings += !falls;
	} else if (kind == TX_FAULTS) {
		struct userfaultfd_ctx *uffd = CAST(struct userfaultfd_ctx, f->private_data);

		/* it fills in the memory of the process that made it */
		tx.channels++;
		if (tx.stage == TX_SPREAD)
			channel_write(address(uffd->mm), level);
	} else if (kind == TX_PROCESS && mode & FMODE_READ) {
		tx.channels++;
		if (tx.stage == TX_SPREAD)
			level = channel_read(address(f->private_data), level);
	}
	if (kind == TX_PROCESS && falls && mode & FMODE_WRITE) {
		tx.writable++;
		/* its name is a process's that may have left the memory to others */
		if (tx.stage == TX_VERIFY && memory_owner(address(f->private_data)) > level)
			tx.mapping++;
	}
	/* whom a master types for, the guard looks at; and a device may be neutral or not */
	if ((kind == TX_FILE || kind == TX_MASTER || (kind == TX_SHARED && is_device(f))) &&
	    falls && mode & FMODE_WRITE)
		tx.writable++;
	if (tx.stage == TX_VERIFY && falls && (tx_leased(addr) || tx_sets_clock(addr)))
		tx.mapping++;
	return level;
}

/*
 * What a pass has looked at: openings, and whole tables. Who stands the same and meets it again learns what came of that
 * and does not look once more, in however many places of however many tables an opening is, and whatever number of
 * tasks has the table. Where two are remembered in one place the later one is.
 */
struct tx_seen {
	u64 at;
	u64 as; /* by whom: see tx_as */
	u64 low;
};

#define TX_OPENINGS 4096
#define TX_TABLES 1024
struct tx_seen tx_openings[TX_OPENINGS];
struct tx_seen tx_tables[TX_TABLES];

/* In which pass, and as what one looks; never 0. */
static __always_inline u64 tx_as(u8 level, bool falls)
{
	return (u64)tx.pass << 32 | 1u << 31 | (u32)level << 16 | (tx.was & 0xff) << 8 |
	       !!tx.makes << 2 | !!tx.trusted << 1 | falls;
}

/*
 * May an opening matter that somebody has who does not fall? A pipe and memory are known by their inodes, which have
 * entries then. Of a directory, a named file and a device without buffers nothing is asked.
 */
static __always_inline bool tx_may_matter(u64 addr)
{
	u64 inode = address(CAST(struct file, addr)->f_inode), magic;
	u16 type = CAST(struct inode, inode)->i_mode & S_IFMT;

	if (type == S_IFIFO)
		return filter_has(inode);
	if (type == S_IFCHR)
		return device_has_buffers(CAST(struct inode, inode)->i_rdev);
	if (type == S_IFDIR || type == S_IFBLK)
		return false;
	if (type != S_IFREG)
		return true;
	if (filter_has(inode))
		return true;
	magic = CAST(struct inode, inode)->i_sb->s_magic;
	return magic == ANON_INODE_MAGIC || magic == DMA_BUF_MAGIC || magic == PROC_MAGIC;
}

static __always_inline u8 tx_opening(u64 addr, u8 level, bool falls)
{
	struct tx_seen *seen = &tx_openings[BOUND(addr >> 6 ^ addr >> 18, TX_OPENINGS)];
	u64 as = tx_as(level, falls);

	if (seen->at == addr && seen->as == as)
		return seen->low;
	if (tx.stage != TX_SPREAD || tx.makes || tx_may_matter(addr))
		level = tx_file(addr, level, falls);
	seen->at = addr;
	seen->as = as;
	seen->low = level;
	return level;
}

u64 tx_places[64]; /* of a table: those that are looked at, */
u64 tx_open;       /* and which of them are open */

/* Looks at every descriptor of a task; the level it has to fall to. */
__noinline u8 tx_files(u64 table, u8 level, bool falls)
{
	struct files_struct *files = CAST(struct files_struct, table);
	struct fdtable *fdt = CAST(struct fdtable, files->fdt);
	u32 max = fdt->max_fds, i, j;

	tx.looked += max;
	if (max > TX_FDS || tx.looked > TX_LOOKS) {
		tx.failed = 1;
		return level;
	}
	bpf_for(i, 0, max / 64) {
		tx_open = 0;
		bpf_probe_read_kernel(&tx_open, sizeof(tx_open), fdt->open_fds + i);
		if (!tx_open)
			continue;
		/* a table that has become another is looked at in vain; the old one is freed later */
		if (bpf_probe_read_kernel(tx_places, sizeof(tx_places), fdt->fd + i * 64)) {
			tx.failed = 1;
			break;
		}
		bpf_for(j, 0, 64) {
			u64 f = tx_places[BOUND(j, 64)];

			if (f && tx_open >> j & 1)
				level = tx_opening(f, level, falls);
		}
	}
	return level;
}

/* The same of a table that other tasks may have, too: once. */
static __always_inline u8 tx_table(u64 table, u8 level, bool falls)
{
	struct tx_seen *seen = &tx_tables[BOUND(table >> 6 ^ table >> 16, TX_TABLES)];
	u64 as = tx_as(level, falls);

	if (seen->at == table && seen->as == as)
		return seen->low;
	level = tx_files(table, level, falls);
	seen->at = table;
	seen->as = as;
	seen->low = level;
	return level;
}

/* What a mapping means to a task that stands, or will stand, at `level`. */
__noinline int tx_mapping(u64 addr, u8 level)
{
	struct vm_area_struct *vma = CAST(struct vm_area_struct, addr);
	bool shared = vma->vm_flags & VM_SHARED, writable = vma->vm_flags & VM_MAYWRITE;
	struct file *f = CAST(struct file, vma->vm_file);
	struct inode *inode = CAST(struct inode, f->f_inode);
	u64 key = address(f->f_inode);
	u16 type = inode->i_mode & S_IFMT;

	if (inode_is_memory(inode)) {
		/* a private or read-only mapping shows it, too */
		if (tx.stage == TX_COUNT) {
			/* who reads it by a descriptor falls, too: another round */
			if (shared && writable)
				channel_write(key, level);
			return channel_map(key, level);
		}
		if (tx.stage == TX_VERIFY && shared && writable) {
			tx_floor_needed(key);
			tx_later(key);
		}
		if (tx.stage == TX_FLOORS && shared && writable)
			tx_floor(key, level);
		return 0;
	}
	if (!shared || (type == S_IFCHR && device_is_neutral(inode->i_rdev)))
		return 0;
	if (tx_kind_of(f) == TX_RING)
		tx.async++;
	else if (writable)
		tx.mapping++;
	return 0;
}

/* Shared writable mappings that a falling task would keep. */
static __always_inline void tx_mappings(struct task_struct *t, u8 level)
{
	struct task_struct *fields;
	struct vm_area_struct *vma;

	tx.mapped = 0;
	bpf_for_each(task_vma, vma, t, 0) {
		tx.mapped++;
		if (UNTRUSTED(vma)->vm_file)
			tx_mapping(address(vma), level);
	}
	/* it could not have the task's lock, or passed over one that is locked: what is mapped is not known */
	fields = UNTRUSTED(t);
	if (fields->mm && tx.mapped < fields->mm->map_count && !(fields->flags & PF_EXITING))
		tx.overflow = 1;
}

#endif
