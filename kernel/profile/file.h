/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the profile model: files and the names of files. */
#ifndef TIDEGATE_PROFILE_FILE_H
#define TIDEGATE_PROFILE_FILE_H

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

/* A name that is asked about by who's rules. */
static __always_inline void name_for(struct tg_name *n, struct tg_who *who, u64 dentry, u64 mnt,
				     bool dir)
{
	struct tg_profile __arena *p = PART(struct tg_profile, who->profile);

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
	       !(PART(struct tg_profile, who->profile)->path_flags & PATH_MEDIATE_DELETED);
}

/* What has no path (pipes, sockets, anonymous inodes, memfds): path_mediated_fs(). */
static __always_inline bool has_path(struct dentry *d)
{
	return !(d->d_sb->s_flags & SB_NOUSER);
}

static __always_inline bool is_directory(struct dentry *d)
{
	struct inode *inode = d->d_inode;

	return inode && (inode->i_mode & S_IFMT) == S_IFDIR;
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
		if (policy_number() != who.number)
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
	struct tg_confined *c = confined_current();
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
	struct tg_confined *c = confined_current();

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
		struct tg_confined *c = confined_current();

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

/* Who may write at a file's end alone does not write elsewhere by asking to. */
SEC("lsm/file_fcntl")
int BPF_PROG(profile_file_fcntl, struct file *file, unsigned int cmd, unsigned long arg)
{
	struct tg_confined *c;

	if (cmd != F_SETFL || arg & O_APPEND || !(file->f_flags & O_APPEND) ||
	    !(file->f_mode & FMODE_WRITE))
		return 0;
	c = confined_current();
	if (!c)
		return 0;
	return file_request(c, file, MAY_WRITE_, TG_OP_OPEN_WRITE);
}

SEC("lsm/file_truncate")
int BPF_PROG(profile_file_truncate, struct file *file)
{
	struct tg_confined *c = confined_current();

	if (!c)
		return 0;
	return file_request(c, file, MAY_WRITE_ | MAY_SETATTR_, TG_OP_SETATTR);
}

SEC("lsm/file_lock")
int BPF_PROG(profile_file_lock, struct file *file, unsigned int cmd)
{
	struct tg_confined *c = confined_current();

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
	struct tg_confined *c = confined_current();

	if (!c)
		return 0;
	if ((file->f_inode->i_mode & S_IFMT) == S_IFSOCK)
		return socket_received(c, file, request);
	return verdict_of(file_received(c, file, request));
}

/* A name that is to be made; its owner will be the task. */
static __always_inline int name_made(struct path *dir, struct dentry *dentry, bool is_dir)
{
	struct tg_confined *c = confined_current();
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
	struct tg_confined *c = confined_current();
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
	struct tg_confined *c = confined_current();
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
	struct tg_confined *c = confined_current();

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
		if (policy_number() != who.number)
			continue;
		if (state < 0)
			return name_refuse(state, request, &note);
		perms = perms_by(name.table, state, owner);
		if (perms.allow & MAY_LINK_) {
			name_for(&name, &who, target, mnt, false);
			name.start = profile_step(name.table, state, 0);
			state = name_state(&name);
			if (policy_number() != who.number)
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
				if (policy_number() != who.number)
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
		if (policy_number() == who.number)
			return profile_decide(&who, perms, request, -EACCES, &note);
	}
	return profile_refuse(request, TG_R_BUSY, -EAGAIN, &note);
}

SEC("lsm/path_link")
int BPF_PROG(profile_path_link, struct dentry *old, struct path *new_dir, struct dentry *new)
{
	struct tg_confined *c = confined_current();

	if (!c || !has_path(old))
		return 0;
	return verdict_of(link_asked(c, address(new_dir->mnt), address(new), address(old)));
}

#endif
