/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: mappings. */
#ifndef TIDEGATE_TE_MMAP_H
#define TIDEGATE_TE_MMAP_H

#include "lib/overlay.h"
#include "te/file.h"

/* Memory without a file, or whose file is the kernel's own: System V shared memory. */
static __always_inline bool te_is_nobodys(u64 file)
{
	return !file || CAST(struct inode, CAST(struct file, file)->f_inode)->i_flags & S_PRIVATE;
}

/* Memory is made that can be written, or was, and be executed. */
static __always_inline bool te_map_is_code(struct file *file, u32 prot, bool shared)
{
	return prot & PROT_EXEC_FLAG &&
	       (te_is_nobodys(address(file)) || (!shared && prot & PROT_WRITE_FLAG));
}

/*
 * What is mapped of an overlay's file is behind it. Asked about is the overlay's, as when it was
 * mapped; the task that opened that is known no more.
 */
static __noinline int te_behind_asked(u64 file, u32 request)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_FILE };
	struct te_query q = { .source = te_met().sid, .request = request };

	n.dentry = address(path_opened(file)->dentry);
	n.inode = address(CAST(struct dentry, n.dentry)->d_inode);
	q.target = te_inode_peek(n.inode, n.dentry);
	q.class = te_class_of_inode(n.inode);
	if (q.target == TE_LATER)
		return verdict_of(te_no_decision(&q, &n));
	return te_avc_has_perm(q.source, q.target, q.class, request, &n);
}

static __always_inline int te_mapped_asked(struct file *file, u32 request)
{
	if (address(file) && file_is_behind(address(file)))
		return te_behind_asked(address(file), request);
	return te_file_asked(file, request, TG_OP_MMAP);
}

static __always_inline u32 te_map_request(u32 prot, bool shared)
{
	u32 request = FILE__READ;

	if (shared && prot & PROT_WRITE_FLAG)
		request |= FILE__WRITE;
	if (prot & PROT_EXEC_FLAG)
		request |= FILE__EXECUTE;
	return request;
}

/* file_map_prot_check() */
static __always_inline int te_map_asked(struct te_who *who, struct file *file, u32 prot,
					bool shared, struct tg_note *n)
{
	int err = 0;

	if (te_map_is_code(file, prot, shared))
		err = te_avc_has_perm(who->sid, who->sid, SECCLASS_PROCESS, PROCESS__EXECMEM, n);
	if (err || !file)
		return err;
	return te_mapped_asked(file, te_map_request(prot, shared));
}

/*
 * SELinux asks for `map` and then for the rest. Where a hint allows all of it, that is one
 * question; the hint knows nothing of the task that has opened the file.
 */
static __noinline bool te_map_is_hinted(struct file *file, u32 prot, bool shared)
{
	if (!address(file) || te_map_is_code(file, prot, shared) ||
	    te_opener(address(file), te_me().sid))
		return false;
	return te_inode_is_hinted(file->f_inode, FILE__MAP | te_map_request(prot, shared));
}

SEC("lsm/mmap_file")
int BPF_PROG(te_mmap_file, struct file *file, unsigned long reqprot, unsigned long prot,
	     unsigned long flags)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP };
	struct te_who who = te_me();
	bool shared = flags & MAP_TYPE_SHARED;
	int err = 0;

	if (!who.subject)
		return 0;
	if (file) {
		if (te_map_is_hinted(file, prot, shared))
			return 0;
		err = te_file_asked(file, FILE__MAP, TG_OP_MMAP);
	}
	return err ? err : te_map_asked(&who, file, prot, shared, &n);
}

SEC("lsm/mmap_addr")
int BPF_PROG(te_mmap_addr, unsigned long addr)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP };
	struct te_who who;

	/* CONFIG_LSM_MMAP_MIN_ADDR */
	if (addr >= 65536)
		return 0;
	who = te_me();
	if (!who.subject)
		return 0;
	return te_avc_has_perm(who.sid, who.sid, SECCLASS_MEMPROTECT, MEMPROTECT__MMAP_ZERO, &n);
}

SEC("lsm/file_mprotect")
int BPF_PROG(te_file_mprotect, struct vm_area_struct *vma, unsigned long reqprot,
	     unsigned long prot)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP };
	struct te_who who = te_me();
	struct vm_area_struct *v;
	struct file *file;
	u64 start, end;
	int err = 0;

	if (!who.subject)
		return 0;
	v = CAST(struct vm_area_struct, address(vma));
	file = vma->vm_file;
	if (prot & PROT_EXEC_FLAG && !(v->vm_flags & VM_EXEC)) {
		struct mm_struct *mm = CAST(struct mm_struct, address(v->vm_mm));

		start = v->vm_start;
		end = v->vm_end;
		if (start < mm->brk && end > mm->start_brk)
			err = te_avc_has_perm(who.sid, who.sid, SECCLASS_PROCESS, PROCESS__EXECHEAP,
					      &n);
		else if (!v->vm_file && start <= mm->start_stack && end >= mm->start_stack)
			err = te_avc_has_perm(who.sid, who.sid, SECCLASS_PROCESS,
					      PROCESS__EXECSTACK, &n);
		else if (file && v->anon_vma)
			err = te_mapped_asked(file, FILE__EXECMOD);
	}
	return err ? err : te_map_asked(&who, file, prot, v->vm_flags & VM_SHARED, &n);
}

#endif
