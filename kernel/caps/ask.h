/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bind operations of the `capability` model: what all layers of a domain say of an object by its name, which is its canonical
 * path (lib/path_walk.h), or a key: an address and a port, an abstract socket's name.
 */
#ifndef TIDEGATE_CAPS_ASK_H
#define TIDEGATE_CAPS_ASK_H

#include "lib/automaton_feed.h"
#include "core/record.h"
#include "core/subject.h"
#include "caps/session.h"

/* The revocation that took something from a session; 0: none has. */
static __always_inline u32 caps_taken_from(u32 session, u32 kind, u64 of)
{
	struct caps_taken_key key = { .session = session, .kind = kind, .of = of };
	u32 *taken = caps_session_at(session)->taken >> kind & 1 ?
			     bpf_map_lookup_elem(&caps_taken, &key) :
			     NULL;

	return taken ? *taken : 0;
}

#define caps_function __noinline
#define caps_for(i, n) bpf_for(i, 0, n)
#define caps_taken_at(a, capability) \
	caps_taken_from((a)->session, CAPS_TAKEN_CAPABILITY, capability)

#include "caps/rules.h"

/* Of a question to all layers, what each of them said is kept: for what is bound by it. */
struct caps_question {
	struct caps_asked asked;
	u32 domain; /* number */
	u32 class;
	u64 object; /* caps_object_id of its name */
	u32 answers[CAPS_LAYERS];
	u32 layer; /* which did not give all */
	u32 why;   /* enum caps_why; 0: all is given */
};

/* Objects' ids, by which they are revoked: by their names' components, of eight bytes each time. */
#define CAPS_ID_PATH 0xcbf29ce484222325ull
#define CAPS_ID_ABSTRACT (CAPS_ID_PATH + 1)
#define CAPS_ID_TCP (CAPS_ID_PATH + 2)
#define CAPS_ID_UDP (CAPS_ID_PATH + 3)

static __always_inline u64 caps_mix(u64 id, u64 word)
{
	id = (id ^ word) * 0x9e3779b97f4a7c15ull;
	return id ^ id >> 29;
}

/* After a component, or a key, of the kernel's memory. */
__noinline u64 caps_object_id(u64 id, u64 text, u32 len)
{
	u64 word;
	u32 i;

	len &= 255;
	bpf_for(i, 0, (len + 7) / 8) {
		word = read_kernel_u64(text + i * 8);
		if (len - i * 8 < 8)
			word &= (1ull << ((len & 7) * 8)) - 1;
		id = caps_mix(id, word);
	}
	return caps_mix(id, len);
}

/* The class of the first service's objects, in records; the next one's is the next. */
#define CAPS_OF_SERVICE 7

/* What every layer's automaton says of a path that has been walked. */
__noinline int caps_said(struct caps_question *q __arg_nonnull, struct tg_scratch *w __arg_nonnull)
{
	struct caps_domain *d = caps_domain_at(q->domain);
	u32 k, i, n = w->n, state, automaton;
	u64 id = CAPS_ID_PATH;

	USES_ARENA();
	bpf_for(i, 0, n) {
		struct dentry *c = CAST(struct dentry, w->up[BOUND(n - 1 - i, TG_DEPTH)]);

		id = caps_object_id(id, address(c->d_name.name), c->d_name.len);
	}
	q->object = id;
	bpf_for(k, 0, d->count) {
		automaton = caps_automaton(d->layers[BOUND(k, CAPS_LAYERS)], q->class);
		q->answers[BOUND(k, CAPS_LAYERS)] = 0;
		if (!automaton)
			continue;
		state = ARENA_PTR(struct tg_automaton, automaton)->start;
		if (!n)
			state = automaton_step(automaton, state, '/');
		bpf_for(i, 0, n)
			state = automaton_feed_component(automaton, state,
							 w->up[BOUND(n - 1 - i, TG_DEPTH)]);
		q->answers[BOUND(k, CAPS_LAYERS)] = caps_answer_of(automaton, state);
	}
	return 0;
}

/* Why a layer has left less than `before` of what was asked for. */
static __always_inline u32 caps_why_not(struct caps_asked *a, u32 before)
{
	return before & ~a->given & ~a->taken ? CAPS_MISSING : CAPS_REVOKED;
}

/* What the answers give together. `wanted` and `beside` are in `asked`. */
__noinline int caps_judge(struct caps_question *q __arg_nonnull)
{
	struct caps_domain *d = caps_domain_at(q->domain);
	u32 k, epoch = READ_ONCE(caps_epoch), before, wanted = q->asked.wanted,
	       beside = q->asked.beside;
	u32 taken = caps_session_at(d->session)->taken;
	bool all = false;

	caps_ask(&q->asked, wanted, beside);
	q->asked.session = d->session;
	q->asked.epoch = epoch;
	q->why = 0;
	bpf_for(k, 0, d->count) {
		u32 layer = d->layers[BOUND(k, CAPS_LAYERS)];

		before = q->asked.given;
		caps_ask_layer(&q->asked, q->answers[BOUND(k, CAPS_LAYERS)]);
		if (before != q->asked.given && !q->why) {
			q->why = caps_why_not(&q->asked, before);
			q->layer = layer;
		}
		if (taken && caps_taken_from(d->session, CAPS_TAKEN_SUBJECT, layer))
			all = true;
	}
	if (taken && (taken & 1 << CAPS_TAKEN_ALL ||
		      caps_taken_from(d->session, CAPS_TAKEN_OBJECT, q->object)))
		all = true;
	if (all) {
		q->why = CAPS_REVOKED;
		q->asked.given = q->asked.extra = 0;
	}
	return 0;
}

/*
 * Walks up from an object and has what it is called looked up by `said`, in a moment at which nothing was moved or mounted: 0, or why it
 * has no name by which that could be done (-EACCES), or not now (-EAGAIN).
 */
static __always_inline int caps_walked(u64 dentry, int (*said)(void *of, struct tg_scratch *w),
				       void *of)
{
	struct super_block *sb =
		CAST(struct super_block, address(CAST(struct dentry, dentry)->d_sb));
	struct tg_scratch *w = scratch_get();
	int err = -EAGAIN;
	u64 before, m;
	u32 try;

	if (!w)
		return -EAGAIN;
	bpf_rcu_read_lock();
	bpf_for(try, 0, TG_TRIES) {
		err = -EAGAIN;
		before = path_settled();
		if (before & PATH_ODD)
			break;
		if (!walk_filesystem(dentry, w) ||
		    w->up[BOUND(w->n - 1, TG_DEPTH)] != address(sb->s_root)) {
			err = -EACCES;
		} else {
			m = mount_of(address(sb), w);
			if (m == MOUNT_LATER)
				break;
			/* what nothing in sight leads to has no name */
			err = m && walk_mounts(m, w) ? said(of, w) : -EACCES;
		}
		if (path_sequence() == before) {
			if (!err)
				mount_remember(w);
			break;
		}
		err = -EAGAIN;
		w = scratch_again(w);
		if (!w)
			break;
	}
	bpf_rcu_read_unlock();
	if (w)
		scratch_put(w);
	return err;
}

static __always_inline int caps_said_of_path(void *of, struct tg_scratch *w)
{
	return caps_said(of, w);
}

/* Asks about an object by its path, as caps_walked(). What is given stands in `q`. */
__noinline int caps_ask_path(u64 dentry, struct caps_question *q __arg_nonnull)
{
	int err;

	q->why = CAPS_NO_NAME;
	q->asked.given = q->asked.extra = 0;
	err = caps_walked(dentry, caps_said_of_path, q);
	if (!err)
		caps_judge(q);
	return err;
}

/* Writes the record of a refusal; `q` may be NULL: no capability was asked for. */
__noinline u64 caps_audit(struct caps_question *q, u32 why, struct tg_note *n __arg_nonnull)
{
	struct caps_task *t;
	struct tg_event *e;
	u64 id;

	e = record_begin(&id);
	if (!e)
		return 0;
	t = caps_tasks_current();
	e->why = why;
	if (t && t->domain)
		e->session = caps_session_at(caps_domain_at(t->domain)->session)->number;
	if (q) {
		e->layer = why == CAPS_MISSING || q->class >= CAPS_OF_SERVICE ? q->layer : 0;
		e->tclass = q->class;
		e->request = q->asked.wanted;
		e->denied = q->asked.wanted & ~q->asked.given;
	}
	return record_end(e, id, n);
}

/* The end of every refusal of this model, as deny(). */
static __always_inline int caps_denied(struct caps_question *q, u32 why, struct tg_note *n)
{
	struct tg_subject *s = subject_current();
	struct tg_stats *st = stats_of(n->class);
	bool permissive = denial_is_permissive(s, n);

	if (policy.permissive == TG_LET_THROUGH)
		return 0;
	denial_count(st, s, n, permissive);
	caps_audit(q, why, n);
	return permissive ? 0 : -EACCES;
}

/* A refusal, and its record. */
__noinline int caps_refuse(struct caps_question *q __arg_nonnull, struct tg_note *n __arg_nonnull)
{
	n->reason = TG_R_CAPS;
	n->source = ~0u;
	return caps_denied(q, q->why, n);
}

/* What capability files give to nobody, or not to this one. */
__noinline int caps_deny_recorded(u32 why, u8 op, u8 class)
{
	struct tg_note n = { .op = op, .class = class, .reason = TG_R_CAPS, .source = ~0u };

	return caps_denied(NULL, why, &n);
}

static __always_inline int caps_deny(u32 why, u8 op, u8 class)
{
	return verdict_of(caps_deny_recorded(why, op, class));
}

/* A question of the current task, or NULL: it is not governed. */
static __always_inline struct caps_domain *caps_begin(struct caps_question *q, u32 class,
						      u32 wanted, u32 beside)
{
	struct caps_task *t = caps_tasks_current();

	if (!t || !t->domain)
		return NULL;
	q->domain = t->domain;
	q->class = class;
	q->asked.wanted = wanted;
	q->asked.beside = beside;
	return caps_domain_at(t->domain);
}

/* Is all of it given for this path? What names its object each time leaves nothing bound. */
static __noinline int caps_named_asked(u64 dentry, u32 class, u32 wanted, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_DIR, .dentry = dentry };
	struct caps_question q = {};
	int err;

	if (!caps_begin(&q, class, wanted, 0))
		return 0;
	n.inode = address(CAST(struct dentry, dentry)->d_inode);
	err = caps_ask_path(dentry, &q);
	if (err == -EAGAIN)
		return -EAGAIN;
	return err || q.asked.given != wanted ? verdict_of(caps_refuse(&q, &n)) : 0;
}

#endif
