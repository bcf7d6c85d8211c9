/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the profile model: other processes. Both sides' profiles have to
 * allow it, each by the other's name: security/apparmor/{ipc,task}.c.
 */
#ifndef TIDEGATE_PROFILE_TASK_H
#define TIDEGATE_PROFILE_TASK_H

#include "lib/seqcache.h"
#include "profile/capable.h"

#define CAP_SYS_PTRACE_ 19
#define CAP_MAC_ADMIN_ 33

/* What one of two processes asks of the other: the permission, and the other's for being asked. */
struct tg_between {
	u32 actor; /* their struct tg_profile, 0: not confined */
	u32 object;
	u32 number; /* of the policy */
	u32 class;
	u32 signal;
	u32 request;
	u32 suffered;
	u32 peer; /* pid of the task that is not the current one */
	u8 op;
	u8 plain; /* found: both allow it, and nothing is to be recorded */
	u8 pad[2];
};

/*
 * What two profiles let be done was plainly allowed. The newest, each where it hashes to; odd while it is written.
 */
struct tg_agreed {
	u32 version;
	u32 number; /* of the policy */
	u32 actor;
	u32 object;
	u64 what;
};

#define TG_AGREED_BITS 8
struct tg_agreed agreed[1 << TG_AGREED_BITS] GLOBAL_OF(profile);

static __always_inline u64 between_what(struct tg_between *b)
{
	return (u64)b->class << 56 | (u64)b->signal << 48 | (u64)b->suffered << 24 | b->request;
}

static __always_inline struct tg_agreed *agreed_entry(struct tg_between *b)
{
	u64 hash = ((u64)b->actor << 32 ^ b->object ^ between_what(b)) * 0x9e3779b97f4a7c15ull;

	return &agreed[BOUND(hash >> (64 - TG_AGREED_BITS), 1 << TG_AGREED_BITS)];
}

static __always_inline bool agreed_recall(struct tg_between *b)
{
	struct tg_agreed *a = agreed_entry(b);
	u32 version = entry_version(&a->version);

	return a->number == b->number && a->actor == b->actor && a->object == b->object &&
	       a->what == between_what(b) && entry_is_whole(&a->version, version);
}

static __always_inline void agreed_remember(struct tg_between *b)
{
	struct tg_agreed *a = agreed_entry(b);

	if (!entry_begin(&a->version))
		return;
	a->number = b->number;
	a->actor = b->actor;
	a->object = b->object;
	a->what = between_what(b);
	entry_end(&a->version);
}

/* The profile of another task. Its entry is its own to bring up to date. */
static __always_inline u32 confined_of(struct tg_confined *c, u32 number)
{
	if (!c)
		return 0;
	if (READ_ONCE(c->seqno) != number)
		return profile_by_id(number, c->profile);
	in_order();
	return c->at;
}

/* What one of the two profiles says. */
__noinline int peer_says(u32 profile, u32 peer, struct tg_between *b, u32 request)
{
	struct tg_profile __arena *p = ARENA_PTR(struct tg_profile, profile);
	struct tg_note note = { .class = TG_C_TASK };
	struct tg_perms perms = {};
	u32 state, table;

	USES_ARENA();
	if (!b)
		return -EACCES;
	if (!confines(profile))
		return 0;
	note.op = b->op;
	note.peer = b->peer;
	note.detail = b->signal;
	state = class_state(profile, b->class);
	table = p->policy.table;
	if (state) {
		if (b->class == PROFILE_CLASS_SIGNAL)
			state = profile_step(table, state, b->signal);
		perms = perms_of(profile_perms(table, profile_named(table, state, peer), false));
	} else if (b->class == PROFILE_CLASS_PTRACE && profile == b->actor && peer != profile) {
		/* a profile that does not know of tracing: by the capability */
		if (p->caps_allow & 1ull << CAP_SYS_PTRACE_)
			return 0;
	} else {
		return 0;
	}
	if (!is_plain(p, perms.allow, perms.deny, perms.audit, request))
		b->plain = 0;
	return profile_says(profile, perms, request, -EACCES, &note);
}

/* Do both let it? */
static __always_inline int both_say(struct tg_between *b)
{
	int err = peer_says(b->actor, b->object, b, b->request);

	/* a task that is not confined may do it to any other, but for signals */
	if (b->class == PROFILE_CLASS_PTRACE && !confines(b->actor))
		return err;
	return err ? err : peer_says(b->object, b->actor, b, b->suffered);
}

static __always_inline int between(struct task_struct *task, bool acts, u32 class, u32 signal,
				   u32 request, u32 suffered, u8 op)
{
	struct tg_confined *mine = profile_subjects_current(), *other;
	struct tg_between b = {};
	u32 try, me, it;
	bool any = false;
	int err;

	other = profile_subjects_task(task);
	if (mine)
		any = true;
	/* keeps the compiler from joining the two pointers in one test */
	barrier_var(any);
	if (other)
		any = true;
	if (!any)
		return 0;
	b.class = class;
	b.signal = signal;
	b.request = request;
	b.suffered = suffered;
	b.op = op;
	b.peer = task->tgid;
	for (try = 0; try < PROFILE_TRIES; try++) {
		b.number = policy_seqno();
		me = mine ? confined_at(mine, b.number) : 0;
		it = confined_of(other, b.number);
		if (!me && !it)
			return 0;
		b.actor = acts ? me : it;
		b.object = acts ? it : me;
		if (agreed_recall(&b))
			return 0;
		b.plain = 1;
		err = both_say(&b);
		if (policy_seqno() != b.number)
			continue;
		if (b.plain)
			agreed_remember(&b);
		return verdict_of(err);
	}
	return -EAGAIN;
}

SEC("lsm/task_kill")
int BPF_PROG(profile_task_kill, struct task_struct *target, struct kernel_siginfo *info, int sig)
{
	/* security/apparmor/include/sig_names.h: 0 asks whether it is there, the last are real-time ones */
	u32 signal = sig == 0 ? 35 : sig >= 32 ? sig - 32 + 128 : sig;

	return between(target, true, PROFILE_CLASS_SIGNAL, signal, MAY_WRITE_, MAY_READ_,
		       TG_OP_SIGNAL);
}

SEC("lsm/ptrace_access_check")
int BPF_PROG(profile_ptrace_access_check, struct task_struct *child, unsigned int mode)
{
	u32 request = mode & PTRACE_MODE_READ_FLAG ? MAY_READ_ : MAY_WRITE_;

	return between(child, true, PROFILE_CLASS_PTRACE, 0, request, request << 2, TG_OP_PTRACE);
}

SEC("lsm/ptrace_traceme")
int BPF_PROG(profile_ptrace_traceme, struct task_struct *parent)
{
	return between(parent, false, PROFILE_CLASS_PTRACE, 0, MAY_WRITE_, MAY_WRITE_ << 2,
		       TG_OP_PTRACE);
}

/*
 * A task that is confined does not get at the monitor by bpf(2): what is loaded there, by its path
 * or its number, takes the capability mac_admin, as AppArmor's policy does.
 */
SEC("lsm/bpf")
int BPF_PROG(profile_bpf, int cmd)
{
	struct tg_note note = { .op = TG_OP_BPF, .class = TG_C_SYSTEM };
	struct tg_who who;

	if (cmd != BPF_OBJ_GET_CMD && cmd != BPF_PROG_BY_ID_CMD && cmd != BPF_MAP_BY_ID_CMD &&
	    cmd != BPF_LINK_BY_ID_CMD)
		return 0;
	who = who_is_confined();
	if (!who.profile ||
	    ARENA_PTR(struct tg_profile, who.profile)->caps_allow & 1ull << CAP_MAC_ADMIN_)
		return 0;
	return profile_refuse(0, TG_R_PROFILE, -EPERM, &note);
}

#endif
