/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the profile model: the names of files. */
#ifndef TIDEGATE_PROFILE_NAMES_H
#define TIDEGATE_PROFILE_NAMES_H

#include "lib/inode_kind.h"
#include "profile/file.h"

/* A name that is to be made; its owner will be the task. */
static __always_inline int name_made(struct path *dir, struct dentry *dentry, bool is_dir)
{
	struct tg_confined *c = profile_subjects_current();
	struct tg_asked a = {};
	struct tg_quick q;

	if (!c)
		return 0;
	if (name_quickly(&q, c, dir, dentry, is_dir, MAY_CREATE_)) {
		name_is_made(&q.who, address(dentry), q.name.table, q.state);
		return 0;
	}
	a.dentry = address(dentry);
	a.mnt = address(dir->mnt);
	a.dir = is_dir;
	a.mine = 1;
	a.request = MAY_CREATE_;
	a.op = TG_OP_CREATE;
	a.class = TG_C_DIR;
	return one_asked(&a, c);
}

SEC("lsm/path_mknod")
int BPF_PROG(profile_path_mknod, struct path *dir, struct dentry *dentry)
{
	return name_made(dir, dentry, false);
}

SEC("lsm/path_symlink")
int BPF_PROG(profile_path_symlink, struct path *dir, struct dentry *dentry)
{
	return name_made(dir, dentry, false);
}

SEC("lsm/path_mkdir")
int BPF_PROG(profile_path_mkdir, struct path *dir, struct dentry *dentry)
{
	return name_made(dir, dentry, true);
}

/* A name of an object that is there. */
static __always_inline void asked_name(struct tg_asked *a, u64 mnt, u64 dentry, u32 request, u8 op,
				       u8 class, u64 of)
{
	struct inode *inode = CAST(struct inode, CAST(struct dentry, of)->d_inode);

	a->dentry = dentry;
	a->mnt = mnt;
	a->inode = address(inode);
	a->uid = inode->i_uid.val;
	a->dir = (inode->i_mode & S_IFMT) == S_IFDIR;
	a->request = request;
	a->op = op;
	a->class = class;
}

static __always_inline int name_asked(struct tg_confined *c, u64 mnt, u64 dentry, u32 request,
				      u8 op, u8 class)
{
	struct tg_asked a = {};

	asked_name(&a, mnt, dentry, request, op, class, dentry);
	return one_asked(&a, c);
}

static __always_inline int name_removed(struct path *dir, struct dentry *dentry)
{
	struct tg_confined *c = profile_subjects_current();
	struct tg_quick q;

	if (!c || !dentry->d_inode ||
	    name_quickly(&q, c, dir, dentry, is_directory(dentry), MAY_DELETE_))
		return 0;
	return name_asked(c, address(dir->mnt), address(dentry), MAY_DELETE_, TG_OP_UNLINK,
			  TG_C_DIR);
}

SEC("lsm/path_unlink")
int BPF_PROG(profile_path_unlink, struct path *dir, struct dentry *dentry)
{
	return name_removed(dir, dentry);
}

SEC("lsm/path_rmdir")
int BPF_PROG(profile_path_rmdir, struct path *dir, struct dentry *dentry)
{
	return name_removed(dir, dentry);
}

#define MOVED_FROM (MAY_READ_ | MAY_GETATTR_ | MAY_WRITE_ | MAY_SETATTR_ | MAY_DELETE_)
#define MOVED_TO (MAY_WRITE_ | MAY_SETATTR_ | MAY_CREATE_)

/* With a frame of its own, which is not there where the names are asked about in full. */
static __noinline bool quickly_moved(struct tg_confined *c, u64 mnt, struct dentry *old,
				     struct dentry *new)
{
	u64 from = address(old->d_parent), to = address(new->d_parent);
	bool dir = is_directory(old);
	struct tg_quick q;
	long stem;

	if (!quick_begin(&q, c, mnt))
		return false;
	stem = quick_stem(&q, from);
	return quick_name(&q, stem, old, dir, MOVED_FROM) &&
	       quick_name(&q, from == to ? stem : quick_stem(&q, to), new, dir, MOVED_TO);
}

/*
 * apparmor_path_rename(): what one name loses and the other one gets; of an exchange both ways. Both names are on one
 * mount.
 */
SEC("lsm/path_rename")
int BPF_PROG(profile_path_rename, struct path *old_dir, struct dentry *old, struct path *new_dir,
	     struct dentry *new, unsigned int flags)
{
	u64 mnt = address(old_dir->mnt), one = address(old), other = address(new), from, to;
	struct tg_confined *c = profile_subjects_current();
	struct tg_asked a = {};
	struct tg_name name;
	u32 way;
	int err;

	if (!c)
		return 0;
	if (!(flags & RENAME_EXCHANGE_FLAG) && quickly_moved(c, mnt, old, new))
		return 0;
	for (way = flags & RENAME_EXCHANGE_FLAG ? 0 : 1; way < 2; way++) {
		from = way ? one : other;
		to = way ? other : one;
		asked_name(&a, mnt, from, MOVED_FROM, TG_OP_RENAME, TG_C_DIR, from);
		err = file_asked(&a, &name, c);
		if (err)
			return verdict_of(err);
		a.dentry = to;
		a.request = MOVED_TO;
		err = file_asked(&a, &name, c);
		if (err)
			return verdict_of(err);
	}
	return 0;
}

/* Something is asked or changed of what a name leads to. */
static __always_inline int path_changed(struct path *path, u32 request, u8 op)
{
	struct tg_confined *c = profile_subjects_current();

	if (!c || path_quickly(c, path, is_directory(path->dentry), request))
		return 0;
	return name_asked(c, address(path->mnt), address(path->dentry), request, op, TG_C_FILE);
}

/* Attached only while a profile has no rules on files at all: any other lets everything be seen. */
SEC("lsm/inode_getattr")
int BPF_PROG(profile_inode_getattr, struct path *path)
{
	return path_changed(path, MAY_GETATTR_, TG_OP_GETATTR);
}

SEC("lsm/path_truncate")
int BPF_PROG(profile_path_truncate, struct path *path)
{
	return path_changed(path, MAY_WRITE_ | MAY_SETATTR_, TG_OP_SETATTR);
}

SEC("lsm/path_chmod")
int BPF_PROG(profile_path_chmod, struct path *path)
{
	return path_changed(path, MAY_CHMOD_, TG_OP_SETATTR);
}

SEC("lsm/path_chown")
int BPF_PROG(profile_path_chown, struct path *path)
{
	return path_changed(path, MAY_CHOWN_, TG_OP_SETATTR);
}

/*
 * A further name: a rule for it, which leads on to a rule for the name that there is, and,
 * where that asks for it, no more allowed by the new name than by that one:
 * profile_path_link() of security/apparmor/file.c.
 */
__noinline int link_asked(struct tg_confined *c, u64 mnt, u64 link, u64 target)
{
	struct inode *inode = CAST(struct inode, CAST(struct dentry, target)->d_inode);
	struct tg_note note = {
		.op = TG_OP_LINK, .class = TG_C_DIR, .dentry = link, .inode = address(inode)
	};
	u32 owner = owner_by(inode->i_uid.val, mnt), try, request = MAY_LINK_;
	struct tg_perms perms, pair;
	struct tg_name name;
	struct tg_who who;
	long state;

	if (!c)
		return -EACCES;
	for (try = 0; try < PROFILE_TRIES; try++) {
		who = who_of(c);
		if (!who.profile)
			return 0;
		if (is_gone(&who, target))
			return profile_refuse(request, TG_R_DISCONNECTED, -ENOENT, &note);
		name_for(&name, &who, link, mnt, false);
		name.locked = 1;
		state = name_state(&name);
		if (policy_seqno() != who.number)
			continue;
		if (state < 0)
			return name_refuse(state, request, &note);
		perms = perms_by(name.table, state, owner);
		if (perms.allow & MAY_LINK_) {
			name_for(&name, &who, target, mnt, false);
			name.start = profile_step(name.table, state, 0);
			state = name_state(&name);
			if (policy_seqno() != who.number)
				continue;
			if (state < 0)
				return name_refuse(state, request, &note);
			pair = perms_by(name.table, state, owner);
			perms.audit = pair.audit;
			perms.quiet = pair.quiet;
			if (!(pair.allow & MAY_LINK_)) {
				perms = pair;
			} else if (pair.allow & LINK_SUBSET_) {
				name_for(&name, &who, target, mnt, false);
				state = name_state(&name);
				if (policy_seqno() != who.number)
					continue;
				if (state < 0)
					return name_refuse(state, request, &note);
				pair = perms_by(name.table, state, owner);
				request = perms.allow & ~MAY_LINK_;
				perms.allow &= pair.allow | MAY_LINK_;
				if (!(request & ~perms.allow) && perms.allow & MAY_EXEC_ &&
				    !profile_exec_subset(perms.exec, pair.exec)) {
					perms.allow &= ~MAY_EXEC_;
					request |= MAY_EXEC_;
				}
			}
		}
		if (policy_seqno() == who.number)
			return profile_decide(&who, perms, request, -EACCES, &note);
	}
	return profile_refuse(request, TG_R_BUSY, -EAGAIN, &note);
}

SEC("lsm/path_link")
int BPF_PROG(profile_path_link, struct dentry *old, struct path *new_dir, struct dentry *new)
{
	struct tg_confined *c = profile_subjects_current();

	if (!c || !has_path(old))
		return 0;
	return verdict_of(link_asked(c, address(new_dir->mnt), address(new), address(old)));
}

#endif
