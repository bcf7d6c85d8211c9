/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Subjects of the `capability` model. A *session* is what one start with a capability file began,
 * and all its descendants are; what is revoked is taken from sessions. A *domain* is a session and
 * the layers that limit it: each task has one, children their parent's, and one that narrows
 * itself, or whose program brings a layer, another one. A task that has none is not governed.
 */
#ifndef TIDEGATE_CAPS_SESSION_H
#define TIDEGATE_CAPS_SESSION_H

#include "abi/caps_image.h"
#include "lib/task_slots.h"

#define CAPS_LAYERS 16 /* as many as Landlock has */
#define CAPS_SESSIONS 4096
#define CAPS_DOMAINS 4096
#define CAPS_DOMAINS_OF_ONE 512 /* that a session may have, if that is not */
#define CAPS_DOMAINS_SHARE 4    /* more than such a part of what is free */
#define CAPS_IMAGE_WORDS 16     /* a bit for each image (CAPS_IMAGES of table.h) */

/* Begun by user space, which uses its place again once nobody is in it. */
struct caps_session {
	u32 tasks; /* in it, and one while user space holds it */
	u32 domains;
	u32 taken;   /* kinds of what was revoked for it: a bit each, by enum caps_taken_kind */
	u32 uid;     /* the user that began it */
	u32 actives; /* capabilities */
	u32 pad;
	u64 started; /* ns of CLOCK_BOOTTIME; 0: the place is free */
	u64 number;  /* of the session, never used again */
	/*
	 * Images that its layers are, or were, of: by their index in the table, a bit each. Of others nothing is taken from it. What a layer
	 * brings is of the same image.
	 */
	u64 images[CAPS_IMAGE_WORDS];
};

/*
 * A domain's number is its place, and in the upper bits how often that was used, so that a number is not another one's soon. Its
 * layers do not change.
 */
struct caps_domain {
	/* tasks that are in it, or about to be, and domains narrowed from it; 0: the place is free */
	u32 refs;
	u32 number;
	u32 session; /* place */
	u32 count;   /* layers */
	/* the domain that was narrowed to it by its tasks themselves, which keep what they had bound; 0: none */
	u32 before;
	u32 services; /* any layer describes services */
	/* whatever it has may have been handed over, not always by a domain that can be seen */
	u32 hands;
	u32 spent;  /* it is not used again: others end with what it has */
	u32 whole;  /* it came to be one, and was not given up before */
	u64 serial; /* no other domain has it */
	u64 session_number;
	u32 layers[CAPS_LAYERS]; /* struct caps_subject each, rising */
	u32 control[CAPS_CLASSES];
};

struct caps_session caps_sessions[CAPS_SESSIONS] GLOBAL_OF(caps);
struct caps_domain caps_domains[CAPS_DOMAINS] GLOBAL_OF(caps);
u64 caps_domains_made GLOBAL_OF(caps);
u32 caps_domains_used GLOBAL_OF(caps); /* places that are not free */

#define CAPS_NUMBER_BITS 12 /* of the place */

struct caps_task {
	u64 task;   /* its address; 0: a slot that is free */
	u32 domain; /* number; 0: it is not governed */
	u32 onexec; /* what user space asked for at its next execution, */
	u32 exec;   /* and that of the execution under way; 0: the same */
	u32 pad;
	u64 spilled;
};

TASK_SLOTS(caps, caps_tasks, struct caps_task, 14)

/* What was taken from a session: by which revocation, counted from 1. Never while it is looked at: before the count. */
enum caps_taken_kind {
	CAPS_TAKEN_ALL,
	CAPS_TAKEN_SUBJECT,    /* of: struct caps_subject */
	CAPS_TAKEN_CAPABILITY, /* struct caps_capability */
	CAPS_TAKEN_OBJECT,     /* caps_object_id() */
};

struct caps_taken_key {
	u32 session; /* place */
	u32 kind;
	u64 of;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, struct caps_taken_key);
	__type(value, u32);
} caps_taken SEC(".maps");

/* revocations so far; changed by user space, once what it took stands in `caps_taken` */
u32 caps_epoch GLOBAL_OF(caps);

/* Why something was refused. */
enum caps_why {
	CAPS_MISSING = 1, /* `layer` does not give it */
	CAPS_NOT_BOUND,   /* what was bound does not include it */
	CAPS_REVOKED,
	CAPS_EXPIRED,
	CAPS_USED_UP,
	CAPS_TOO_MANY,    /* layers, or domains */
	CAPS_NO_NAME,     /* it has no name that a capability could be for */
	CAPS_NOBODYS,     /* capability files give this to nobody */
	CAPS_OTHERS,      /* another process, which may more or is in no session of this one's */
	CAPS_REQUEST,     /* a request that a service's operations do not have */
	CAPS_SOCKET_TYPE, /* the socket is of another type than the service's */
};

/* Keeps the image's types in the object's BTF. */
const struct caps_image *type_caps_image GLOBAL_OF(caps);
const struct caps_subject *type_caps_subject GLOBAL_OF(caps);

static __always_inline struct caps_domain *caps_domain_at(u32 number)
{
	return &caps_domains[BOUND(number, CAPS_DOMAINS)];
}

static __always_inline struct caps_session *caps_session_at(u32 place)
{
	return &caps_sessions[BOUND(place, CAPS_SESSIONS)];
}

/* The current task's domain; NULL: it is not governed. */
static __always_inline struct caps_domain *caps_me(void)
{
	struct caps_task *t = caps_tasks_current();

	return t && t->domain ? caps_domain_at(t->domain) : NULL;
}

/* Has a domain this layer? */
static __noinline bool caps_has(struct caps_domain *d, u32 layer)
{
	u32 i;

	bpf_for(i, 0, d->count)
		if (d->layers[BOUND(i, CAPS_LAYERS)] == layer)
			return true;
	return false;
}

/* Has a domain all layers that another one of its session has? Then a task that comes from there loses no layer. */
static __noinline bool caps_is_within(struct caps_domain *d, struct caps_domain *other)
{
	u32 i;

	if (d->session != other->session)
		return false;
	bpf_for(i, 0, other->count)
		if (!caps_has(d, other->layers[BOUND(i, CAPS_LAYERS)]))
			return false;
	return true;
}

/*
 * May a domain be used again that no task is in any more? What was bound by it is there still, so the next task that comes to have
 * these layers leaves no further entries on what it inherits. One that was narrowed from another is not, as that may be gone; nor
 * one of which others may have been handed anything unseen.
 */
static __always_inline bool caps_is_left(struct caps_domain *d)
{
	struct caps_session *s = caps_session_at(d->session);

	return d->whole && !d->before && !d->hands && !d->spent && s->tasks &&
	       s->number == d->session_number;
}

/* One more task is in a domain, unless that has been freed meanwhile. */
static __noinline bool caps_enter(u32 number)
{
	struct caps_domain *d = caps_domain_at(number);
	u32 try, refs;

	bpf_for(try, 0, 1024) {
		refs = READ_ONCE(d->refs);
		if (!refs || d->number != number)
			return false;
		if (__sync_val_compare_and_swap(&d->refs, refs, refs + 1) == refs) {
			__sync_fetch_and_add(&caps_session_at(d->session)->tasks, 1);
			return true;
		}
	}
	return false;
}

/* One fewer; the last one frees its place, and lets go of the domain that it was narrowed from. */
static __noinline int caps_leave(u32 number)
{
	struct caps_domain *d = caps_domain_at(number);
	struct caps_session *s = caps_session_at(d->session);
	u32 i, before;

	bpf_for(i, 0, CAPS_DOMAINS) {
		before = d->before;
		if (__sync_fetch_and_sub(&d->refs, 1) != 1)
			break;
		__sync_fetch_and_sub(&s->domains, 1);
		__sync_fetch_and_sub(&caps_domains_used, 1);
		if (!before)
			break;
		d = caps_domain_at(before);
	}
	__sync_fetch_and_sub(&s->tasks, 1);
	return 0;
}

/* A domain keeps the one that it was narrowed from: what that has bound is to be found by way of it. */
static __always_inline void caps_keep(struct caps_domain *d, u32 before)
{
	d->before = before;
	if (before)
		__sync_fetch_and_add(&caps_domain_at(before)->refs, 1);
}

/*
 * A free place, taken, with one task in it; NULL: there is none. What the domain is must be written before its number is given to
 * anybody.
 */
static __noinline struct caps_domain *caps_domain_made(u32 session)
{
	struct caps_session *s = caps_session_at(session);
	u32 first = bpf_get_prandom_u32(), i, have = __sync_fetch_and_add(&s->domains, 1);

	if (have >= CAPS_DOMAINS_OF_ONE ||
	    have * CAPS_DOMAINS_SHARE + READ_ONCE(caps_domains_used) >= CAPS_DOMAINS) {
		__sync_fetch_and_sub(&s->domains, 1);
		return NULL;
	}
	/* those that may be used again come last */
	bpf_for(i, 0, CAPS_DOMAINS * 2) {
		struct caps_domain *d = caps_domain_at(first + i);

		if (d->refs || (i < CAPS_DOMAINS && caps_is_left(d)) ||
		    __sync_val_compare_and_swap(&d->refs, 0, 1))
			continue;
		/* 0 is no number */
		d->number += 1 << CAPS_NUMBER_BITS;
		d->number = (d->number & ~(CAPS_DOMAINS - 1)) | ((first + i) & (CAPS_DOMAINS - 1));
		if (!(d->number >> CAPS_NUMBER_BITS))
			d->number += 1 << CAPS_NUMBER_BITS;
		__sync_fetch_and_add(&caps_domains_used, 1);
		d->serial = __sync_fetch_and_add(&caps_domains_made, 1) + 1;
		d->session = session;
		d->session_number = s->number;
		d->before = d->hands = d->spent = d->whole = 0;
		__sync_fetch_and_add(&s->tasks, 1);
		return d;
	}
	__sync_fetch_and_sub(&s->domains, 1);
	return NULL;
}

/* A task is freed. */
static __always_inline void caps_task_free_slot(struct task_struct *task)
{
	struct caps_task *t = caps_tasks_task(task), *slot;

	if (!t)
		return;
	if (t->domain)
		caps_leave(t->domain);
	if (t->onexec)
		caps_leave(t->onexec);
	if (t->exec)
		caps_leave(t->exec);
	t->domain = t->onexec = t->exec = 0;
	slot = caps_tasks_slot(address(task));
	if (slot->task != address(task))
		return;
	/* after that, on every processor */
	__sync_val_compare_and_swap(&slot->task, address(task), 0);
}

#endif
