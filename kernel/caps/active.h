/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Active capabilities: what a bind operation leaves, beside the open file: rights on the object,
 * for a domain. Another domain that comes by the file has one of its own, with what it may itself,
 * and never more than the domains that handed it over; it ends when one of theirs does. Of a file
 * that nobody governed has opened or received there is none, and by it everything may be done.
 */
#ifndef TIDEGATE_CAPS_ACTIVE_H
#define TIDEGATE_CAPS_ACTIVE_H

#include "caps/ask.h"

#define CAPS_ANCESTORS 8
#define CAPS_ACTIVES (1 << 18)    /* entries of all sessions, and one of each file, */
#define CAPS_ACTIVES_OF_ONE 16384 /* that a session may have, if that is not */
/* more than such a part of what is free: so others find some, however many want all */
#define CAPS_ACTIVES_SHARE 8

struct caps_active_key {
	u64 file;   /* address */
	u32 domain; /* number; 0: the head of the list of a file's */
	u32 kind;   /* enum caps_active_kind */
};

enum caps_active_kind {
	CAPS_OPENED,    /* of a socket: connected */
	CAPS_ADDRESSED, /* of a socket: its own address was taken */
};

struct caps_active {
	u64 until;  /* ns of CLOCK_BOOTTIME when it ends, 0: never */
	u64 object; /* caps_object_id() */
	s64 uses;   /* that are left, where `limited` */
	u64 session_number;
	u32 session; /* place */
	u32 class;
	u32 rights;  /* what may be done; */
	u32 wanted;  /* what of that was asked for, */
	u32 beside;  /* and what goes with it */
	u32 counted; /* uses of these */
	u32 epoch;   /* by the capabilities of when it was bound */
	u32 checked; /* no revocation up to this one took it */
	u16 limited;
	u16 revoked;
	u16 sent;  /* it was handed over */
	u16 count; /* layers */
	u64 next;  /* of the file's list: a domain, and in the upper half a kind; 0: no more */
	/* domains, whose active capabilities on the same file this one ends with; 0: no more */
	u32 ancestors[CAPS_ANCESTORS];
	u32 layers[CAPS_LAYERS];
	u32 answers[CAPS_LAYERS]; /* what each said when it was bound */
	u32 domain;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, CAPS_ACTIVES);
	__type(key, struct caps_active_key);
	__type(value, struct caps_active);
} caps_actives SEC(".maps");

u32 caps_actives_used GLOBAL_OF(caps); /* entries that there are */

static const struct caps_active caps_no_active;

/* What of a class is checked at each use anyway, as it has hooks of its own. */
static __always_inline u32 caps_beside(u32 class)
{
	return class == CAPS_FILE ? CAPS_LOCK | CAPS_IOCTL : 0;
}

static __always_inline struct caps_active *caps_active_at(u64 file, u32 domain, u32 kind)
{
	struct caps_active_key key = { .file = file, .domain = domain, .kind = kind };

	return bpf_map_lookup_elem(&caps_actives, &key);
}

/* That of a domain, or of those that it was narrowed from by its own tasks. */
static __noinline struct caps_active *caps_active_of(u64 file, u32 domain, u32 kind)
{
	struct caps_active *a = NULL;
	u32 i;

	for_each_index(i, CAPS_LAYERS + 1) {
		a = caps_active_at(file, domain, kind);
		if (a || !domain)
			break;
		domain = caps_domain_at(domain)->number == domain ? caps_domain_at(domain)->before :
								    0;
		if (!domain)
			break;
	}
	return a;
}

/* Whatever a domain has may be handed over, that which it has bound before it was narrowed, too. */
static __noinline int caps_hands(u32 domain)
{
	u32 i;

	bpf_for(i, 0, CAPS_LAYERS + 1) {
		if (!domain || caps_domain_at(domain)->number != domain)
			break;
		caps_domain_at(domain)->hands = 1;
		domain = caps_domain_at(domain)->before;
	}
	return 0;
}

/* An entry goes, and its session may have another one. */
static __always_inline void caps_active_gone(struct caps_active_key *key, struct caps_active *a)
{
	struct caps_session *s = caps_session_at(a->session);

	/* its place may be another session's by now */
	if (key->domain && s->number == a->session_number)
		__sync_fetch_and_sub(&s->actives, 1);
	/* if the map does not let go of it, it is good for no file that has this address later */
	a->rights = 0;
	a->revoked = 1;
	if (!bpf_map_delete_elem(&caps_actives, key))
		__sync_fetch_and_sub(&caps_actives_used, 1);
}

/* An entry of the file's list, made; NULL: no room. What is in it is the caller's to fill in. */
static __noinline struct caps_active *caps_active_made(u64 file, u32 domain, u32 kind)
{
	struct caps_active_key key = { .file = file },
			       own = { .file = file, .domain = domain, .kind = kind };
	struct caps_domain *d = caps_domain_at(domain);
	struct caps_session *s = caps_session_at(d->session);
	struct caps_active *a = bpf_map_lookup_elem(&caps_actives, &own), *head;
	u64 next;
	u32 try;

	if (a)
		return a;
	if (s->actives >= CAPS_ACTIVES_OF_ONE ||
	    s->actives * CAPS_ACTIVES_SHARE + READ_ONCE(caps_actives_used) >= CAPS_ACTIVES)
		return NULL;
	head = bpf_map_lookup_elem(&caps_actives, &key);
	if (!head) {
		if (!bpf_map_update_elem(&caps_actives, &key, &caps_no_active, BPF_NOEXIST))
			__sync_fetch_and_add(&caps_actives_used, 1);
		head = bpf_map_lookup_elem(&caps_actives, &key);
		if (!head)
			return NULL;
	}
	if (bpf_map_update_elem(&caps_actives, &own, &caps_no_active, BPF_NOEXIST))
		return NULL;
	a = bpf_map_lookup_elem(&caps_actives, &own);
	if (!a)
		return NULL;
	__sync_fetch_and_add(&caps_actives_used, 1);
	__sync_fetch_and_add(&s->actives, 1);
	a->domain = domain;
	a->session = d->session;
	a->session_number = s->number;
	/* it leads to all that are there before the head leads to it, so that no walk misses one */
	bpf_for(try, 0, 1024) {
		next = READ_ONCE(head->next);
		WRITE_ONCE(a->next, next);
		if (__sync_val_compare_and_swap(&head->next, next, domain | (u64)kind << 32) ==
		    next)
			return a;
	}
	caps_active_gone(&own, a);
	return NULL;
}

/* Fills in what a question found. One that is filled in anew ends no later, and has no more uses, than it had. */
static __noinline int caps_active_fill(struct caps_active *a, struct caps_question *q)
{
	struct caps_domain *d = caps_domain_at(q->domain);
	u32 i;

	a->object = q->object;
	a->class = q->class;
	a->wanted = q->asked.given;
	a->beside = q->asked.extra;
	a->rights = a->wanted | a->beside;
	a->counted |= d->control[BOUND(q->class, CAPS_CLASSES)] | caps_beside(q->class);
	a->epoch = a->checked = q->asked.epoch;
	if (q->asked.expires) {
		u64 until = bpf_ktime_get_boot_ns() + q->asked.expires * 1000000000ull;

		if (!a->until || until < a->until)
			a->until = until;
	}
	if (q->asked.uses && (!a->limited || a->uses > q->asked.uses)) {
		a->uses = q->asked.uses;
		a->limited = 1;
	}
	a->count = d->count;
	for (i = 0; i < CAPS_LAYERS; i++) {
		a->layers[i] = d->layers[i];
		a->answers[i] = q->answers[i];
	}
	return 0;
}

/* One that is what another is, but whose it is. */
static __noinline int caps_active_like(struct caps_active *a, struct caps_active *from)
{
	u32 i;

	a->until = from->until;
	a->object = from->object;
	a->class = from->class;
	a->rights = from->rights;
	a->wanted = from->wanted;
	a->beside = from->beside;
	a->counted = from->counted;
	a->epoch = from->epoch;
	a->checked = from->checked;
	a->revoked = from->revoked;
	a->limited = from->limited;
	a->uses = from->uses;
	a->count = from->count;
	for (i = 0; i < CAPS_LAYERS; i++) {
		a->layers[i] = from->layers[i];
		a->answers[i] = from->answers[i];
	}
	return 0;
}

/* Has a revocation taken what this was bound by? */
__noinline bool caps_is_lost(struct caps_active *a __arg_nonnull)
{
	struct caps_session *s = caps_session_at(a->session);
	struct caps_asked asked = { .session = a->session, .epoch = a->epoch };
	u32 k, taken = s->taken;

	USES_ARENA();
	/* its session has ended, and what was to be revoked of it was looked at then */
	if (s->number != a->session_number || !taken)
		return false;
	if (taken & 1 << CAPS_TAKEN_ALL ||
	    caps_taken_from(a->session, CAPS_TAKEN_OBJECT, a->object))
		return true;
	bpf_for(k, 0, a->count) {
		if (caps_taken_from(a->session, CAPS_TAKEN_SUBJECT,
				    a->layers[BOUND(k, CAPS_LAYERS)]))
			return true;
		if (!(taken & 1 << CAPS_TAKEN_CAPABILITY))
			continue;
		caps_ask(&asked, a->wanted, a->beside);
		caps_ask_layer(&asked, a->answers[BOUND(k, CAPS_LAYERS)]);
		if (asked.lost)
			return true;
	}
	return false;
}

/* Was any of a domain's layers taken back from its session? */
static __noinline bool caps_is_shut(u32 domain)
{
	struct caps_domain *d = caps_domain_at(domain);
	u32 k;

	if (!(caps_session_at(d->session)->taken & 1 << CAPS_TAKEN_SUBJECT))
		return false;
	bpf_for(k, 0, d->count)
		if (caps_taken_from(d->session, CAPS_TAKEN_SUBJECT,
				    d->layers[BOUND(k, CAPS_LAYERS)]))
			return true;
	return false;
}

/*
 * May a domain use nothing any more, this neither? Of the layers that it had when it bound it the active capability knows itself;
 * what was taken back stays so for a domain that is narrowed by it later, too.
 */
static __always_inline bool caps_is_shut_for(struct caps_active *a, u32 domain)
{
	return a->domain != domain && caps_is_shut(domain);
}

/* Is it good for anything by itself? 0, or enum caps_why. */
static __always_inline u32 caps_ended(struct caps_active *a)
{
	u32 epoch = READ_ONCE(caps_epoch);

	if (!a->revoked && a->checked != epoch) {
		if (caps_is_lost(a))
			a->revoked = 1;
		else
			a->checked = epoch;
	}
	if (a->revoked)
		return CAPS_REVOKED;
	if (a->until && bpf_ktime_get_boot_ns() >= a->until)
		return CAPS_EXPIRED;
	return a->limited && a->uses <= 0 ? CAPS_USED_UP : 0;
}

/* The same of it and of all that it ends with; `counts`: one more use is made of each. */
__noinline u32 caps_ended_with(struct caps_active *a __arg_nonnull, u64 file, bool counts)
{
	u32 why = caps_ended(a), i;
	bool found = false;

	if (why)
		return why;
	if (counts && a->limited && __sync_fetch_and_sub(&a->uses, 1) <= 0)
		return CAPS_USED_UP;
	for_each_index(i, CAPS_ANCESTORS * 2) {
		u32 domain = a->ancestors[BOUND(i / 2, CAPS_ANCESTORS)];
		struct caps_active *from;

		if (!domain)
			break;
		from = caps_active_at(file, domain, i & 1 ? CAPS_ADDRESSED : CAPS_OPENED);
		found = i & 1 ? found | !!from : !!from;
		if (!found && i & 1)
			return CAPS_REVOKED;
		if (!from)
			continue;
		why = caps_ended(from);
		if (why)
			return why;
		if (counts && from->limited && __sync_fetch_and_sub(&from->uses, 1) <= 0)
			return CAPS_USED_UP;
	}
	return 0;
}

/*
 * One of a domain that is used again is to be filled in as if there were none. It stays revoked if it was, as others may end with it,
 * and sent, as the file may still be on its way.
 */
static __noinline int caps_active_anew(struct caps_active *a)
{
	u32 i;

	caps_ended(a);
	a->until = 0;
	a->rights = a->wanted = a->beside = a->counted = 0;
	a->limited = 0;
	for (i = 0; i < CAPS_ANCESTORS; i++)
		a->ancestors[i] = 0;
	return 0;
}

/* A file is freed: so are all that are on it, however many domains had it. */
static __noinline int caps_forget(u64 file)
{
	struct caps_active_key key = { .file = file };
	struct caps_active *a = bpf_map_lookup_elem(&caps_actives, &key);
	u32 i;

	if (!a)
		return 0;
	bpf_for(i, 0, CAPS_ACTIVES) {
		u64 next = a->next;

		caps_active_gone(&key, a);
		if (!next)
			break;
		key.domain = next;
		key.kind = next >> 32;
		a = bpf_map_lookup_elem(&caps_actives, &key);
		if (!a)
			break;
	}
	return 0;
}

SEC("lsm/file_free_security")
int BPF_PROG(caps_file_free_security, struct file *file)
{
	caps_forget(address(file));
	return 0;
}

#endif
