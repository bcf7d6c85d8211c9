/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: mappings of files. */
#ifndef TIDEGATE_LOMAC_MMAP_H
#define TIDEGATE_LOMAC_MMAP_H

#include "lomac/authority.h"

/*
 * No hook tells of the mapping of the inode behind an overlay. It has been opened by a
 * name of its own, but to be executed: an ELF interpreter is observed here.
 */
static __noinline int map_overlay(struct file *file, bool writes, bool executes)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP, .source = ~0u };
	struct tg_subject *s = subject_current();

	if (executes && s && s->exec_behind && s->exec_behind - 1 < subject_observes(s) &&
	    !(s->attrs & TG_NODEMOTE)) {
		int err;

		n.object = s->exec_behind - 1;
		err = fall(s, s->exec_behind - 1, &n, true);
		if (err)
			return err;
	}
	if (writes && subject_level(s) < policy.top)
		return refuse(file->f_inode, file_dentry(file),
			      label_make(policy.top, 0, TG_FROM_KIND, policy.seqno), TG_OP_MMAP,
			      TG_C_MMAP);
	return 0;
}

/* The current subject loads code that the top level alone may not have had in hand: a trusted one does not. */
static __noinline int load_code(struct file *file)
{
	struct tg_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP };
	struct inode *inode = file->f_inode;
	struct tg_subject *s = subject_current();
	struct lomac_object o;
	u64 label;

	if (!s || !(s->attrs & LOMAC_TRUST))
		return 0;
	label = inode_is_memory(inode) ? memory_label(inode, file_dentry(file), TG_C_MMAP) :
					 label_of(inode, file_dentry(file), TG_C_MMAP);
	o = lomac_object_of_label(label);
	/* of the top's nothing is refused because a label cannot be known now */
	if (lomac_is_code(o, policy.top) || (!o.known && s->level >= policy.top))
		return 0;
	note_object(&n, inode, file_dentry(file), label);
	n.reason = TG_R_TRUST;
	return deny(s, &n, refusal(&n, label));
}

/*
 * Does a mapping load code? All that the dynamic loader maps does, which says MAP_DENYWRITE: a library without any code to be
 * executed has its addresses written all the same. What else may be executed does, unless it has no name: that is code which
 * a program makes as it runs.
 */
static __always_inline bool loads_code(struct inode *inode, unsigned long prot, unsigned long flags)
{
	return flags & MAP_DENYWRITE ||
	       (prot & PROT_EXEC && inode->i_nlink && (inode->i_mode & S_IFMT) == S_IFREG);
}

/* What a socket sends out of a ring that is mapped, it sends at a poll(2), too, which no hook is asked about. */
static __noinline int map_socket(struct file *file)
{
	struct socket *sock = CAST(struct socket, address(file->private_data));
	struct sock *sk = CAST(struct sock, address(sock->sk));

	return sk ? use_socket(sk) : 0;
}

/* A mapping is bound here once; its loads and stores are never seen again. */
SEC("lsm.s/mmap_file")
int BPF_PROG(lomac_mmap_file, struct file *file, unsigned long reqprot, unsigned long prot,
	     unsigned long flags)
{
	struct inode *inode;
	u32 mode = 0;

	if (!file)
		return 0;
	inode = file->f_inode;
	if (loads_code(inode, prot, flags) &&
	    !(inode->i_nlink &&
	      lomac_is_code(lomac_object_of_label(label_hint(inode)), policy.top))) {
		int err = load_code(file);

		if (err)
			return err;
	}
	if (prot & (PROT_READ | PROT_EXEC))
		mode |= FMODE_READ;
	/* MAYWRITE is enough: mprotect may come later */
	if ((flags & MAP_TYPE) != MAP_PRIVATE && file->f_mode & FMODE_WRITE)
		mode |= FMODE_WRITE;
	if (!mode)
		return 0;
	count_query(TG_C_MMAP);
	if (fs_magic(inode) == SOCKFS_MAGIC && mode & FMODE_WRITE)
		return map_socket(file);
	if (fs_magic(inode) == OVERLAYFS_MAGIC)
		return map_overlay(file, mode & FMODE_WRITE, prot & PROT_EXEC);
	if (inode_is_memory(inode))
		return bind_memory(file, mode);
	return bind(file, mode, TG_OP_MMAP, TG_C_MMAP);
}

#endif
