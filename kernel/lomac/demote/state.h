/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the demotion transaction keeps while it runs: one at a time, system-wide. */
#ifndef TIDEGATE_LOMAC_DEMOTE_STATE_H
#define TIDEGATE_LOMAC_DEMOTE_STATE_H

#include "lib/budget.h"
#include "core/record.h"
#include "lomac/maps.h"

#define TX_SETTLE_NS 2000000000ull /* for the other threads to come to rest */
#define TX_LOOK_NS 250000000ull    /* for the holder of something to come into sight */
#define TX_SPIN_NS 5000000ull      /* for any of these, where the hook may not sleep */
#define TX_STAY 0xff               /* no level, but the one that it has */
#define TX_QUEUE_NS 30000000000ull /* for the demotions before this one */

/*
 * Bounds on what is done under the lock. Channels of the tasks that fall or join: they, and no
 * others, are refused. And places in all tables together, of which a processor sees a hundred
 * million a second.
 */
#define TX_CHANNELS (1 << 14)
#define TX_LOOKS (1ull << 26)
#define TX_WAITING (1 << 20) /* connections that wait for one listener (net.core.somaxconn) */

/* What a pass over descriptors and mappings is for. */
enum tx_stage {
	TX_SPREAD, /* which tasks fall with which */
	TX_COUNT,  /* the mappings that they have of each channel */
	TX_VERIFY, /* are those all, and is every reader known? */
	TX_SAME,   /* have they still what was counted? */
	TX_FLOORS, /* it will not be refused: channels remember their writers */
};

/* A look at a table for references.h: nothing that is counted has been met yet, it counts, or it does not. */
enum tx_look { TX_LOOK_BEGINS, TX_LOOK_COUNTS, TX_LOOK_ONLY };

/* `lock` is held while the rest is written. */
struct tg_tx {
	u8 family;       /* AF_UNIX, once it has been needed: see tx_idle_for */
	u8 recent;       /* a transaction has ended not long ago: see tx_is_recent */
	u16 guard_armed; /* the guard on file_permission is attached */
	u32 lock;
	u32 writable; /* descriptors seen that may need the guard */
	u32 mapping;  /* mappings in the way */
	u32 async;    /* rings or AIO contexts in the way */
	u32 rings;    /* of tasks that do not fall */
	u32 above;    /* rings of tasks above the current subject */
	u32 level;    /* that one's level, as the pass began */
	u32 memory;   /* memory without a name that could still be written */
	u32 busy;     /* threads not at rest */
	u32 changed;
	u32 failed;
	u32 born;     /* tasks marked since the levels were last published */
	u32 channels; /* descriptors of channels seen */
	u32 floors; /* those of tasks that fall that would need an entry in `floors`, of the current user's, */
	u32 floors_others; /* and of others */
	u32 channels_used; /* entries in the table of channels */
	u32 made;          /* of this transaction */
	u32 makes;         /* the task looked at falls, or joins: its channels get entries */
	u32 itself;        /* the current process does, too, as its trust has ended */
	u64 good;          /* the last transaction that looked at everybody, and ended well */
	u32 crowded;       /* it has more than a transaction looks at */
	u64 looked;        /* places in descriptor tables looked at, */
	u32 samples;       /* and looks at random of one walk, */
	u32 walks;         /* and such walks (restless.h) */
	u32 lowest;        /* level that somebody falls to */
	u32 stood;         /* where the current subject stood before */
	u32 births;        /* a child may have what nobody in the list of tasks has */
	u32 restless; /* what is moved about has not been looked for, or somebody has been found by it */
	u32 missed;    /* there are more ends of the channels than the passes have met */
	u32 uncounted; /* there may be ends of channels that nothing counts: see references.h */
	u64 since;     /* the boot clock as it began */
	u64 table;     /* the table that is looked at, */
	u64 looker;    /* the task by which it is met, if that began before the transaction, */
	u32 look;      /* and enum tx_look */
	u32 open;      /* begun, and neither ended nor put back */
	u32 tickets;   /* given out */
	u32 last_user; /* the user that had the turn last */
	u32 own;       /* the account that is charged for what the current task makes, */
	u32 payer;     /* and that for what the task looked at does */
	struct turn_claim turn; /* of the task that has the lock */
	u32 stage;              /* enum tx_stage of the pass */
	u32 pending;            /* entries in tx_pending */
	u32 overflow;           /* it was too short */
	u32 published;          /* levels have been changed */
	u32 guarded;            /* and the guard was attached before */
	u32 guards;             /* it needs that, whatever the tables show now */
	u32 still;              /* threads that fall, as a look at their descriptors began */
	u32 moved;              /* one of them has run meanwhile */
	u32 rises;              /* what has been raised so far: a policy, a promotion (held.h) */
	u32 began;              /* the number of those as it began */
	u32 receives;           /* it is about a descriptor that the current task receives */
	u32 mapped;             /* mappings seen of the last task */
	u32 counted;            /* number of the pass that counted mappings last */
	u64 mapping_since;      /* as a look at a task's mappings began: mappings_sequence() */
	u64 sequences;          /* the sum of these of all who fall, as mappings were counted */
	u32 pass;               /* number of the pass over mappings */
	u32 others;             /* somebody else would fall */
	u32 reopen;             /* of an open by path, which may drag nobody */
	u32 fifo;               /* `join` is a FIFO's: see fifo.h */
	u32 fifo_seen;          /* those of `fifo_waits` that the pass met */
	u32 piped;              /* `join` is a pipe's or a FIFO's */
	u32 pipe_readers;       /* those that its pipe counted before the pass */
	u32 failing;            /* threads did not come to rest in time */
	u32 was;                /* where the task looked at stood before */
	u32 trusted;            /* the task looked at is not lowered by what it reads */
	u32 relays; /* one that is not lowered would hear it by a name that no file stands for, or one below it speak by its socket */
	u64 id;
	u64 join;      /* a channel's descriptor that the subject is about to get */
	u64 join_unix; /* a Unix socket that it is about to connect or send to, */
	u64 join_self; /* and, if somebody else may have that, the one that it connects */
	u64 join_key;
	u64 join_peer;    /* the other end of `join`, a Unix socket */
	u32 join_readers; /* descriptors that read from `join`, seen */
	u32 drag_tgid;
	u64 drag_cause; /* record of the process dragged along last */
	struct tg_fifo_open fifo_waits[TG_FIFO_OPENS];
	u64 deadline;
	u64 ended; /* the last one, by the boot clock */
	/* of serve.h and steps.h */
	u64 asks;      /* the task that asks for a step, */
	u32 served;    /* and it has been taken */
	u32 at;        /* enum tx_at: the step that is next, */
	u32 rests;     /* after a wait, */
	u64 until;     /* for as long as this, */
	u32 over;      /* that ended in vain */
	int verdict;   /* what comes of all steps, once they are done; the reason is in tx_cause */
	u32 to;        /* the level that the current subject has to fall to, or TX_STAY */
	u32 may_sleep; /* its hook may */
	u32 alone;     /* nobody else can be touched */
	u32 round;     /* rounds so far, */
	u32 passes;    /* passes of this round, */
	u32 seeks;     /* and walks of this look for what is moved about, */
	u64 seek_next; /* of which the next is due then */
} tx;

/*
 * Is it a Unix socket's family, while no transaction runs or has just ended and no guard is armed? What
 * every message asks, in one comparison with the first word of `tx`.
 */
static __always_inline bool tx_idle_for(u16 family)
{
	_Static_assert(__builtin_offsetof(struct tg_tx, lock) == 4, "one word with the family");
	return READ_ONCE(*(u64 *)&tx) == family;
}

/* What `clear` of a subject says that holds nothing revoked now. */
static __always_inline u32 held_now(void)
{
	return (READ_ONCE(tx.rises) + 1) & ~MAY_HOLD;
}

/* What a step over all tasks does for those that fall. */
enum tx_step { TX_PUBLISH, TX_COMMIT, TX_BACK };

/*
 * What a pass met and could not look up so deep in the stack: named sockets,
 * shared memory. Looked up between the passes.
 */
#define TX_PENDING 512
u64 tx_pending[TX_PENDING];

static __always_inline void tx_defer_lookup(u64 key)
{
	u32 n = tx.pending;

	if (n >= TX_PENDING) {
		tx.overflow = 1;
		return;
	}
	tx_pending[BOUND(n, TX_PENDING)] = key;
	tx.pending = n + 1;
}

/* The transaction's own records are written here: a stack is too small for them. */
struct tg_note tx_note;
struct tg_note tx_cause; /* what is observed, or joined; and, once it was refused, why */

#endif
