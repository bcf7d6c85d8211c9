/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open files of the `capability` model that are handed over: by sockets, by pidfd_getfd(2), at a fork or an execution. */
#ifndef TIDEGATE_CAPS_TRANSFER_H
#define TIDEGATE_CAPS_TRANSFER_H

#include "lib/fdtable.h"
#include "caps/file.h"

/* How a file came to be a task's that did not open it. */
enum caps_handed {
	CAPS_HANDED = 1,
	CAPS_HANDED_PART, /* not with all that it is open for: that takes the guard */
};

/*
 * What a domain, `heir`, has of a file comes to end with what another one has. If that one were used again, it would have that anew, and
 * nothing would end with it any more. It may be used again where nothing of it `ends` by itself and the heir has all its layers: by
 * these it loses itself what they lose.
 */
__noinline int caps_spend(u32 number, u32 heir, bool ends)
{
	struct caps_domain *d = caps_domain_at(number);

	if (d->number == number && (ends || !caps_is_within(caps_domain_at(heir), d)))
		d->spent = 1;
	return 0;
}

/*
 * One that handed it over: what it has bounds what there is to be had, and says whether a socket was connected or bound. False: it has ended,
 * or there are too many.
 */
static __always_inline bool caps_from(struct caps_active *a, u64 file, struct caps_active *from)
{
	u32 i, k = 0;

	if (caps_ended_with(from, file, false))
		return false;
	a->counted |= from->counted;
	a->wanted |= from->wanted & (CAPS_CONNECT | CAPS_BIND);
	bpf_for(i, 0, CAPS_ANCESTORS + 1) {
		u32 one = i ? from->ancestors[BOUND(i - 1, CAPS_ANCESTORS)] : from->domain;

		if (!one)
			break;
		caps_spend(one, a->domain, from->until || from->limited);
		bpf_for(k, 0, CAPS_ANCESTORS) {
			u32 have = a->ancestors[BOUND(k, CAPS_ANCESTORS)];

			if (have == one)
				break;
			if (!have) {
				a->ancestors[BOUND(k, CAPS_ANCESTORS)] = one;
				break;
			}
		}
		if (k >= CAPS_ANCESTORS)
			return false;
	}
	return true;
}

/* Was it handed over by its domain, or may it have been? */
static __always_inline bool caps_is_sent(struct caps_active *a, u32 domain)
{
	return a->sent || caps_domain_at(domain)->hands;
}

/*
 * What the domains that have handed a file over have in common of it; all that have it, if none is
 * known to.
 */
static __noinline bool caps_inherit(struct caps_active *a, u64 file, u32 own, u32 *had)
{
	bool sent = false;
	u32 pass, i;

	bpf_for(pass, 0, 2) {
		struct caps_active *at = caps_active_at(file, 0, 0);

		bpf_for(i, 0, CAPS_ACTIVES) {
			u64 next = at ? at->next : 0;
			u32 domain = next;

			if (!next)
				break;
			at = caps_active_at(file, domain, next >> 32);
			if (!at || domain == own)
				continue;
			if (!pass) {
				sent |= caps_is_sent(at, domain);
				continue;
			}
			if (sent && !caps_is_sent(at, domain))
				continue;
			if (!caps_from(a, file, at))
				return false;
			*had &= at->rights;
		}
	}
	return true;
}

/* The same, where the domain that hands it over is known. */
static __noinline bool caps_inherit_from(struct caps_active *a, u64 file, u32 domain, u32 *had)
{
	u32 kind;

	bpf_for(kind, CAPS_OPENED, CAPS_ADDRESSED + 1) {
		struct caps_active *at = caps_active_of(file, domain, kind);

		if (!at)
			continue;
		if (!caps_from(a, file, at))
			return false;
		*had &= at->rights;
	}
	return true;
}

/* What a domain may do by its own layers with what a file is; a file without a name it may have. */
static __noinline int caps_ask_file(u64 file, struct caps_question *q)
{
	struct file *f = CAST(struct file, file);

	return caps_ask_path(address(f->f_path.dentry), q);
}

int caps_hand_socket(u64 file, u32 domain, u32 had, bool keeps); /* net.h */

/*
 * What a domain may do with a file that was handed over, of `had`, the rights that the domains had
 * that did that.
 */
__noinline int caps_hand_asked(u64 file, u32 domain, u32 had, bool keeps)
{
	struct file *f = CAST(struct file, file);
	u32 class = caps_class_of_mode(CAST(struct inode, address(f->f_inode))->i_mode),
	    mode = caps_mode_of(f, class);
	struct caps_question q = { .domain = domain, .class = class };
	struct caps_active *a;
	int err;

	q.asked.wanted = mode;
	q.asked.beside = caps_beside(class);
	err = caps_ask_file(file, &q);
	if (err == -EAGAIN && keeps)
		return -EAGAIN;
	a = caps_active_at(file, domain, CAPS_OPENED);
	if (!a)
		return -ENOMEM;
	q.asked.given &= had;
	q.asked.extra &= had;
	caps_active_fill(a, &q);
	if (!q.asked.given && !keeps)
		return -EACCES;
	return q.asked.given == mode ? CAPS_HANDED : CAPS_HANDED_PART;
}

/*
 * A file that the current task has not opened becomes one of a domain's: enum caps_handed, or an errno. `from`: a domain that it is
 * kept from; 0: it was received. What the domain may do nothing with it gets with no rights where it is kept, and else not.
 */
__noinline int caps_hand(u64 file, u32 domain, u32 from)
{
	struct file *f = CAST(struct file, file);
	struct inode *inode = CAST(struct inode, address(f->f_inode));
	bool socket = inode->i_sb->s_magic == SOCKFS_MAGIC, keeps = from;
	struct caps_active *a;
	u32 had = ~0u;

	if (f->f_mode & FMODE_PATH || (!socket && caps_is_nameless(inode)))
		return CAPS_HANDED;
	if (caps_is_queue(inode))
		return -EACCES;
	a = caps_active_at(file, domain, CAPS_OPENED);
	if (a && !keeps) {
		if (socket ? !a->rights : caps_mode_of(f, a->class) & ~a->rights)
			return -EACCES;
		return CAPS_HANDED;
	}
	if (a)
		caps_active_anew(a);
	else
		a = caps_active_made(file, domain, CAPS_OPENED);
	if (!a)
		return -ENOMEM;
	if (!(from ? caps_inherit_from(a, file, from, &had) :
		     caps_inherit(a, file, domain, &had))) {
		a->class = socket ? CAPS_UNIX : caps_class_of_mode(inode->i_mode);
		a->revoked = 1;
		return keeps ? CAPS_HANDED_PART : -EACCES;
	}
	return socket ? caps_hand_socket(file, domain, had, keeps) :
			caps_hand_asked(file, domain, had, keeps);
}

/* Marks what a domain has of a file as handed over by it. */
static __noinline int caps_sent(u64 file, u32 domain)
{
	u32 kind;

	bpf_for(kind, CAPS_OPENED, CAPS_ADDRESSED + 1) {
		struct caps_active *a = caps_active_of(file, domain, kind);

		if (!a)
			continue;
		a->sent = 1;
		/* it may be received once it has ended, and must have ended then */
		if (a->until || a->limited)
			caps_domain_at(a->domain)->spent = 1;
	}
	return 0;
}

static __noinline int caps_hand_refused(struct file *file)
{
	struct tg_note n = { .op = TG_OP_RECEIVE_FD, .class = TG_C_FILE };
	struct caps_question q = {};
	u32 class = caps_class_of_mode(file->f_inode->i_mode);

	caps_begin(&q, class, caps_mode_of(file, class), 0);
	n.dentry = file_dentry(file);
	n.inode = address(file->f_inode);
	q.why = CAPS_MISSING;
	return verdict_of(caps_refuse(&q, &n));
}

/* A descriptor comes through a socket, or by pidfd_getfd(2). */
SEC("lsm.s/file_receive")
int BPF_PROG(caps_file_receive, struct file *file)
{
	struct caps_task *t = caps_tasks_current();
	int handed;

	if (!t || !t->domain)
		return 0;
	handed = caps_hand(address(file), t->domain, 0);
	if (handed == CAPS_HANDED || (handed == CAPS_HANDED_PART && caps_guard()))
		return 0;
	return caps_hand_refused(file);
}

/*
 * What a task holds becomes a domain's to which it has come from another by what it executes or maps; false: that could not be done
 * for all. What the domain may not use is left to the guard.
 */
static __noinline bool caps_hand_all(u32 domain, u32 from)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct fdtable *fdt =
		CAST(struct fdtable, CAST(struct files_struct, address(me->files))->fdt);
	struct file **fds = fdt->fd;
	u32 i, max = fdt->max_fds;
	bool part = false;

	if (max > FDTABLE_MAX)
		return false;
	bpf_for(i, 0, max) {
		u64 at = 0;
		int handed;

		bpf_probe_read_kernel(&at, sizeof(at), fds + i);
		if (!at)
			continue;
		handed = caps_hand(at, domain, from);
		if (handed < 0)
			return false;
		part |= handed != CAPS_HANDED;
	}
	return !part || caps_guard();
}

#endif
