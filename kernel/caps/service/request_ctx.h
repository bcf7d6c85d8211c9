/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the service monitor (hooks.h) keeps of a task that sends: its identity, what of a request
 * was copied, and what was found about that. It is used again from one message to the next, and
 * what stays the same is not looked up anew.
 */
#ifndef TIDEGATE_CAPS_SERVICE_REQUEST_CTX_H
#define TIDEGATE_CAPS_SERVICE_REQUEST_CTX_H

#include "abi/caps_wire.h"
#include "caps/ask.h"
#include "caps/session.h"

#define CAPS_HEAD 4096 /* more than head and operands of a request: a bound, */
#define CAPS_PART 2048 /* that of what is copied at once, */
/* and so the room for it. What is kept of a task may take 8192 bytes at most */
#define CAPS_HEAD_ROOM (CAPS_HEAD + CAPS_PART)

/* Where a descriptor of a connection was found last. */
#define CAPS_USED 8
struct caps_used {
	u64 conn;
	u64 descriptor;
	u32 slot;
	u32 pad;
};

/* What a task sends, while it does. */
struct caps_room {
	u64 task;
	u64 spilled; /* lib/task_slots.h */
	u64 conn;    /* number of the connection; 0: none, */
	u64 file;    /* its file, 0: none, */
	u64 peer;    /* and the service's sock */
	u64 size;    /* bytes that are to be sent, */
	u64 seen;    /* and those that were copied */
	/* the task's identity, as long as it is in the same domain: */
	u64 serial; /* the domain's; 0: it is not governed */
	u64 session_number;
	u32 session;
	u32 domain; /* 0: it is not governed */
	u32 count;  /* layers */
	u32 layers[CAPS_LAYERS];
	u32 services[CAPS_LAYERS]; /* what each calls the service there; from 1, 0: none */
	u64 served;                /* the connection, by its number, that this is so of; 0: none */
	/* a request: */
	u32 len;                    /* bytes of head and operands */
	u32 judged;                 /* it is authorised */
	u32 at[CAPS_WIRE_OPERANDS]; /* where in `head` operands' contents are, */
	u32 lens[CAPS_WIRE_OPERANDS];
	u32 kinds[CAPS_WIRE_OPERANDS]; /* and what; */
	u32 ended[CAPS_WIRE_OPERANDS]; /* of descriptors: why it is good for nothing, 0: it is, */
	u32 slots[CAPS_WIRE_OPERANDS]; /* where it is, */
	u64 sessions[CAPS_WIRE_OPERANDS];     /* the session, by its number, that opened it, */
	u32 firsts[CAPS_WIRE_OPERANDS];       /* the first layer that gave it; 0: none, */
	u32 first_rights[CAPS_WIRE_OPERANDS]; /* and what that gave */
	u32 first_limited[CAPS_WIRE_OPERANDS];
	struct caps_used used[CAPS_USED];
	/* what was found: */
	u32 layer;   /* by which layer it is not authorised, */
	u32 service; /* what that calls the service, from 1, */
	u32 operand; /* for which operand, from 1; 0: none, */
	u32 wanted;
	u32 denied;
	u32 why;     /* and why: enum caps_why */
	u32 limited; /* uses are to be counted */
	u32 binds;   /* the operand whose object is bound, from 1; 0: none */
	u32 giving;  /* a bit for each layer that gives it, */
	u32 epoch;
	u32 answers[CAPS_LAYERS]; /* by what, */
	u32 rights[CAPS_LAYERS];
	u32 expires[CAPS_LAYERS];
	u32 uses[CAPS_LAYERS];
	u64 objects[CAPS_LAYERS];
	/* layers that descriptors were opened with, and the sender has not, */
	u32 others[CAPS_LAYERS];
	u32 others_services[CAPS_LAYERS];
	u32 others_count;
	u32 answer; /* to the question asked last, */
	u64 object; /* and about what it was */
	struct caps_asked asked;
	u8 head[CAPS_HEAD_ROOM];
};

TASK_SLOTS(caps, caps_rooms, struct caps_room, 6)

/* The task is freed. */
static __always_inline void caps_room_free_slot(struct task_struct *task)
{
	struct caps_room *slot = caps_rooms_slot(address(task));

	if (slot->task != address(task))
		return;
	slot->conn = slot->serial = slot->served = 0;
	slot->domain = slot->count = slot->judged = 0;
	/* after that, on every processor */
	__sync_val_compare_and_swap(&slot->task, address(task), 0);
}

/* The layers of a task that has come into another domain. */
static __noinline int caps_room_moved(struct caps_room *r, u32 domain)
{
	struct caps_domain *d = caps_domain_at(domain);
	u32 i;

	r->served = 0;
	r->domain = domain;
	r->serial = r->session_number = r->count = 0;
	if (!domain)
		return 0;
	r->serial = d->serial;
	r->session = d->session;
	r->session_number = caps_session_at(d->session)->number;
	r->count = d->count;
	for (i = 0; i < CAPS_LAYERS; i++)
		r->layers[i] = d->layers[i];
	return 0;
}

/* Makes a room ready for what its task, the current one, is about to send. False: no layer of the task's describes services. */
static __always_inline bool caps_room_mine(struct caps_room *r)
{
	struct caps_task *t = caps_tasks_current();
	u32 domain = t ? t->domain : 0;
	struct caps_domain *d = caps_domain_at(domain);

	r->conn = r->file = r->size = r->seen = 0;
	r->judged = 0;
	if (r->domain != domain || (domain && r->serial != d->serial))
		caps_room_moved(r, domain);
	return domain && d->services;
}

#endif
