/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Revocation in the `capability` model: mappings that a domain may not use any more. The steps are in
 * crates/monitor/src/caps/revoke.rs. User space enters what is taken (session.h) and counts the revocation. From then on each
 * question is decided by it (caps_taken_from() of ask.h), and each active capability is checked once (caps_is_lost() of
 * active.h). Then user space attaches the guard and has each governed thread be seen outside of the call that it began
 * before. It kills each process that has such a mapping.
 */
#ifndef TIDEGATE_CAPS_REVOKE_H
#define TIDEGATE_CAPS_REVOKE_H

#include "lib/look.h"
#include "caps/use.h"

/* A mapping that its holder may not use any more. */
struct tg_caps_held {
	u64 ino;
	u32 dev;
	u32 pid; /* thread group id */
	u32 tid;
	u32 fd;      /* ~0; LOOK_BLOCKED: it could not be looked at */
	u32 session; /* place */
	u32 denied;  /* permissions */
	u32 revoked; /* it was taken back, and has not ended otherwise */
	u32 pad;
};

const struct tg_caps_held *type_caps_held GLOBAL_OF(caps);

/* What of a mapped file's use a domain has lost; `why`: how, where it has lost all of it. */
static __noinline u32 caps_mapping_lost(u64 file, u32 domain, u32 rights, u32 *why __arg_nonnull)
{
	struct caps_domain *d = caps_domain_at(domain);
	struct caps_active *a = caps_active_of(file, domain, CAPS_OPENED);
	struct caps_question q = { .domain = domain, .class = CAPS_FILE };

	*why = 0;
	if (a) {
		*why = caps_is_shut_for(a, domain) ? CAPS_REVOKED : caps_ended_with(a, file, false);
		return *why ? rights : rights & ~a->rights & (CAPS_READ | CAPS_WRITE);
	}
	if (!caps_session_at(d->session)->taken)
		return 0;
	caps_ask_file(file, &q);
	*why = q.why;
	return q.why == CAPS_REVOKED ? rights : 0;
}

/* Enters what a domain has lost of a mapping; nothing that was taken back is entered over. */
__noinline bool caps_held_mapping(u64 at, u32 domain, struct tg_caps_held *line __arg_nonnull)
{
	struct vm_area_struct *vma = CAST(struct vm_area_struct, at);
	struct file *file = CAST(struct file, address(vma->vm_file));
	u32 rights = CAPS_READ, denied, why = 0;
	struct inode *inode;

	if (!address(file))
		return false;
	inode = CAST(struct inode, address(file->f_inode));
	if (caps_is_nameless(inode) || !caps_is_used(file, domain))
		return false;
	if (vma->vm_flags & VM_WRITE && vma->vm_flags & VM_SHARED)
		rights |= CAPS_WRITE;
	denied = caps_mapping_lost(address(file), domain, rights, &why);
	if (!denied)
		return false;
	line->denied = denied;
	line->ino = inode->i_ino;
	line->dev = inode->i_sb->s_dev;
	line->revoked = why == CAPS_REVOKED;
	return line->revoked;
}

/* One mapping of each process that has such, of those that were taken back if there are. */
SEC("iter/task")
int ps_caps_vma(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct tg_caps_held line = { .fd = ~0u };
	struct vm_area_struct *vma;
	struct caps_task *t;
	struct look look;
	bool found = false;
	u32 domain;

	if (!task)
		return 0;
	t = caps_tasks_task(task);
	if (!t || !t->domain || !look_begins(&look, task, seq))
		return 0;
	domain = t->domain;
	bpf_for_each(task_vma, vma, task, 0) {
		look.seen++;
		found = caps_held_mapping(address(vma), domain, &line);
		if (found)
			break;
	}
	if (!found) {
		u32 end = look_ends(&look, task);

		if (end == LOOK_AGAIN || (end == LOOK_WHOLE && !line.denied))
			return end;
		if (end == LOOK_GIVEN_UP)
			line.fd = LOOK_BLOCKED;
	}
	line.session = caps_domain_at(domain)->session;
	line.pid = task->tgid;
	line.tid = task->pid;
	bpf_seq_write(seq, &line, sizeof(line));
	return 0;
}

static long caps_settle_one(void *map, struct caps_active_key *key, struct caps_active *a,
			    void *data)
{
	if (key->domain)
		caps_ended(a);
	return 0;
}

/* Before a session's place is used again: what is to be told of its revocations is told. */
SEC("syscall")
int ps_caps_settle(void *ctx)
{
	bpf_for_each_map_elem(&caps_actives, caps_settle_one, NULL, 0);
	return 0;
}

#endif
