/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Channels of a demotion: their readers and writers, and the level that a reader has to stand at (channel_level_for_reader).
 * tx_file() of descriptors.h tells the descriptors of readers from those of writers.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_CHANNELS_H
#define TIDEGATE_LOMAC_DEMOTE_CHANNELS_H

#include "lomac/demote/state.h"
#include "lomac/object.h"

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
 * An entry for a channel; NULL: there is none. Only a task that falls, or joins, has entries made,
 * and has so many: between transactions no reader stands above a writer, so what others write to
 * each other lowers nobody, however much there is of it. What was written before the entry came is
 * seen in the next pass.
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
	/* a writer at the top lowers nobody, and makes no further pass */
	c->lowest_writer = floor < policy.top ? floor : policy.top;
	c->admits = 0xff;
	c->seen = 0;
	if (tx.stage == TX_SPREAD)
		tx.changed = 1;
	return c;
}

/*
 * Charges a floor that a fall needs, for which there was room (tx_floors_fit), or one of a task
 * that joins a channel.
 */
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
__noinline int channel_note_writer(u64 key, u8 level)
{
	struct tg_channel *c = channel(key);

	if (c && level < c->lowest_writer) {
		c->lowest_writer = level;
		tx.changed = 1;
	}
	return 0;
}

__noinline u8 channel_level_for_reader(u64 key, u8 level)
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
	o = lomac_object_of_label(label);
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
			tx_defer_lookup(sock);
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

/*
 * Not of an address space that its owner's exec has left and not freed yet, and nobody else has; nor of one
 * that is being freed, of which nobody can take hold again (mmget_not_zero()).
 */
static __always_inline bool mapping_counts(u64 node)
{
	u64 at = node - bpf_core_field_offset(struct vm_area_struct, shared.rb), owner;
	struct mm_struct *mm = CAST(struct mm_struct, CAST(struct vm_area_struct, at)->vm_mm);

	if (!mm->mm_users.counter)
		return false;
	if (!bpf_core_field_exists(struct mm_struct, owner))
		return true;
	owner = address(mm->owner);
	return !owner || address(mm) == address(CAST(struct task_struct, owner)->mm) ||
	       mm->mm_users.counter != 1;
}

/* The mappings of an object that one walk through their tree meets; up to TG_DEPTH, then more. */
__noinline u32 mappings_met(u64 inode)
{
	struct address_space *as = CAST(struct address_space, CAST(struct inode, inode)->i_mapping);
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

/*
 * Mappings of an object that exist anywhere. A task that maps it, or unmaps it, may have the tree turned while it is walked through, so
 * that the walk misses a mapping that was there all the time. So the most that several walks meet is what counts: a task that would
 * hide a mapping has to turn the tree at the right instant of each.
 */
#define MAPPINGS_WALKS 8
static __always_inline u32 mappings_of(u64 inode)
{
	u32 most = 0, i;

	bpf_for(i, 0, MAPPINGS_WALKS) {
		u32 met = mappings_met(inode);

		if (met > most)
			most = met;
	}
	return most;
}

__noinline bool memory_is_mapped(u64 inode)
{
	return mappings_of(inode) != 0;
}

/* Is memory that the subject can go on writing mapped by somebody who does not fall? What the others have of it was counted just now. */
__noinline int tx_check_unnamed_memory(u64 inode)
{
	struct tg_channel *c = channel(inode);

	tx.memory++;
	if (!c || mappings_of(inode) != (c->maps_pass == tx.counted ? c->maps : 0))
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
	/* tasks that share memory have one level */
	c->maps += c->maps_level == level ? 1 : TG_DEPTH;
	return 0;
}

/* A pipe that is read, but by no descriptor in sight: a call still waits, or a message carries it. */
static __always_inline void tx_require_reader_seen(u64 key)
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
 * A connection being accepted right now is in nobody's table and in no queue: the tasks that will
 * read from it are not known, so its other end may not fall yet.
 */
static __always_inline void tx_require_peer_seen(struct unix_sock *u, u8 level)
{
	struct unix_sock *peer = CAST(struct unix_sock, u->peer);
	struct tg_channel *c;

	if (!u->peer || peer->sk.sk_shutdown == SHUTDOWN_BOTH)
		return;
	c = channel(address(u->peer));
	/* what the passes have not met is not known to admit it */
	if (tx.stage == TX_VERIFY && peer->path.dentry && (!c || level < c->admits))
		tx.writable++;
	/* nor has a pass met this end, as another thread moved it */
	if (tx.stage == TX_VERIFY && c &&
	    (peer->path.dentry ? c->admits == 0xff : c->lowest_writer > level))
		tx.overflow = 1;
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
		return channel_level_for_reader(self, level);
	}
	/* it is being connected: all that have it will speak by it, and hear; none of them may be below the subject that connects */
	if (self == tx.join_self) {
		tx.relays |= !falls && level < tx.level;
		channel_send(tx.join_unix, level, falls);
		level = channel_level_for_reader(tx.join_unix + 1, level);
	}
	/* without a peer: whoever is about to connect reads what its holders will write */
	channel_note_writer(self + 1, level);
	level = channel_level_for_reader(self, level);
	if (u->sk.__sk_common.skc_state == TCP_LISTEN) {
		struct sk_buff *skb = u->sk.sk_receive_queue.next;

		/* connections that wait to be accepted are the listener's already */
		bpf_for(i, 0, TX_WAITING + 1) {
			struct unix_sock *waiting;

			if (!skb || address(skb) == head)
				break;
			/* the tasks at the others' ends are not known */
			tx.failed |= falls && i == TX_WAITING;
			/* as long as four places of a table take; two listeners by turns in one are looked at each time */
			tx.looked += 4;
			if (tx.looked > TX_LOOKS) {
				tx.failed = 1;
				break;
			}
			skb = CAST(struct sk_buff, skb);
			waiting = CAST(struct unix_sock, skb->sk);
			if (skb->sk) {
				level = channel_level_for_reader(address(skb->sk), level);
				if (waiting->peer)
					channel_note_writer(address(waiting->peer), level);
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

#endif
