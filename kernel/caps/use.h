/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `capability` model: the uses of an open file. */
#ifndef TIDEGATE_CAPS_USE_H
#define TIDEGATE_CAPS_USE_H

#include "caps/transfer.h"

/* Is what is done by a file a use of it? The execution's own mappings are of one that nobody has bound. */
static __always_inline bool caps_is_used(struct file *file, u32 domain)
{
	return !opened_to_execute(file) || caps_active_of(address(file), domain, CAPS_OPENED);
}

/* A use of an open file. */
static __noinline int caps_use(u64 file, u32 right, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_FILE };
	struct caps_question q = {};
	struct caps_active *a;
	struct caps_domain *d = caps_begin(&q, CAPS_FILE, right, 0);
	struct caps_session *s;

	if (!d)
		return 0;
	a = caps_active_of(file, q.domain, CAPS_OPENED);
	if (a) {
		q.class = a->class;
		if (right & ~a->rights)
			q.why = a->revoked ? CAPS_REVOKED : CAPS_NOT_BOUND;
		else if (caps_is_shut_for(a, q.domain))
			q.why = CAPS_REVOKED;
		else
			q.why = caps_ended_with(a, file, right & a->counted);
	} else {
		/* nobody governed opened it: what was taken from the task's layers is taken */
		s = caps_session_at(d->session);
		if (s->taken && !caps_is_nameless(CAST(
					struct inode, address(CAST(struct file, file)->f_inode)))) {
			caps_ask_file(file, &q);
			if (q.why != CAPS_REVOKED)
				q.why = 0;
		}
	}
	if (!q.why)
		return 0;
	n.dentry = address(CAST(struct file, file)->f_path.dentry);
	n.inode = address(CAST(struct file, file)->f_inode);
	return verdict_of(caps_refuse(&q, &n));
}

SEC("lsm/file_lock")
int BPF_PROG(caps_file_lock, struct file *file)
{
	return caps_me() && !caps_is_nameless(file->f_inode) ?
		       caps_use(address(file), CAPS_LOCK, TG_OP_LOCK) :
		       0;
}

#endif
