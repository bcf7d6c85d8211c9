/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records. Each is written to a ring in the kernel, so that a history can be
 * told when no daemon ran, and sent to the daemon. What finds no room is
 * counted; a flood of denials may not push out the demotions, nor others' denials.
 */
#ifndef TIDEGATE_CORE_RECORD_H
#define TIDEGATE_CORE_RECORD_H

#include "lib/preempt.h"
#include "lib/served.h"
#include "core/mounts.h"
#include "core/payer.h"
#include "core/stats.h"
#include "core/subject.h"

/* What a hook knows of an event; the rest is the current task's. */
struct tg_note {
	union {
		struct {
			/* address, 0: no file; of TG_OP_CHANGE_* without an inode, and with text_len, a text's */
			u64 dentry;
			u64 inode; /* address */
		};
		u8 addr[16]; /* where family is not 0 */
	};
	u32 source;
	u16 port;
	u8 family;
	u8 other; /* it happened to the process in audit_other */
	u32 peer; /* another process's pid */
	u8 kind;
	u8 op;
	u8 class;
	u8 reason;
	u8 to;       /* level after */
	u8 object;   /* level of the object */
	u8 text_len; /* bytes of a text, which is told instead of a path; 0: there is none */
	u32 detail;  /* as the record has it */
};

/* A process other than the current one that a record is about; under tx.lock. */
struct tg_other {
	u64 task; /* address */
	u64 prev; /* its newest record */
	u8 from;  /* its level before */
} audit_other;

/* Writes the text of a path as it seems to be, its end if it is too long. Returns the bytes used; 0: there is no path. */
static __always_inline u32 path_written(u64 dentry, struct tg_scratch *w)
{
	struct dentry *d = CAST(struct dentry, dentry);
	u32 i, first;
	u64 m;

	if (!walk_filesystem(dentry, w))
		return 0;
	m = mount_of(address(d->d_sb), w);
	if (m == MOUNT_LATER || (m && !walk_mounts(m, w)))
		return 0;
	w->off = w->first = 0;
	bpf_for(i, 0, w->n) {
		struct dentry *c = CAST(struct dentry, w->up[BOUND(i, TG_DEPTH)]);

		w->off += c->d_name.len + 1;
		if (w->off > TG_PATH)
			break;
		w->first = i + 1;
	}
	first = w->first;
	w->off = 0;
	bpf_for(i, 0, first) {
		struct dentry *c = CAST(struct dentry, w->up[BOUND(first - 1 - i, TG_DEPTH)]);
		u32 len = c->d_name.len;

		if (w->off >= TG_PATH || len >= TG_PATH)
			break;
		w->text[BOUND(w->off, TG_PATH)] = '/';
		if (bpf_probe_read_kernel(w->text + 1 + BOUND(w->off, TG_PATH), BOUND(len, TG_PATH),
					  c->d_name.name))
			break;
		w->off += len + 1;
	}
	if (!w->n) {
		w->text[0] = '/';
		w->off = 1;
	}
	return w->off < TG_PATH ? w->off : TG_PATH;
}

/* The same; PATH_MOVED: something was moved or mounted meanwhile. */
#define PATH_MOVED (~0u)

__noinline u32 path_text(u64 dentry, struct tg_scratch *w)
{
	u64 before = path_settled();
	u32 len;

	if (!w || before & PATH_ODD)
		return 0;
	len = path_written(dentry, w);
	return path_sequence() == before ? len : PATH_MOVED;
}

/*
 * Writes a record's path, as it is in a moment at which nothing is moved or mounted; none if there is no such moment. A
 * record without a path still has the inode, and one with a path that never was would mislead.
 */
static __always_inline void record_path_written(struct tg_event *e, u64 dentry)
{
	struct tg_scratch *w;
	u32 try, len;

	bpf_for(try, 0, TG_TRIES) {
		w = scratch_get();
		if (!w)
			break;
		bpf_rcu_read_lock();
		len = path_text(dentry, w);
		bpf_rcu_read_unlock();
		if (len != PATH_MOVED) {
			e->path_len = len;
			__builtin_memcpy(e->path, w->text, TG_PATH);
		}
		scratch_put(w);
		if (len != PATH_MOVED)
			break;
	}
}

/*
 * A path is written by one program, `lomac_record_path`, and not by each that may record something: to walk through directories
 * and mounts took the verifier longer than all else of a record (lib/served.h). What is asked stands in a place of the processor,
 * which a program does not leave. If a task writes there that runs between, or the program is not attached, the record has no path.
 */
SERVED_BY(paths);

#define PATH_ASKS 1024 /* processors */
struct tg_path_ask {
	u64 dentry;
	u64 record; /* its number */
	u64 tag;    /* of both, as the task wrote them */
} path_asks[PATH_ASKS];

static __always_inline struct tg_path_ask *path_ask(void)
{
	return &path_asks[BOUND(bpf_get_smp_processor_id(), PATH_ASKS)];
}

/* Tells what the current task asks from what others do, and from a mixture. */
static __always_inline u64 path_ask_tag(u64 dentry, u64 record)
{
	return address(bpf_get_current_task_btf()) ^ dentry ^ record * 0x9e3779b97f4a7c15ull;
}

static __always_inline struct tg_event *record_at(u64 id)
{
	u32 slot = id & (TG_HISTORY - 1);

	return bpf_map_lookup_elem(&history, &slot);
}

/* Writes the path that the current task asks for; of lomac_record_path. */
static __always_inline void record_path_asked(struct bpf_map *map)
{
	struct tg_path_ask *asks = path_ask();
	u64 dentry = READ_ONCE(asks->dentry), record = READ_ONCE(asks->record);
	struct tg_event *e;

	if (!IS_SERVED(map, paths) || READ_ONCE(asks->tag) != path_ask_tag(dentry, record))
		return;
	e = record_at(record);
	if (!e)
		return;
	/* a kernel skips a program that a preempted task is in the middle of */
	work_begin();
	record_path_written(e, dentry);
	work_end();
}

static __always_inline void record_path(u64 id, u64 dentry)
{
	struct tg_path_ask *asks = path_ask();

	WRITE_ONCE(asks->dentry, dentry);
	WRITE_ONCE(asks->record, id);
	WRITE_ONCE(asks->tag, path_ask_tag(dentry, id));
	SERVE(paths);
	WRITE_ONCE(asks->tag, 0);
}

/*
 * Is there room for one more denial? Demotions have the last part of the ring, and of denials the lowest level's give
 * way first. From a quarter on a user has so many at a level, until the daemon has taken the ring down again: a new
 * round, in which all begin anew.
 */
#define RECORDS_SHARE 256
u32 records_round;

static __always_inline bool records_have_room(struct tg_note *n, u32 user)
{
	u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
	u32 at = BOUND(n->to, TG_LEVELS) * TG_RECORD_USERS + BOUND(user, TG_RECORD_USERS), round;
	struct tg_record_share *own = &record_shares[BOUND(at, TG_LEVELS * TG_RECORD_USERS)];

	if (waiting > (n->to ? 3u : 2u) << 20)
		return false;
	if (waiting < 1u << 20) {
		/* odd: a round in which shares are counted */
		if (records_round & 1)
			__sync_fetch_and_add(&records_round, 1);
		return true;
	}
	round = records_round | 1;
	records_round = round;
	if (own->round != round) {
		own->round = round;
		own->records = 0;
	}
	return __sync_fetch_and_add(&own->records, 1) < RECORDS_SHARE;
}

/*
 * Begins a record: returns its place in the history, and its number in `id`; NULL if there is none. A model writes there what it alone
 * knows of its decision, before record_end(). It has a global function for that, as the callers' stacks are nearly full.
 */
static __always_inline struct tg_event *record_begin(u64 *id)
{
	struct tg_event *e;

	*id = __sync_fetch_and_add(&records, 1) + 1;
	e = record_at(*id);
	if (!e)
		return NULL;
	e->id = 0;
	e->profile = 0;
	e->ssid = e->tsid = e->tclass = 0;
	e->request = e->denied = 0;
	e->layer = e->why = 0;
	e->session = 0;
	return e;
}

/* Writes the rest of a record and sends it; its id. */
static __always_inline u64 record_end(struct tg_event *e, u64 id, struct tg_note *n)
{
	struct tg_subject *s = subject_current();
	struct task_struct *task = bpf_get_current_task_btf();

	task = CAST(struct task_struct, n->other ? audit_other.task : address(task));
	e->time = bpf_ktime_get_boot_ns();
	e->prev = n->other ? audit_other.prev : s ? s->cause : 0;
	e->start = task->start_boottime;
	e->seqno = policy.seqno;
	e->pid = task->tgid;
	e->tid = task->pid;
	e->uid = task->cred->uid.val;
	e->payer = payer_current();
	e->source = n->source;
	e->peer = n->peer;
	e->kind = n->kind;
	e->op = n->op;
	e->reason = n->reason;
	e->class = n->class;
	e->from = n->other ? audit_other.from : subject_level(s);
	e->to = n->to;
	e->object = n->object;
	e->family = n->family;
	__builtin_memset(e->addr, 0, sizeof(e->addr));
	if (n->family)
		__builtin_memcpy(e->addr, n->addr, sizeof(e->addr));
	e->port = n->port;
	e->detail = n->detail;
	e->path_len = 0;
	e->ino = 0;
	e->dev = 0;
	__builtin_memcpy(e->comm, task->comm, sizeof(e->comm));
	if (!n->family && n->inode) {
		struct inode *inode = CAST(struct inode, n->inode);

		e->ino = inode->i_ino;
		e->dev = inode->i_sb->s_dev;
	}
	if (n->op >= TG_OP_CHANGE_PROFILE && n->op <= TG_OP_CHANGE_HAT && !n->inode) {
		/* no file's: the name that is asked for */
		long len = n->dentry ?
				   bpf_probe_read_kernel_str(e->path, TG_PATH, (void *)n->dentry) :
				   0;

		e->path_len = len > 0 ? len - 1 : 0;
	} else if (n->text_len) {
		if (!bpf_probe_read_kernel(e->path, BOUND(n->text_len, TG_PATH), (void *)n->dentry))
			e->path_len = n->text_len;
	} else if (!n->family && n->dentry) {
		record_path(id, n->dentry);
	}
	e->id = id;
	if ((n->kind == TG_E_DENIED || n->kind == TG_E_WOULD) && !records_have_room(n, e->payer)) {
		__sync_fetch_and_add(&events_lost, 1);
		return id;
	}
	if (bpf_ringbuf_output(&events, e, sizeof(*e), 0))
		__sync_fetch_and_add(&events_lost, 1);
	return id;
}

/* Writes a record of which no model knows more than its note; its id. */
__noinline u64 audit(struct tg_note *n)
{
	struct tg_event *e;
	u64 id;

	if (!n)
		return 0;
	e = record_begin(&id);
	return e ? record_end(e, id, n) : 0;
}

/* Is a refusal only recorded? A permissive program is not permitted to change the system it runs on. */
static __always_inline bool denial_is_permissive(struct tg_subject *s, struct tg_note *n)
{
	return policy.permissive || (s && s->attrs & TG_PERMISSIVE && n->class != TG_C_SYSTEM);
}

/* Counts a refusal in its class, and says so in its note. */
static __always_inline void denial_count(struct tg_stats *st, struct tg_subject *s,
					 struct tg_note *n, bool permissive)
{
	n->kind = permissive ? TG_E_WOULD : TG_E_DENIED;
	n->to = subject_level(s);
	if (st)
		__sync_fetch_and_add(&st->denied, 1);
}

/*
 * The end of every refusal: counts it, records it, and gives the errno, or 0
 * where the policy or the program is permissive.
 */
static __always_inline int deny(struct tg_subject *s, struct tg_note *n, int err)
{
	struct tg_stats *st = stats_of(n->class);
	bool permissive = denial_is_permissive(s, n);

	if (policy.permissive == TG_LET_THROUGH)
		return 0;
	denial_count(st, s, n, permissive);
	audit(n);
	return permissive ? 0 : err;
}

#endif
