/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `capability` model: mappings, which are uses of an open file; and where they are code, libraries. */
#ifndef TIDEGATE_CAPS_MMAP_H
#define TIDEGATE_CAPS_MMAP_H

#include "caps/exec.h"
#include "caps/use.h"

/* The program that a process runs: its text may be mapped again. */
static __always_inline bool caps_is_program(struct file *file)
{
	struct mm_struct___ps *mm =
		CAST(struct mm_struct___ps, address(bpf_get_current_task_btf()->mm));

	return mm &&
	       address(CAST(struct file, address(mm->exe_file))->f_inode) == address(file->f_inode);
}

/* Code is mapped: a library, which is asked for by its name. `narrows`: the domain that it brings about, 0: none. */
static __noinline int caps_load_asked(struct file *file, u32 *narrows)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP };
	struct caps_question q = {};
	u32 domain;
	int err;

	*narrows = 0;
	/* the program itself was asked about as such */
	if (!caps_begin(&q, CAPS_LIBRARY, CAPS_LOAD, 0) || caps_is_program(file))
		return 0;
	n.dentry = file_dentry(file);
	n.inode = address(file->f_inode);
	err = caps_ask_path(n.dentry, &q);
	if (err == -EAGAIN)
		return -EAGAIN;
	domain = !err && q.asked.given ? caps_brought(&q, q.domain) : 0;
	if (domain) {
		*narrows = domain == q.domain ? 0 : domain;
		return 0;
	}
	if (!err && q.asked.given)
		q.why = CAPS_TOO_MANY;
	return verdict_of(caps_refuse(&q, &n));
}

static __always_inline int caps_load(struct file *file, bool may_sleep)
{
	u32 narrows;
	int err = caps_load_asked(file, &narrows);

	return err || !narrows ? err : caps_narrowed(narrows, may_sleep);
}

/* 0; 1: so far, and code remains to be asked about. */
static __always_inline int caps_map_asked(struct file *file, u32 prot, bool shared)
{
	/* memory that may only be written is read as well, and memory for nothing by ptrace(2) */
	u32 right = CAPS_READ;
	struct caps_domain *me = caps_me();
	int err = 0;

	if (!me || !address(file) || caps_is_nameless(file->f_inode))
		return 0;
	if (shared && prot & PROT_WRITE_FLAG)
		right |= CAPS_WRITE;
	if (caps_is_used(file, me->number))
		err = caps_use(address(file), right, TG_OP_MMAP);
	return err ? err : !!(prot & PROT_EXEC_FLAG);
}

SEC("lsm.s/mmap_file")
int BPF_PROG(caps_mmap_file, struct file *file, unsigned long reqprot, unsigned long prot,
	     unsigned long flags)
{
	int err = file && caps_me() ? caps_map_asked(file, prot, flags & MAP_TYPE_SHARED) : 0;

	return err <= 0 ? err : caps_load(file, true);
}

/*
 * A file of an overlay is mapped by what is behind it, which may do then what the overlay's may, and ends with that. Not what others have a
 * part in, whose own ends would not be known of it.
 */
SEC("?lsm/mmap_backing_file")
int BPF_PROG(caps_mmap_backing_file, struct vm_area_struct *vma, struct file *backing,
	     struct file *file)
{
	struct caps_task *t = caps_tasks_current();
	struct caps_active *from, *a;

	if (!t || !t->domain)
		return 0;
	from = caps_active_of(address(file), t->domain, CAPS_OPENED);
	if (!from)
		return 0;
	if (from->ancestors[0])
		return caps_deny(CAPS_NOT_BOUND, TG_OP_MMAP, TG_C_MMAP);
	a = caps_active_made(address(backing), t->domain, CAPS_OPENED);
	if (!a)
		return -ENOMEM;
	caps_active_like(a, from);
	return 0;
}

SEC("lsm/file_mprotect")
int BPF_PROG(caps_file_mprotect, struct vm_area_struct *vma, unsigned long reqprot,
	     unsigned long prot)
{
	struct file *file = vma->vm_file;
	int err = file && caps_me() ?
			  caps_map_asked(file, prot,
					 CAST(struct vm_area_struct, address(vma))->vm_flags &
						 VM_SHARED) :
			  0;

	return err <= 0 ? err : caps_load(file, false);
}

#endif
