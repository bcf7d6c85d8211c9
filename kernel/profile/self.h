/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the profile model: tasks that change what confines them, by what they write to
 * /proc/PID/attr/{current,exec}: do_setattr() of security/apparmor/lsm.c, aa_change_profile()
 * and aa_change_hat() of security/apparmor/domain.c. So unmodified programs of libapparmor do.
 */
#ifndef TIDEGATE_PROFILE_SELF_H
#define TIDEGATE_PROFILE_SELF_H

#include "profile/exec.h"

#define HATS 16 /* names of hats in one request */

/* Set by user space: the kernel's own AppArmor is at work, too. */
u32 apparmor_active GLOBAL_OF(profile);

/* The room for texts has the request's words from its first byte on, each ended by a 0. */
#define WORD_BYTE(t, i) ((t)->text[BOUND(i, TG_TEXT)])

/* Where what follows the word begins, if the text begins with it and a space; 0: it does not. */
static __always_inline u32 text_after(struct tg_text *t, const char *word, u32 len)
{
	u32 i;

#pragma unroll
	for (i = 0; i < len; i++) {
		if (t->text[i] != word[i])
			return 0;
	}
	return t->text[len] == ' ' ? len + 1 : 0;
}

#define TEXT_AFTER(t, word) text_after(t, word, sizeof(word) - 1)

/* The first byte from here on that is no space. */
__noinline u32 text_skip(struct tg_text *t, u32 first)
{
	if (!t)
		return 0;
	while (WORD_BYTE(t, first) == ' ' && MAY_LOOP)
		first++;
	return BOUND(first, TG_TEXT);
}

static __always_inline bool is_space(u8 byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Takes white space away from the end of the first words. */
__noinline int text_trim(struct tg_text *t)
{
	u32 end;

	if (!t)
		return 0;
	for (end = UNKNOWN_ZERO; end < t->len && WORD_BYTE(t, end); end++) {
		if (!MAY_LOOP)
			return 0;
	}
	while (end && is_space(WORD_BYTE(t, end - 1))) {
		if (!MAY_LOOP)
			return 0;
		if (end == t->len)
			t->len--;
		end--;
		WORD_BYTE(t, end) = 0;
	}
	return 0;
}

/* A further byte of a profile's name, in its id: crates/monitor/src/image.rs. */
#define ID_OF_NOTHING 0xcbf29ce484222325ull
static __always_inline u64 id_add(u64 id, u8 byte)
{
	return (id ^ byte) * 0x100000001b3ull;
}

/* The id of the name that begins at this byte. */
__noinline u64 text_id(struct tg_text *t, u32 first, u64 id)
{
	u32 i;

	if (!t)
		return 0;
	for (i = first; i < TG_TEXT / 2; i++) {
		u8 byte = WORD_BYTE(t, i);

		if (!byte || !MAY_LOOP)
			break;
		id = id_add(id, byte);
	}
	return id;
}

static __always_inline bool text_is_unconfined(struct tg_text *t, u32 first)
{
	static const char word[] = "unconfined";
	u32 i;

	for (i = 0; i < sizeof(word); i++) {
		if (WORD_BYTE(t, first + i) != word[i])
			return false;
	}
	return true;
}

/* What no_new_privs and a tracer forbid, they forbid in any mode. */
static __always_inline int change_forbid(u32 request, struct tg_note *note)
{
	note->reason = TG_R_NO_PROFILE;
	return verdict_of(profile_record(PROFILE_REFUSED, request, request, -EPERM, note));
}

/* What cannot come to be, whatever the rules say; in complain mode it is let through, and does not. */
static __always_inline int change_refuse(struct tg_who *who, u32 request, u8 reason, int err,
					 struct tg_note *note)
{
	bool complains = ARENA_PTR(struct tg_profile, who->profile)->mode == TG_MODE_COMPLAIN;

	note->reason = reason;
	return verdict_of(profile_record(complains ? PROFILE_COMPLAIN : PROFILE_REFUSED, request,
					 request, err, note));
}

static __always_inline bool has_no_new_privs(void)
{
	return bpf_get_current_task_btf()->atomic_flags & PFA_NO_NEW_PRIVS_BIT;
}

/*
 * The workers of io_uring are tasks of their own, which were born with what confined this one then: they would go
 * on under that.
 */
static __always_inline bool has_io_uring(void)
{
	return bpf_get_current_task_btf()->io_uring;
}

/* A task that guesses at a token is killed, in complain mode, too. */
static __always_inline int hat_kill(struct tg_who *who, struct tg_note *note)
{
	if (!policy.permissive)
		bpf_send_signal(9);
	return change_refuse(who, MAY_CHANGE_HAT_, TG_R_PROFILE, -EACCES, note);
}

/* The profile of the name, `unconfined`, or none; now, or at the next execution. */
__noinline int change_profile(struct tg_text *t, u32 first, bool at_exec, bool test)
{
	struct tg_note note = { .op = at_exec ? TG_OP_CHANGE_ONEXEC : TG_OP_CHANGE_PROFILE,
				.class = TG_C_EXEC };
	u32 request = at_exec ? MAY_ONEXEC_ : MAY_CHANGE_PROFILE_, try;
	struct tg_confined *c = profile_subjects_current();
	struct tg_who who;
	u64 id;

	if (!t)
		return -EACCES;
	first = text_skip(t, first);
	if (!WORD_BYTE(t, first))
		return -EINVAL;
	note.dentry = address(t->text) + first;
	id = text_id(t, first, ID_OF_NOTHING);
	for (try = 0; try < PROFILE_TRIES; try++) {
		struct tg_perms perms = {};
		bool missing;
		u32 number, to;
		int err = 0;

		who = who_of(c);
		number = c ? who.number : policy_seqno();
		to = profile_by_id(number, id);
		missing = !to && !text_is_unconfined(t, first);
		if (!to && !who.profile && (missing || apparmor_active))
			return -ENOENT;
		if (missing && ARENA_PTR(struct tg_profile, who.profile)->mode != TG_MODE_COMPLAIN)
			return profile_refuse(request, TG_R_NO_PROFILE, -ENOENT, &note);
		if (who.profile) {
			struct tg_profile __arena *p = ARENA_PTR(struct tg_profile, who.profile);

			if (!missing)
				perms = perms_by(p->file.table,
						 profile_named(p->file.table, p->file.start, to),
						 OWNER_SELF);
			if (policy_seqno() != number)
				continue;
			err = profile_decide(&who, perms, request, -EACCES, &note);
			if (!err && tracer_is_confined() && p->mode != TG_MODE_COMPLAIN)
				err = change_refuse(&who, request, TG_R_NO_PROFILE, -EPERM, &note);
		}
		if (policy_seqno() != number)
			continue;
		if (err || test)
			return err;
		if (who.profile && has_no_new_privs() && (missing || to != who.profile))
			return change_forbid(request, &note);
		if (!at_exec && has_io_uring())
			return -EBUSY;
		c = profile_subjects_made(bpf_get_current_task_btf());
		if (!c)
			return -ENOMEM;
		if (at_exec) {
			/* a null profile's program is executed as the rules say */
			c->onexec = missing ? 0 : to ? id : TG_UNCONFINED;
			return 0;
		}
		c->learning = missing;
		if (!missing) {
			bpf_task_storage_delete(&profile_onexec, bpf_get_current_task_btf());
			c->profile = to ? id : 0;
			c->changed = who.profile && to != who.profile;
		}
		if (!missing && !confines(to))
			c->onexec = c->previous = c->token = 0;
		c->seqno = 0;
		return 0;
	}
	return -EAGAIN;
}

/* The first of the hats that the profile has: its struct tg_profile; 0: none; EXEC_REFUSED: that is no hat. */
__noinline u32 hat_find(struct tg_text *t, u32 first, u32 number, u32 root, bool complains)
{
	u32 i, found, hats = UNKNOWN_ZERO;
	u64 base, id;

	USES_ARENA();
	if (!t)
		return 0;
	id = base = id_add(id_add(ARENA_PTR(struct tg_profile, root)->id, '/'), '/');
	for (i = first; i <= t->len && hats < HATS; i++) {
		u8 byte = WORD_BYTE(t, i);

		if (!MAY_LOOP)
			return 0;
		if (byte) {
			id = id_add(id, byte);
			continue;
		}
		found = profile_by_id(number, id);
		if (found && ARENA_PTR(struct tg_profile, found)->parent == root)
			return ARENA_PTR(struct tg_profile, found)->hat ? found : EXEC_REFUSED;
		id = base;
		hats++;
		/* in complain mode the first is taken for a hat, whether it is there or not */
		if (complains)
			break;
	}
	return 0;
}

/* Back from a hat, by the token that it was entered by. */
static __always_inline int hat_leave(struct tg_confined *c, struct tg_who *who, u64 token,
				     struct tg_note *note)
{
	if (c->token != token)
		return hat_kill(who, note);
	if (has_io_uring())
		return -EBUSY;
	if (has_no_new_privs() && c->previous != c->profile)
		return change_forbid(MAY_CHANGE_HAT_, note);
	c->profile = c->previous;
	c->learning = c->previous_learning;
	c->changed = c->previous_changed;
	c->previous = c->token = c->onexec = 0;
	c->seqno = 0;
	return 0;
}

/* Into one of the hats that the text has from this byte on, or back where there are none. */
__noinline int change_hat(struct tg_text *t, u32 first, u64 token, bool test)
{
	struct tg_note note = { .op = TG_OP_CHANGE_HAT, .class = TG_C_EXEC };
	struct tg_confined *c = profile_subjects_current();
	struct tg_profile __arena *p;
	struct tg_who who;
	u32 hat, root, try;

	if (!t)
		return -EACCES;
	note.dentry = address(t->text) + first;
	for (try = 0; try < PROFILE_TRIES; try++) {
		who = who_of(c);
		if (!c || !who.profile)
			return -EPERM;
		p = ARENA_PTR(struct tg_profile, who.profile);
		if (first >= t->len || !WORD_BYTE(t, first))
			return c->previous && !test ? hat_leave(c, &who, token, &note) : 0;
		root = p->hat ? p->parent : who.profile;
		hat = hat_find(t, first, who.number, root, p->mode == TG_MODE_COMPLAIN);
		if (policy_seqno() != who.number)
			continue;
		if (hat == EXEC_REFUSED)
			return change_forbid(MAY_CHANGE_HAT_, &note);
		if (!hat) {
			int err = change_refuse(&who, MAY_CHANGE_HAT_, TG_R_NO_PROFILE,
						p->children ? -ENOENT : -ECHILD, &note);

			if (err)
				return err;
		}
		if ((has_no_new_privs() && hat != who.profile) || tracer_is_confined())
			return change_forbid(MAY_CHANGE_HAT_, &note);
		if (test)
			return 0;
		if (c->previous && c->token != token)
			return hat_kill(&who, &note);
		if (has_io_uring())
			return -EBUSY;
		if (!c->previous) {
			c->previous = c->profile;
			c->previous_learning = c->learning;
			c->previous_changed = c->changed;
			c->token = token;
		}
		c->learning = !hat;
		if (hat) {
			c->profile = ARENA_PTR(struct tg_profile, hat)->id;
			c->changed = 1;
		}
		c->onexec = 0;
		c->seqno = 0;
		return 0;
	}
	return -EAGAIN;
}

static __always_inline u32 hex(u8 byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : 16;
}

/* A request for a hat: `TOKEN^HAT`, and further hats each behind a 0; split_token_from_name(). */
__noinline int change_hat_by(struct tg_text *t, u32 first, bool test)
{
	u64 token = 0;
	u32 i;

	if (!t)
		return -EINVAL;
	first = text_skip(t, first);
	for (i = first; i < t->len; i++) {
		u32 digit = hex(WORD_BYTE(t, i));

		if (!MAY_LOOP)
			return -EINVAL;
		if (digit > 15)
			break;
		token = token << 4 | digit;
	}
	if (i == first || WORD_BYTE(t, i) != '^' || (!WORD_BYTE(t, i + 1) && !token))
		return -EINVAL;
	return change_hat(t, i + 1, token, test);
}

/* What is asked for, if it is a word of AppArmor's; 1: it is none. */
__noinline int change_asked(struct tg_text *t, bool exec)
{
	u32 first;

	if (!t)
		return -EINVAL;
	if (exec) {
		first = TEXT_AFTER(t, "exec");
		return first ? change_profile(t, first, true, false) : 1;
	}
	first = TEXT_AFTER(t, "changehat");
	if (first)
		return change_hat_by(t, first, false);
	first = TEXT_AFTER(t, "permhat");
	if (first)
		return change_hat_by(t, first, true);
	first = TEXT_AFTER(t, "changeprofile");
	if (first)
		return change_profile(t, first, false, false);
	first = TEXT_AFTER(t, "permprofile");
	return first ? change_profile(t, first, false, true) : 1;
}

/*
 * BPF is no module that a file of /proc belongs to, so this decides in place of the one that is
 * asked: what is returned but 0 is what the write returns. Where AppArmor is at work itself, it is
 * asked, too, by a task that is not confined here, about what there is none of here.
 */
SEC("fmod_ret/security_setprocattr")
int BPF_PROG(profile_setprocattr, int lsmid, const char *name, void *value, u64 size)
{
	bool exec, passed_on = apparmor_active && !who_is_confined().profile;
	struct tg_text *t;
	char which[8] = {};
	int ret = 1;

	if (lsmid != LSM_ID_UNDEF && lsmid != LSM_ID_APPARMOR)
		return 0;
	bpf_probe_read_kernel_str(which, sizeof(which), name);
	exec = which[0] == 'e';
	if (!exec && (which[0] != 'c' || which[1] != 'u'))
		return 0;
	if (!size || size >= TG_TEXT / 2)
		return 0;
	t = text_get();
	if (!t)
		return -EAGAIN;
	if (!bpf_probe_read_kernel(t->text, BOUND(size, TG_TEXT / 2), value)) {
		t->text[BOUND(size, TG_TEXT / 2)] = 0;
		t->len = size;
		text_trim(t);
		ret = change_asked(t, exec);
	}
	text_put(t);
	if (!ret)
		return size;
	if (passed_on)
		return 0;
	if (ret == 1)
		return lsmid == LSM_ID_APPARMOR ? -EINVAL : 0;
	return ret;
}

#endif
