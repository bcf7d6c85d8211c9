/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the profile model: executions, and the profiles that confine tasks after them.
 * profile_transition() and find_attach() of security/apparmor/domain.c.
 */
#ifndef TIDEGATE_PROFILE_EXEC_H
#define TIDEGATE_PROFILE_EXEC_H

#include "core/ps.h"
#include "profile/file.h"

/* The profile of each thread, by its id. */
SEC("iter/task")
int ps_profile_id(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct tg_confined *c;

	if (!task)
		return 0;
	c = profile_subjects_task(task);
	return ps_write_model(ctx, task, c ? c->profile : 0);
}

/* A child is confined as its parent is from its first instant, or is not born. */
SEC("lsm/task_alloc")
int BPF_PROG(profile_task_alloc, struct task_struct *task)
{
	struct tg_confined *c = profile_subjects_current(), *child;

	if (!c || !(c->profile || c->onexec))
		return 0;
	child = profile_subjects_made(task);
	if (!child)
		return -ENOMEM;
	child->profile = c->profile;
	child->learning = c->learning;
	child->changed = c->changed;
	child->onexec = c->onexec;
	child->previous = c->previous;
	child->previous_learning = c->previous_learning;
	child->previous_changed = c->previous_changed;
	child->token = c->token;
	/* as confined_at() writes them, the other way about */
	child->seqno = READ_ONCE(c->seqno);
	in_order();
	child->at = c->at;
	return 0;
}

SEC("lsm/task_free")
int BPF_PROG(profile_task_free, struct task_struct *task)
{
	confined_free(address(task));
	return 0;
}

#define EXEC_REFUSED (~0u)

/* Where a confined task's execution leads; 0: to no profile. EXEC_REFUSED: nowhere. */
static __always_inline u32 exec_target(struct tg_name *name, struct tg_who *who, u32 exec,
				       bool *same)
{
	struct tg_profile __arena *p = ARENA_PTR(struct tg_profile, who->profile);
	long found;
	u32 to = 0;

	*same = false;
	if ((exec & EXEC_TYPE) == EXEC_TABLE) {
		to = ARENA_PTR(u32, p->targets)[exec & EXEC_INDEX];
	} else if ((exec & EXEC_TYPE) == EXEC_NAME) {
		name->table = exec & EXEC_CHILD ? p->children : image_of(who->number)->first;
		found = name_profile(name);
		if (found < 0)
			return EXEC_REFUSED;
		to = found;
	}
	if (to)
		return to;
	if (exec & EXEC_INHERIT) {
		*same = true;
		return who->profile;
	}
	return exec & EXEC_UNCONFINED ? 0 : EXEC_REFUSED;
}

/* A task that nothing confines comes to a profile. */
static __always_inline int exec_leads(struct tg_confined *c, u64 id)
{
	if (!c)
		c = profile_subjects_made(bpf_get_current_task_btf());
	if (!c)
		return -ENOMEM;
	c->exec = id;
	c->exec_learning = 0;
	c->exec_changed = 0;
	c->executing = 1;
	return 0;
}

/* Of a task that nothing confines: the profile that is for the program. */
static __noinline int exec_attach(struct linux_binprm *bprm, struct tg_confined *c)
{
	struct tg_name name = {};
	u32 number, try;
	long found;

	for (try = 0; try < PROFILE_TRIES; try++) {
		number = policy_seqno();
		name.dentry = address(bprm->file->f_path.dentry);
		name.mnt = address(bprm->file->f_path.mnt);
		name.number = number;
		name.table = image_of(number)->first;
		found = name_profile(&name);
		if (policy_seqno() != number)
			continue;
		if (found == NAME_LATER)
			return -EAGAIN;
		/* what has no path is nobody's */
		if (found < 0)
			found = 0;
		if (!found) {
			if (c)
				c->executing = 0;
			return 0;
		}
		return exec_leads(c, ARENA_PTR(struct tg_profile, found)->id);
	}
	return -EAGAIN;
}

/* Is the tracer of the current task confined itself? It goes on tracing what the task becomes. */
static __noinline bool tracer_is_confined(void)
{
	struct task_struct *me = bpf_get_current_task_btf(), *tracer;
	struct tg_confined *c;
	bool confined;

	if (!me->ptrace)
		return false;
	tracer = bpf_task_from_pid(me->parent->pid);
	if (!tracer)
		return true;
	c = profile_subjects_task(tracer);
	confined = c && c->profile;
	bpf_task_release(tracer);
	return confined;
}

/*
 * Would what the task was change what it becomes? Linux's personality outlives an execution, too, which BPF
 * cannot clear.
 */
static __always_inline bool may_not_change(void)
{
	return bpf_get_current_task_btf()->personality & PERSONALITY_UNSAFE || tracer_is_confined();
}

#define EXEC_SCRUBBED 1
#define EXEC_NOT_CONFINED 2

#define EXEC_STAYS 1

/* A confined task's execution leads to a profile, or to none; EXEC_STAYS: it does not come to be. */
static __noinline int exec_goes(struct linux_binprm *bprm, struct tg_who *who, u32 to,
				struct tg_note *note)
{
	bool complains = ARENA_PTR(struct tg_profile, who->profile)->mode == TG_MODE_COMPLAIN;
	struct tg_confined *c = who->subject;
	int err;

	if (bprm->unsafe & LSM_UNSAFE_NO_NEW_PRIVS && to != who->profile) {
		if (!complains)
			return profile_refuse(MAY_EXEC_, TG_R_NO_PROFILE, -EPERM, note);
		note->reason = TG_R_NO_PROFILE;
		err = verdict_of(
			profile_record(PROFILE_COMPLAIN, MAY_EXEC_, MAY_EXEC_, -EPERM, note));
		return err ? err : EXEC_STAYS;
	}
	if (to != who->profile && may_not_change())
		return profile_refuse(MAY_EXEC_, TG_R_NO_PROFILE, -EPERM, note);
	c->exec = to ? ARENA_PTR(struct tg_profile, to)->id : 0;
	c->exec_changed = to != who->profile;
	c->executing = 1;
	return 0;
}

/* Of a confined one: as the rule that lets it execute says. */
static __noinline int exec_confined(struct linux_binprm *bprm, struct tg_confined *c,
				    struct tg_name *name)
{
	struct inode *inode = bprm->file->f_inode;
	u64 dentry = address(bprm->file->f_path.dentry), mnt = address(bprm->file->f_path.mnt);
	struct tg_note note = {
		.op = TG_OP_EXEC, .class = TG_C_EXEC, .dentry = dentry, .inode = address(inode)
	};
	u32 owner = owner_by(inode->i_uid.val, mnt), try, to;
	struct tg_perms perms;
	struct tg_who who;
	bool same, complains;
	long state;
	int err;

	for (try = 0; try < PROFILE_TRIES; try++) {
		who = who_of(c);
		if (!who.profile)
			return EXEC_NOT_CONFINED;
		if (is_gone(&who, dentry))
			return profile_refuse(MAY_EXEC_, TG_R_DISCONNECTED, -ENOENT, &note);
		name_for(name, &who, dentry, mnt, false);
		state = name_state(name);
		if (policy_seqno() != who.number)
			continue;
		if (state < 0)
			return name_refuse(state, MAY_EXEC_, &note);
		perms = perms_by(name->table, state, owner);
		same = true;
		to = who.profile;
		if (perms.allow & MAY_EXEC_) {
			to = exec_target(name, &who, perms.exec, &same);
			if (to == EXEC_REFUSED) {
				perms.allow &= ~MAY_EXEC_;
				note.reason = TG_R_NO_PROFILE;
				same = true;
			}
		}
		if (policy_seqno() != who.number)
			continue;
		complains = ARENA_PTR(struct tg_profile, who.profile)->mode == TG_MODE_COMPLAIN;
		c->exec_learning = complains && (c->learning || !(perms.allow & MAY_EXEC_));
		if (c->exec_learning) {
			perms = (struct tg_perms){ .exec = EXEC_UNSAFE };
			to = who.profile;
		}
		err = profile_decide(&who, perms, MAY_EXEC_, -EACCES, &note);
		if (err)
			return err;
		err = exec_goes(bprm, &who, to, &note);
		if (err)
			return err < 0 ? err : 0;
		return !same && !(perms.exec & EXEC_UNSAFE) ? EXEC_SCRUBBED : 0;
	}
	return profile_refuse(MAY_EXEC_, TG_R_BUSY, -EAGAIN, &note);
}

/* Of one that nothing confines, and for which a profile is asked. */
static __always_inline int exec_asked(struct tg_confined *c, u64 id)
{
	return profile_by_id(policy_seqno(), id) ? exec_leads(c, id) : -EACCES;
}

/*
 * Of one that asked for what it is to be: the rule on the program leads on to one for the profile's name.
 * profile_onexec() of security/apparmor/domain.c.
 */
static __noinline int exec_onexec(struct linux_binprm *bprm, struct tg_confined *c,
				  struct tg_name *name)
{
	u64 dentry = address(bprm->file->f_path.dentry), mnt = address(bprm->file->f_path.mnt);
	struct inode *inode = bprm->file->f_inode;
	struct tg_note note = { .op = TG_OP_CHANGE_ONEXEC,
				.class = TG_C_EXEC,
				.dentry = dentry,
				.inode = address(inode) };
	struct tg_perms perms;
	struct tg_who who;
	long state;
	u32 try, to;
	int err;

	for (try = 0; try < PROFILE_TRIES; try++) {
		who = who_of(c);
		if (!who.profile && c->onexec != TG_UNCONFINED)
			return exec_asked(c, c->onexec);
		if (!who.profile) {
			c->exec = 0;
			c->exec_learning = c->exec_changed = 0;
			c->executing = 1;
			return 0;
		}
		to = c->onexec == TG_UNCONFINED ? 0 : profile_by_id(who.number, c->onexec);
		if (!to && c->onexec != TG_UNCONFINED)
			return profile_refuse(MAY_ONEXEC_, TG_R_NO_PROFILE, -EACCES, &note);
		if (is_gone(&who, dentry))
			return profile_refuse(MAY_ONEXEC_, TG_R_DISCONNECTED, -ENOENT, &note);
		name_for(name, &who, dentry, mnt, false);
		state = name_state(name);
		if (policy_seqno() != who.number)
			continue;
		if (state < 0)
			return name_refuse(state, MAY_ONEXEC_, &note);
		perms = perms_by(name->table, state, owner_by(inode->i_uid.val, mnt));
		if (perms.allow & MAY_ONEXEC_) {
			state = profile_named(name->table, profile_step(name->table, state, 0), to);
			perms = perms_by(name->table, state, OWNER_SELF);
		}
		if (policy_seqno() != who.number)
			continue;
		err = profile_decide(&who, perms, MAY_ONEXEC_, -EACCES, &note);
		if (!err)
			err = exec_goes(bprm, &who, to, &note);
		if (err)
			return err < 0 ? err : 0;
		c->exec_learning = 0;
		return !(perms.allow & MAY_ONEXEC_) || perms.exec & EXEC_UNSAFE ? 0 : EXEC_SCRUBBED;
	}
	return profile_refuse(MAY_ONEXEC_, TG_R_BUSY, -EAGAIN, &note);
}

SEC("lsm/bprm_creds_for_exec")
int BPF_PROG(profile_bprm_creds_for_exec, struct linux_binprm *bprm)
{
	struct tg_confined *c = profile_subjects_current();
	int ret = EXEC_NOT_CONFINED;
	struct tg_text *room;

	if (c)
		c->executing = 0;
	if (!c || !c->profile) {
		u64 *asked =
			bpf_task_storage_get(&profile_onexec, bpf_get_current_task_btf(), 0, 0);

		if (asked)
			return exec_asked(c, *asked);
	}
	if (c) {
		room = text_get();
		if (!room)
			return -EAGAIN;
		ret = c->onexec ? exec_onexec(bprm, c, &room->name) :
				  exec_confined(bprm, c, &room->name);
		text_put(room);
	}
	if (ret == EXEC_NOT_CONFINED)
		return exec_attach(bprm, c);
	if (ret <= 0)
		return ret;
	bpf_bprm_opts_set(bprm, BPF_F_BPRM_SECUREEXEC);
	return 0;
}

SEC("lsm/bprm_committing_creds")
int BPF_PROG(profile_bprm_committing_creds, struct linux_binprm *bprm)
{
	struct tg_confined *c = profile_subjects_current();

	/*
	 * a task that is confined has not asked, nor has it kept what it asked for before that
	 * (self.h)
	 */
	if (!c || !c->at)
		bpf_task_storage_delete(&profile_onexec, bpf_get_current_task_btf());
	if (!c)
		return 0;
	if (c->executing) {
		bool comes = c->profile != c->exec;

		c->changed = c->exec_changed;
		c->profile = c->exec;
		c->learning = c->exec_learning;
		/* last: what is found from here on is the new one's */
		if (comes)
			c->seqno = 0;
	}
	c->executing = 0;
	c->onexec = c->previous = c->token = 0;
	return 0;
}

#endif
