/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the profile model: files that are opened, used and received. */
#ifndef TIDEGATE_PROFILE_FILE_H
#define TIDEGATE_PROFILE_FILE_H

#include "lib/inode_kind.h"
#include "profile/path/fast.h"

/* A file, or a name that a file is to have, and what is asked for. */
struct tg_asked {
	u64 dentry;
	u64 mnt;
	u64 inode; /* for the record, 0: there is none yet */
	u32 request;
	u32 uid; /* its owner */
	u8 dir;
	u8 mine; /* being made: its owner is the task */
	u8 op;   /* enum tg_op */
	u8 class;
	u32 pad;
};

/* A path that no rule can be asked about: profiles that have it refused do so in any mode. */
static __always_inline int name_refuse(long error, u32 request, struct tg_note *n)
{
	if (error == NAME_DISCONNECTED)
		return profile_refuse(request, TG_R_DISCONNECTED, -EACCES, n);
	return profile_refuse(request, TG_R_BUSY, error == NAME_TOO_LONG ? -ENAMETOOLONG : -EAGAIN,
			      n);
}

/* A name that is asked about by the rules of `who`. */
static __always_inline void name_for(struct tg_name *n, struct tg_who *who, u64 dentry, u64 mnt,
				     bool dir)
{
	struct tg_profile __arena *p = ARENA_PTR(struct tg_profile, who->profile);

	n->dentry = dentry;
	n->mnt = mnt;
	n->number = who->number;
	n->by = who->profile;
	n->table = p->file.table;
	n->start = p->file.start;
	n->flags = p->path_flags;
	n->disconnected = p->disconnected;
	n->disconnected_len = p->disconnected_len;
	n->end = dir ? NAME_DIR : NAME_FILE;
	n->locked = 0;
	n->tries = TG_TRIES;
}

/* Has it lost its name, where the profile does not decide about such by that? */
static __always_inline bool is_gone(struct tg_who *who, u64 dentry)
{
	struct dentry *d = CAST(struct dentry, dentry);

	return !d->d_hash.pprev && (u64)d->d_parent != dentry && d->d_inode &&
	       !(ARENA_PTR(struct tg_profile, who->profile)->path_flags & PATH_MEDIATE_DELETED);
}

/* What has no path (pipes, sockets, anonymous inodes, memfds): path_mediated_fs(). */
static __always_inline bool has_path(struct dentry *d)
{
	return !(d->d_sb->s_flags & SB_NOUSER);
}

/* What becomes of a request that is not simply allowed. */
static __noinline int file_says(struct tg_asked *a, struct tg_name *name, struct tg_who *who,
				long state)
{
	u32 owner = a->mine ? OWNER_SELF : owner_by(a->uid, a->mnt);
	struct tg_note note = {
		.op = a->op, .class = a->class, .dentry = a->dentry, .inode = a->inode
	};

	if (state < 0)
		return name_refuse(state, a->request, &note);
	return profile_decide(who, perms_by(name->table, state, owner), a->request, -EACCES, &note);
}

/* May the current task, which c confines, have this? `name` is room. */
__noinline int file_asked(struct tg_asked *a, struct tg_name *name, struct tg_confined *c)
{
	struct tg_who who;
	long state;
	u32 try;

	if (!a || !name || !c)
		return -EACCES;
	if (a->mine)
		c->made = 0;
	for (try = 0; try < PROFILE_TRIES; try++) {
		bool simply;

		who = who_of(c);
		if (!who.profile)
			return 0;
		name_for(name, &who, a->dentry, a->mnt, a->dir);
		state = 0;
		if (name->table)
			/* what is made, or just was moved, is not remembered */
			state = a->mine || a->op == TG_OP_RENAME ? NAME_LATER :
								   name_recall_placed(name);
		if (state == NAME_LATER) {
			name->locked = a->class == TG_C_DIR;
			/* what is remembered is none of these, and what has no path has no names that change */
			if (mount_is_private(a->mnt) ||
			    (!name->locked && !has_path(CAST(struct dentry, a->dentry))))
				return 0;
			state = name_state_led(name);
		}
		simply = state >= 0 && is_simply_allowed(&who, name->table, state, a->request);
		if (policy_seqno() != who.number)
			continue;
		if (!simply)
			return file_says(a, name, &who, state);
		if (a->mine)
			name_is_made(&who, a->dentry, name->table, state);
		return 0;
	}
	return file_says(a, name, &who, NAME_LATER);
}

/* The same, of one name alone. */
static __always_inline int one_asked(struct tg_asked *a, struct tg_confined *c)
{
	struct tg_name name;

	return verdict_of(file_asked(a, &name, c));
}

static __always_inline void asked_of(struct tg_asked *a, struct inode *inode)
{
	a->inode = address(inode);
	a->uid = inode->i_uid.val;
	a->dir = (inode->i_mode & S_IFMT) == S_IFDIR;
}

/* What an open file was opened for: aa_map_file_to_perms() of the kernel. */
static __always_inline u32 open_request(u32 mode, u32 flags)
{
	u32 request = 0;

	if (mode & FMODE_WRITE)
		request |= flags & O_APPEND ? MAY_APPEND_ : MAY_WRITE_;
	if (mode & FMODE_READ)
		request |= MAY_READ_;
	if (flags & O_TRUNC)
		request |= MAY_WRITE_;
	if (flags & O_CREAT)
		request |= MAY_CREATE_;
	return request;
}

static __always_inline int file_request(struct tg_confined *c, struct file *file, u32 request,
					u8 op)
{
	struct tg_asked a = {};

	a.dentry = address(file->f_path.dentry);
	a.mnt = address(file->f_path.mnt);
	asked_of(&a, file->f_inode);
	a.request = request;
	a.op = op;
	a.class = TG_C_FILE;
	return one_asked(&a, c);
}

static __always_inline bool file_quickly(struct tg_confined *c, struct file *file, u32 request)
{
	return path_quickly(c, &file->f_path, (file->f_inode->i_mode & S_IFMT) == S_IFDIR, request);
}

SEC("lsm/file_open")
int BPF_PROG(profile_file_open, struct file *file)
{
	struct tg_confined *c = profile_subjects_current();
	u32 request;

	/* an execution is decided by the rules on executions */
	if (!c || opened_to_execute(file))
		return 0;
	request = open_request(file->f_mode, file->f_flags);
	if ((c->made && made_is_opened(c, file, request)) || file_quickly(c, file, request))
		return 0;
	return file_request(c, file, request,
			    file->f_mode & FMODE_WRITE ? TG_OP_OPEN_WRITE : TG_OP_OPEN_READ);
}

static __noinline int mapping_asked(struct file *file, u32 request)
{
	struct tg_confined *c = profile_subjects_current();

	return c && !file_quickly(c, file, request) ? file_request(c, file, request, TG_OP_MMAP) :
						      0;
}

/*
 * A mapping for execution; reading and writing were decided when the file was opened, but for
 * what is above an end at which alone it may be written. A program's own file, and its interpreter,
 * were opened by what it was before: if another profile confined that, this one decides about
 * them, too. Most mappings are of none of these, and leave early.
 */
static __always_inline int mapped(struct file *file, unsigned long prot, bool shared)
{
	u32 request = 0;

	if (!file)
		return 0;
	if (prot & PROT_EXEC_FLAG)
		request = MMAP_EXEC_;
	if (prot & PROT_WRITE_FLAG && shared && file->f_flags & O_APPEND)
		request |= MAY_WRITE_;
	if (opened_to_execute(file)) {
		struct tg_confined *c = profile_subjects_current();

		if (!c || !c->changed)
			return 0;
		if (prot & PROT_READ_FLAG)
			request |= MAY_READ_;
	}
	return request ? verdict_of(mapping_asked(file, request)) : 0;
}

SEC("lsm/mmap_file")
int BPF_PROG(profile_mmap_file, struct file *file, unsigned long reqprot, unsigned long prot,
	     unsigned long flags)
{
	return mapped(file, prot, flags & MAP_TYPE_SHARED);
}

SEC("lsm/file_mprotect")
int BPF_PROG(profile_file_mprotect, struct vm_area_struct *vma, unsigned long reqprot,
	     unsigned long prot)
{
	return mapped(vma->vm_file, prot, vma->vm_flags & VM_SHARED);
}

/* A task that may write at a file's end alone does not write elsewhere by asking to. */
SEC("lsm/file_fcntl")
int BPF_PROG(profile_file_fcntl, struct file *file, unsigned int cmd, unsigned long arg)
{
	struct tg_confined *c;

	if (cmd != F_SETFL || arg & O_APPEND || !(file->f_flags & O_APPEND) ||
	    !(file->f_mode & FMODE_WRITE))
		return 0;
	c = profile_subjects_current();
	if (!c)
		return 0;
	return file_request(c, file, MAY_WRITE_, TG_OP_OPEN_WRITE);
}

SEC("lsm/file_truncate")
int BPF_PROG(profile_file_truncate, struct file *file)
{
	struct tg_confined *c = profile_subjects_current();

	if (!c)
		return 0;
	return file_request(c, file, MAY_WRITE_ | MAY_SETATTR_, TG_OP_SETATTR);
}

SEC("lsm/file_lock")
int BPF_PROG(profile_file_lock, struct file *file, unsigned int cmd)
{
	struct tg_confined *c = profile_subjects_current();

	if (!c)
		return 0;
	return file_request(c, file, MAY_LOCK_ | (cmd == F_WRLCK ? MAY_WRITE_ : 0), TG_OP_LOCK);
}

static int socket_received(struct tg_confined *c, struct file *file, u32 request);

/* With a frame of its own, which is not there where sockets are asked about. */
static __noinline int file_received(struct tg_confined *c, struct file *file, u32 request)
{
	return file_request(c, file, request, TG_OP_RECEIVE_FD);
}

/* A descriptor that somebody sends. */
SEC("lsm/file_receive")
int BPF_PROG(profile_file_receive, struct file *file)
{
	u32 request = open_request(file->f_mode, file->f_flags);
	struct tg_confined *c = profile_subjects_current();

	if (!c)
		return 0;
	if ((file->f_inode->i_mode & S_IFMT) == S_IFSOCK)
		return socket_received(c, file, request);
	return verdict_of(file_received(c, file, request));
}

#endif
