/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a hook's program has a step of the transaction taken, without having the transaction in it: it takes the verifier longer than
 * all else that lomac has, and 16 hooks may begin one. So one program has it (steps.h), as lib/served.h explains. The steps run in
 * the turn of the task that has the lock.
 *
 * Invariant: a step that was not taken is known not to have been (tx.served), and what asked for it is refused: the program may be
 * detached. A task that calls it and asks for nothing gets nothing.
 */
#ifndef TIDEGATE_LOMAC_DEMOTE_SERVE_H
#define TIDEGATE_LOMAC_DEMOTE_SERVE_H

#include "lib/served.h"
#include "lomac/demote/state.h"

SERVED_BY(serves);

/* What is to be done next. */
enum tx_at {
	TX_AT_BACK,   /* a transaction that was left undone is put back, and that is all */
	TX_AT_BEGIN,  /* the same, and another one begins */
	TX_AT_ENTER,  /* the current subject is looked at */
	TX_AT_ROUND,  /* a round begins: */
	TX_AT_PASS,   /* passes over all tasks, until one changes nothing */
	TX_AT_FOUND,  /* which tasks fall is known */
	TX_AT_GUARD,  /* the guard was asked for */
	TX_AT_HIDDEN, /* an end that no table shows was waited for */
	TX_AT_SEEK,   /* what is moved about is looked for */
	TX_AT_PAUSE,  /* before that is done again */
	TX_AT_SETTLE, /* the levels are published, and threads come to rest */
	TX_AT_LOOK,   /* they are at rest, and what they have is looked at */
	TX_AT_END,    /* all is found: floors, the record, and the levels for good */
	TX_AT_DONE,
};

/*
 * A kernel skips a program that this processor was about to leave in the middle. That is none of ours, which
 * the lock keeps apart, but a call of others' with another map.
 */
#define TX_SERVES 64

/* Has the step tx.at taken; for the task that is inside. False: it was not. */
__noinline bool tx_serve(void)
{
	u32 i;

	tx.served = tx.rests = 0;
	WRITE_ONCE(tx.asks, address(bpf_get_current_task_btf()));
	bpf_for(i, 0, TX_SERVES) {
		SERVE(serves);
		if (READ_ONCE(tx.served))
			break;
	}
	WRITE_ONCE(tx.asks, 0);
	return READ_ONCE(tx.served);
}

#endif
