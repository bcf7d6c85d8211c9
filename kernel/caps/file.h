/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `capability` model: files that are opened. */
#ifndef TIDEGATE_CAPS_FILE_H
#define TIDEGATE_CAPS_FILE_H

#include "lib/file.h"
#include "lib/inode_kind.h"
#include "core/wait.h"
#include "caps/active.h"

/* Set by user space once the guard is attached, cleared before it goes. */
u32 caps_guard_armed GLOBAL_OF(caps);

/* Is it without a name, by which somebody could be given it? Such a thing is whoever's has it. */
static __always_inline bool caps_is_nameless(struct inode *inode)
{
	u64 magic = inode->i_sb->s_magic;

	if (inode->i_flags & S_PRIVATE || fs_is_anonymous(magic))
		return true;
	if (magic == PIPEFS_MAGIC || magic == SOCKFS_MAGIC || magic == NSFS_MAGIC ||
	    magic == PIDFS_MAGIC || magic == DMA_BUF_MAGIC)
		return true;
	/* memory that is given out by descriptors */
	return inode->i_sb->s_flags & SB_KERNMOUNT &&
	       (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC);
}

/*
 * A message queue has no hook but those for its name: what was given of it could not be taken back. So it is nobody's, like System
 * V's.
 */
static __always_inline bool caps_is_queue(struct inode *inode)
{
	return (inode->i_mode & S_IFMT) == S_IFREG && inode->i_sb->s_magic == MQUEUE_MAGIC;
}

static __always_inline u32 caps_class_of_mode(u32 mode)
{
	return (mode & S_IFMT) == S_IFDIR ? CAPS_DIR : CAPS_FILE;
}

/* What of an open file is a bind operation's to ask for. */
static __always_inline u32 caps_mode_of(struct file *file, u32 class)
{
	u32 wanted = 0;

	if (file->f_mode & FMODE_READ)
		wanted |= CAPS_READ;
	if (class == CAPS_FILE && file->f_mode & FMODE_WRITE)
		wanted |= file->f_flags & O_APPEND ? CAPS_APPEND : CAPS_WRITE;
	/* for neither, which Linux opens as if for both: a device does what it does then */
	return wanted || class == CAPS_DIR ? wanted : CAPS_READ | CAPS_WRITE;
}

/* Has the guard attached; false: it was not in time. */
static __noinline bool caps_guard(void)
{
	struct tg_note n = { .kind = TG_E_GUARD, .class = TG_C_CAPS, .source = ~0u };

	if (__sync_fetch_and_or(&caps_guard_armed, 0))
		return true;
	audit(&n);
	return guard_wait(&caps_guard_armed);
}

/* Binds what an open file is to a domain, the current task's or the one that it comes to be in. */
static __noinline int caps_open_asked(struct file *file, u32 domain, u32 wanted)
{
	struct tg_note n = { .op = wanted & CAPS_WRITE ? TG_OP_OPEN_WRITE : TG_OP_OPEN_READ,
			     .class = TG_C_FILE };
	u32 class = caps_class_of_mode(file->f_inode->i_mode);
	struct caps_question q = { .domain = domain, .class = class };
	struct caps_active *a;
	int err;

	n.dentry = file_dentry(file);
	n.inode = address(file->f_inode);
	q.asked.wanted = wanted;
	q.asked.beside = caps_beside(class);
	err = caps_ask_path(n.dentry, &q);
	if (err == -EAGAIN)
		return -EAGAIN;
	if (err || q.asked.given != wanted)
		return verdict_of(caps_refuse(&q, &n));
	a = caps_active_made(address(file), domain, CAPS_OPENED);
	if (!a)
		return -ENOMEM;
	caps_active_fill(a, &q);
	return 0;
}

/*
 * Is the current task to be asked? Not where the kernel acts for it with other credentials, as on what is behind an overlay,
 * which was asked about itself; but where it writes its memory down.
 */
static __always_inline bool caps_asks(void)
{
	struct task_struct *me = bpf_get_current_task_btf();

	return caps_me() &&
	       (address(me->cred) == address(me->real_cred) || me->flags & PF_DUMPCORE);
}

SEC("lsm/file_open")
int BPF_PROG(caps_file_open, struct file *file)
{
	struct caps_task *t = caps_tasks_current();
	u32 class, wanted;

	if (!t || !caps_asks())
		return 0;
	if (caps_is_queue(file->f_inode))
		return caps_deny(CAPS_NOBODYS, TG_OP_IPC, TG_C_IPC);
	/* to be executed, which the execution is asked about, and mapping */
	if (opened_to_execute(file) || caps_is_nameless(file->f_inode))
		return 0;
	class = caps_class_of_mode(file->f_inode->i_mode);
	wanted = caps_mode_of(file, class);
	if (file->f_flags & O_TMPFILE_FLAG)
		wanted |= CAPS_CREATE;
	return caps_open_asked(file, t->domain, wanted);
}

#endif
