/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The SIDs of files. In their order: what was given to it when it was made, or to its filesystem's inodes by the task that
 * they are about; what the policy says of its filesystem (fs_use, genfscon); of those that keep labels, what
 * file_contexts say of its canonical path (lib/path_walk.h). It is remembered in the inode under the policy's number, with the
 * decision that was last made about it. inode_doinit_with_dentry() of security/selinux.
 */
#ifndef TIDEGATE_TE_INODE_SID_H
#define TIDEGATE_TE_INODE_SID_H

#include "lib/automaton_feed.h"
#include "core/given_key.h"
#include "core/secrets.h"
#include "te/class.h"
#include "te/server.h"
#include "te/verdict.h"

/*
 * A label remembered in an inode, and the hint: what was simply allowed last, and to which subject.
 * Several may write at once, so each of the two is sealed with what it holds for: of what two tasks
 * have written by halves nothing is read.
 */
struct te_inode {
	u64 sid;
	u64 sid_seal;  /* with the policy's number */
	u64 hint;      /* permissions, and in the upper half the policy's number */
	u64 hint_seal; /* with the source's SID and this one's: an object may be relabelled */
};

static __always_inline u64 te_seal(u64 word, u64 with)
{
	return word * secrets[1] ^ with * secrets[0];
}

struct {
	__uint(type, BPF_MAP_TYPE_INODE_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct te_inode);
} te_inodes SEC(".maps");

/* SIDs that no path gives back; as many as `given` has levels. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, struct tg_given_key);
	__type(value, u64);
} te_given SEC(".maps");

u64 te_given_used GLOBAL_OF(te); /* entries in it */

/*
 * Room for one more given SID. What can be refused is, before the last eighth is used: that is for what cannot, as creations that
 * are under way, pipes, and memory that is given out by descriptors. What is only recorded is no reason to refuse.
 */
static __always_inline bool te_has_room(void)
{
	return te_given_used + policy.given_max / 8 <= policy.given_max || policy.permissive;
}

static __always_inline int te_given_put(struct tg_given_key *key, u64 sid)
{
	if (!bpf_map_update_elem(&te_given, key, &sid, BPF_NOEXIST)) {
		__sync_fetch_and_add(&te_given_used, 1);
		return 0;
	}
	return bpf_map_update_elem(&te_given, key, &sid, BPF_EXIST) ? -ENOSPC : 0;
}

static __always_inline void te_given_forget(struct tg_given_key *key)
{
	if (!bpf_map_delete_elem(&te_given, key))
		__sync_fetch_and_sub(&te_given_used, 1);
}

/* In place of a SID: it cannot be known now; there is no path to it. */
#define TE_LATER (~1ull)
#define TE_NO_PATH (~2ull)

/* The place of a kind of file among an automaton's answers. */
static __always_inline u32 te_kind_of_mode(u32 mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return 1;
	case S_IFCHR:
		return 2;
	case S_IFBLK:
		return 3;
	case S_IFIFO:
		return 4;
	case S_IFLNK:
		return 5;
	case S_IFSOCK:
		return 6;
	}
	return 0;
}

/* What an automaton says of a path that has been walked; `skip`: components at its beginning that are not part of it. */
static __always_inline u32 te_read_path(u32 automaton, struct tg_scratch *w, u32 kind, u32 skip)
{
	u32 state = ARENA_PTR(struct tg_automaton, automaton)->start, n = w->n, i;

	if (n <= skip)
		state = automaton_step(automaton, state, '/');
	bpf_for(i, skip, n)
		state = automaton_feed_component(automaton, state,
						 w->up[BOUND(n - 1 - i, TG_DEPTH)]);
	return te_said(automaton, state, kind);
}

/* How a path is looked at. */
enum te_path {
	TE_CANONICAL,  /* through the mounts of the initial namespace */
	TE_WITHIN,     /* from its filesystem's root */
	TE_OF_PROCESS, /* the same, without a process's number at its beginning: /proc */
	TE_UNMOUNTED,  /* found: its filesystem is mounted nowhere in the initial namespace */
};

/* What to look for a path's SID by. */
struct te_looked {
	u32 p;
	u32 paths; /* the automaton of TE_WITHIN and TE_OF_PROCESS */
	u32 kind;
	u32 how;
};

/* Components at the beginning of a path from its filesystem's root that are not read: the root, and a process's number. */
static __always_inline u32 te_skipped(struct tg_scratch *w, u32 how)
{
	u8 first;

	if (how != TE_OF_PROCESS || w->n < 2)
		return 1;
	first = read_kernel_u64(
		address(CAST(struct dentry, w->up[BOUND(w->n - 2, TG_DEPTH)])->d_name.name));
	return first >= '1' && first <= '9' ? 2 : 1;
}

/* What the policy says of a path that has been walked. */
__noinline u64 te_said_of(struct te_looked *l __arg_nonnull, struct tg_scratch *w __arg_nonnull,
			  u32 skip)
{
	u32 said = 0, count = skip ? 1 : TE(l->p)->files_count, k;

	for (k = UNKNOWN_ZERO; k < count && MAY_LOOP; k++)
		said = te_over(te_read_path(skip ? l->paths : ARENA_PTR(u32, TE(l->p)->files)[k], w,
					    l->kind, skip),
			       said);
	return te_line_sid(l->p, said);
}

/* What the policy says of an object's path; TE_NO_ANSWER: nothing. */
__noinline u64 te_path_sid(u64 dentry, struct te_looked *l)
{
	struct super_block *sb =
		CAST(struct super_block, address(CAST(struct dentry, dentry)->d_sb));
	struct tg_scratch *w = scratch_get();
	u64 sid = TE_LATER, before, m;
	u32 try, skip;

	USES_ARENA();
	if (!w || !l) {
		if (w)
			scratch_put(w);
		return TE_LATER;
	}
	bpf_rcu_read_lock();
	bpf_for(try, 0, TG_TRIES) {
		before = path_settled();
		if (before & PATH_ODD)
			break;
		skip = 0;
		/* a dentry that nothing connects to the root, by handle, has none; nor what is too deep */
		sid = TE_NO_PATH;
		if (walk_filesystem(dentry, w) &&
		    w->up[BOUND(w->n - 1, TG_DEPTH)] == address(sb->s_root)) {
			if (l->how == TE_CANONICAL || l->how == TE_UNMOUNTED) {
				m = mount_of(address(sb), w);
				l->how = m ? TE_CANONICAL : TE_UNMOUNTED;
				if (m == MOUNT_LATER)
					sid = TE_LATER;
				else if (m && walk_mounts(m, w))
					sid = TE_NO_ANSWER;
			} else {
				skip = te_skipped(w, l->how);
				sid = TE_NO_ANSWER;
			}
			if (sid == TE_NO_ANSWER)
				sid = te_said_of(l, w, skip);
		}
		if (path_sequence() == before) {
			if (sid != TE_NO_PATH && !skip)
				mount_remember(w);
			break;
		}
		sid = TE_LATER;
		w = scratch_again(w);
		if (!w)
			break;
	}
	bpf_rcu_read_unlock();
	if (w)
		scratch_put(w);
	return sid;
}

/*
 * Where file_contexts are on the way to a path: what they say of it, and of all below it, follows from that alone. 0: it
 * cannot be known now.
 */
__noinline u64 te_path_state(u64 dentry)
{
	u32 p = te_tables(policy_seqno()), count, at, i, k, try;
	struct dentry *d = CAST(struct dentry, dentry);
	struct tg_scratch *w = scratch_get();
	u64 state = 0, before, m;

	USES_ARENA();
	if (!w || !p) {
		if (w)
			scratch_put(w);
		return 0;
	}
	bpf_rcu_read_lock();
	bpf_for(try, 0, TG_TRIES) {
		state = 0;
		before = path_settled();
		if (before & PATH_ODD || !walk_filesystem(dentry, w))
			break;
		m = mount_of(address(d->d_sb), w);
		if (m == MOUNT_LATER || (m && !walk_mounts(m, w)))
			break;
		/* where no path is looked at, or nothing said of any, each is like the other */
		state = 1;
		count = m ? TE(p)->files_count : 0;
		bpf_for(k, 0, count) {
			u32 automaton = ARENA_PTR(u32, TE(p)->files)[k];

			at = ARENA_PTR(struct tg_automaton, automaton)->start;
			bpf_for(i, 0, w->n)
				at = automaton_feed_component(automaton, at,
							      w->up[BOUND(w->n - 1 - i, TG_DEPTH)]);
			state = te_seal(state + at + 1, k + 1);
		}
		if (path_sequence() == before)
			break;
		state = 0;
		w = scratch_again(w);
		if (!w)
			break;
	}
	bpf_rcu_read_unlock();
	if (w)
		scratch_put(w);
	return state;
}

/* What the policy says of a filesystem's type; 0: nothing. */
__noinline u32 te_filesystem_of(u32 p, u64 type)
{
	u64 text = address(CAST(struct file_system_type, type)->name);
	char name[24] = {};
	u32 mask, i, at;
	long len;

	USES_ARENA();
	len = bpf_probe_read_kernel_str(name, sizeof(name), (void *)text);
	if (len <= 1)
		return 0;
	at = te_text_hash(text, len - 1);
	mask = TE(p)->filesystems_mask;
	bpf_for(i, 0, mask + 1) {
		u32 place = TE(p)->filesystems + ((at + i) & mask) * sizeof(struct te_filesystem);
		ARENA(struct te_filesystem) *f = ARENA_PTR(struct te_filesystem, place);

		if (!f->name[0])
			break;
		if (te_text_is(text, place, len - 1) && !f->name[(len - 1) & 31])
			return place;
	}
	return 0;
}

/* The SID of a filesystem itself. */
static __always_inline u64 te_super_sid(u32 p, struct super_block *sb)
{
	u32 f = te_filesystem_of(p, address(sb->s_type));

	return f ? ARENA_PTR(struct te_filesystem, f)->sid : te_initial(p, TE_SID_UNLABELED);
}

/* A file below /proc/PID is what its process is; TE_NO_ANSWER: it is not such a file. */
static __always_inline u64 te_process_sid(struct inode *inode)
{
	u64 at = address(inode) - bpf_core_field_offset(struct proc_inode, vfs_inode);
	struct proc_inode *pi = CAST(struct proc_inode, at);
	struct task_struct *task;
	u64 sid;

	if (!pi->pid)
		return TE_NO_ANSWER;
	task = bpf_task_from_pid(pi->pid->numbers[0].nr);
	if (!task)
		return te_initial_sid(TE_SID_UNLABELED);
	sid = te_sid_of(task);
	bpf_task_release(task);
	return sid ? sid : te_initial_sid(TE_SID_KERNEL);
}

#define TE_SID_FILE 5

/* The policy capability genfs_seclabel_symlinks: without it, links are what their filesystem is. */
#define TE_CAP_GENFS_LINKS 6

/* What the policy says of an object, by its filesystem and path. */
__noinline u64 te_place_sid(u32 p, u64 inode, u64 dentry)
{
	struct inode *i = CAST(struct inode, inode);
	struct te_looked l = { .p = p, .kind = te_kind_of_mode(i->i_mode) };
	u32 f = te_filesystem_of(p, address(i->i_sb->s_type)), behavior;
	u64 sid, own;

	USES_ARENA();
	if (!f)
		return te_initial(p, TE_SID_UNLABELED);
	own = ARENA_PTR(struct te_filesystem, f)->sid;
	behavior = ARENA_PTR(struct te_filesystem, f)->behavior;
	l.paths = ARENA_PTR(struct te_filesystem, f)->paths;
	if (behavior == TE_BY_GENFS) {
		if ((i->i_mode & S_IFMT) == S_IFLNK &&
		    !te_in(TE(p)->capabilities, TE_CAP_GENFS_LINKS))
			return own;
		l.how = i->i_sb->s_magic == PROC_MAGIC ? TE_OF_PROCESS : TE_WITHIN;
		sid = te_path_sid(dentry, &l);
		return sid == TE_NO_ANSWER || sid == TE_NO_LABEL ? own : sid;
	}
	/* whoever is governed has given it his own */
	if (behavior == TE_BY_TASK)
		return te_initial(p, TE_SID_KERNEL);
	sid = TE(p)->files ? te_path_sid(dentry, &l) : TE_NO_ANSWER;
	/* memory that the kernel gives out by descriptors has none, nor what only others have mounted */
	if (sid == TE_NO_PATH && behavior == TE_BY_TRANSITION &&
	    (l.how == TE_UNMOUNTED || i->i_sb->s_flags & SB_KERNMOUNT))
		return own;
	if (sid != TE_NO_ANSWER && sid != TE_NO_LABEL)
		return sid;
	/* what file_contexts do not name is what its filesystem makes of it */
	return behavior == TE_BY_TRANSITION ? own : te_initial(p, TE_SID_FILE);
}

/* Has it no name that could be the last one? Its label goes with it. */
static __always_inline bool te_is_nameless(u64 magic)
{
	return magic == PIPEFS_MAGIC || magic == SOCKFS_MAGIC || fs_is_anonymous(magic);
}

/* The SID that an object was given; 0: none. */
static __noinline u64 te_given_sid(struct inode *inode)
{
	struct tg_given_key key = given_key(inode);
	u64 *given = bpf_map_lookup_elem(&te_given, &key);

	return given ? *given : 0;
}

/* Remembers what was found under a policy. */
static __noinline int te_remember(struct inode *inode, u64 sid, u32 number)
{
	struct te_inode *memo = INODE_STORAGE_MADE(&te_inodes, inode);
	u64 given;

	if (!memo)
		return 0;
	memo->sid = sid;
	memo->sid_seal = te_seal(sid, number);
	/* it was given another one meanwhile */
	given = te_given_sid(inode);
	if (given && given != sid)
		memo->sid_seal = 0;
	return 0;
}

/* What an object was given, or what its place says; TE_NO_PATH: it has none. A process's file is its process's: `process`. */
static __always_inline u64 te_sought(u32 p, struct inode *inode, u64 dentry, bool *process)
{
	u64 sid = TE_NO_ANSWER;

	if (inode->i_sb->s_magic == PROC_MAGIC)
		sid = te_process_sid(inode);
	*process = sid != TE_NO_ANSWER;
	if (*process)
		return sid;
	sid = te_given_sid(inode);
	if (sid)
		return sid;
	return fs_is_anonymous(inode->i_sb->s_magic) ? te_initial(p, TE_SID_KERNEL) :
						       te_place_sid(p, address(inode), dentry);
}

/* The SID of an object, looked for; TE_LATER: it cannot be known now. */
__noinline u64 te_inode_find(struct inode *inode __arg_trusted, u64 dentry)
{
	u32 number = policy_seqno(), p = te_tables(number);
	bool process;
	u64 sid;

	if (!p)
		return TE_UNGOVERNED;
	sid = te_sought(p, inode, dentry, &process);
	/* what has no path now may have one in a moment, and for others it has */
	if (sid == TE_NO_PATH)
		return te_initial(p, TE_SID_UNLABELED);
	if (!process && sid != TE_LATER && policy_seqno() == number)
		te_remember(inode, sid, number);
	return sid;
}

/* The SID of an object known only by address; nothing is remembered. */
__noinline u64 te_inode_peek(u64 inode, u64 dentry)
{
	u32 p = te_tables(policy_seqno());
	bool process;
	u64 sid;

	if (!p)
		return TE_UNGOVERNED;
	sid = te_sought(p, CAST(struct inode, inode), dentry, &process);
	return sid == TE_NO_PATH ? te_initial(p, TE_SID_UNLABELED) : sid;
}

/* The SID that is remembered; TE_NO_ANSWER: none that holds. */
static __always_inline u64 te_remembered(struct te_inode *memo)
{
	u64 sid;

	if (!memo)
		return TE_NO_ANSWER;
	sid = READ_ONCE(memo->sid);
	return READ_ONCE(memo->sid_seal) == te_seal(sid, policy_seqno()) ? sid : TE_NO_ANSWER;
}

static __always_inline u64 te_both(u64 source, u64 target)
{
	return source ^ (target << 21 | target >> 43);
}

/*
 * Is this simply allowed, by what was last decided about it? A hint holds for the policy with its number, for the source that it
 * was decided for, and for the object's label as it is now: te_remembered() has that only of the policy in force, a label that
 * is given replaces it, and of one that holds no more (TE_NO_ANSWER) there is no hint. So each of a reload, a transition and a
 * relabelling ends it, whoever still writes to it.
 */
static __always_inline bool te_is_hinted(struct te_inode *memo, u64 source, u64 target, u32 request)
{
	u64 hint;

	if (!memo)
		return false;
	hint = READ_ONCE(memo->hint);
	return hint >> 32 == policy_seqno() && !(request & ~(u32)hint) &&
	       READ_ONCE(memo->hint_seal) == te_seal(hint, te_both(source, target));
}

static __always_inline void te_hint(struct te_inode *memo, u64 source, u64 target,
				    struct te_av_decision *k)
{
	u64 hint = (u64)k->number << 32 | (k->allow & ~k->auditallow);

	memo->hint = hint;
	memo->hint_seal = te_seal(hint, te_both(source, target));
}

static __always_inline u64 te_inode_sid(struct inode *inode, u64 dentry)
{
	u64 sid = te_remembered(bpf_inode_storage_get(&te_inodes, inode, 0, 0));

	return sid != TE_NO_ANSWER ? sid : te_inode_find(inode, dentry);
}

/* Whether a file can be given a SID: there is room, and they have not been written down for the last time. */
static __always_inline bool te_gives(void)
{
	return te_has_room() && (!given_closed || policy.permissive);
}

/* It cannot: ENOSPC, and the record of it. */
static __noinline int te_full(struct tg_note *n)
{
	if (!n)
		return -ENOSPC;
	n->reason = TG_R_TABLE_FULL;
	n->source = ~0u;
	return deny(NULL, n, -ENOSPC);
}

/*
 * What cannot be refused any more has no SID: the task that made it ends. Where refusals are only
 * recorded it has what its place says.
 */
static __always_inline void te_not_given(void)
{
	__sync_fetch_and_add(&labels_failed, 1);
	if (!policy.permissive)
		bpf_send_signal(9);
}

/* Gives an object a SID for good. */
__noinline int te_give(struct inode *inode __arg_trusted, u64 sid)
{
	struct tg_given_key key;
	struct te_inode *memo;
	u32 number = policy_seqno();

	if (!inode)
		return -EACCES;
	key = given_key(inode);
	if (te_given_put(&key, sid))
		return -ENOSPC;
	memo = INODE_STORAGE_MADE(&te_inodes, inode);
	if (!memo)
		return -ENOMEM;
	/* it has been nobody's so far, and no hint was about it */
	memo->hint = 0;
	memo->sid = sid;
	memo->sid_seal = te_seal(sid, number);
	return 0;
}

/*
 * Is all of this simply allowed to the caller, by what was last decided about the object? Counted
 * as a question only if it is.
 */
static __always_inline bool te_inode_is_hinted(struct inode *inode, u32 request)
{
	struct te_inode *memo = bpf_inode_storage_get(&te_inodes, inode, 0, 0);
	struct tg_stats *st;

	if (!te_is_hinted(memo, te_me().sid, te_remembered(memo), request))
		return false;
	st = stats_of(TG_C_TE);
	if (st) {
		st->queries++;
		st->hint++;
	}
	return true;
}

/* May the caller do this to an object? */
__noinline int te_inode_has_perm(struct inode *inode __arg_trusted, u64 dentry, u32 request,
				 struct tg_note *n)
{
	struct te_who who = te_met();
	struct te_query q = { .source = who.sid, .request = request };
	struct te_inode *memo;
	struct te_av_decision k;
	struct tg_stats *st;

	if (!inode || !n || !who.subject)
		return 0;
	st = stats_of(TG_C_TE);
	if (st)
		st->queries++;
	memo = bpf_inode_storage_get(&te_inodes, inode, 0, 0);
	q.target = te_remembered(memo);
	if (te_is_hinted(memo, q.source, q.target, request)) {
		if (st)
			st->hint++;
		return 0;
	}
	if (q.target == TE_NO_ANSWER)
		q.target = te_inode_find(inode, dentry);
	n->dentry = dentry;
	n->inode = address(inode);
	q.class = te_class_of_inode(n->inode);
	if (q.target == TE_LATER)
		return te_no_decision(&q, n);
	if (!te_avc_lookup(&q, &k, st))
		return te_no_decision(&q, n);
	if (q.request & (~k.allow | k.auditallow))
		return te_record(&q, &k, n);
	/* only of a label that is remembered itself: a process's file is another's in a moment */
	if (memo && te_remembered(memo) == q.target)
		te_hint(memo, q.source, q.target, &k);
	return 0;
}

static __always_inline int te_may_inode(struct inode *inode, u64 dentry, u32 request,
					struct tg_note *n)
{
	return verdict_of(te_inode_has_perm(inode, dentry, request, n));
}

#endif
