/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the `te` model: directories and the names in them.
 * may_create(), may_link(), may_rename() of security/selinux/hooks.c.
 */
#ifndef TIDEGATE_TE_NAMES_H
#define TIDEGATE_TE_NAMES_H

#include "te/inode_sid.h"

/* What is linked or moved is not made: a note that is still there is of a creation that failed. */
static __always_inline void te_create_is_over(struct te_subject *s)
{
	s->made_dentry = 0;
}

/* What is done with a name. The kernel asks to write the directory before it asks for that. */
static __always_inline int te_dir_asked(struct inode *dir, struct dentry *dentry, u32 request,
					u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_DIR };

	return te_may_inode(dir, address(dentry->d_parent), request | DIR__SEARCH | DIR__WRITE, &n);
}

static __always_inline int te_named_asked(struct dentry *dentry, u32 request, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_DIR };
	struct inode *inode = dentry->d_inode;

	return inode ? te_may_inode(inode, address(dentry), request, &n) : 0;
}

/*
 * A file is about to be made: what it will be is noted here, and given in d_instantiate, when there is an inode.
 */
__noinline int te_may_create(struct inode *dir __arg_trusted, u64 dentry, u32 class,
			     struct tg_note *n)
{
	struct dentry *d = CAST(struct dentry, dentry);
	struct te_who who = te_me();
	struct te_made made = {};
	u32 p, f;
	u64 sid, super;
	int err;

	if (!dir || !n || !who.subject)
		return 0;
	te_create_is_over(who.subject);
	made.source = who.sid;
	made.target = te_inode_sid(dir, address(d->d_parent));
	made.class = class;
	made.name = address(d->d_name.name);
	made.len = d->d_name.len & 255;
	n->dentry = dentry;
	if (made.target == TE_LATER)
		return -EAGAIN;
	p = te_tables(policy_seqno());
	if (!p)
		return 0;
	f = te_filesystem_of(p, address(dir->i_sb->s_type));
	sid = who.subject->create_sid;
	if (!sid)
		sid = te_new_label(TE_TRANSITION, &made);
	if (!sid)
		return -EACCES;
	err = te_avc_has_perm(who.sid, sid, class, FILE__CREATE, n);
	if (err)
		return err;
	super = f ? ARENA_PTR(struct te_filesystem, f)->sid : te_initial(p, TE_SID_UNLABELED);
	err = te_avc_has_perm(sid, super, SECCLASS_FILESYSTEM, FILESYSTEM__ASSOCIATE, n);
	if (err)
		return err;
	/* where a filesystem's files are what their paths are, nothing is given */
	if (f && ARENA_PTR(struct te_filesystem, f)->behavior == TE_BY_GENFS)
		return 0;
	if (!te_gives())
		return te_full(n);
	who.subject->made = sid;
	who.subject->made_class = class;
	who.subject->made_parent = address(d->d_parent);
	who.subject->made_dentry = dentry;
	return 0;
}

static __always_inline int te_create(struct inode *dir, struct dentry *dentry, u32 class)
{
	struct tg_note n = { .op = TG_OP_CREATE, .class = TG_C_DIR };
	int err;

	if (!te_me().subject)
		return 0;
	err = te_may_inode(dir, address(dentry->d_parent), DIR__ADD_NAME | DIR__SEARCH | DIR__WRITE,
			   &n);
	return err ? err : verdict_of(te_may_create(dir, address(dentry), class, &n));
}

SEC("lsm/inode_create")
int BPF_PROG(te_inode_create, struct inode *dir, struct dentry *dentry)
{
	return te_create(dir, dentry, SECCLASS_FILE);
}

SEC("lsm/inode_mkdir")
int BPF_PROG(te_inode_mkdir, struct inode *dir, struct dentry *dentry)
{
	return te_create(dir, dentry, SECCLASS_DIR);
}

SEC("lsm/inode_symlink")
int BPF_PROG(te_inode_symlink, struct inode *dir, struct dentry *dentry)
{
	return te_create(dir, dentry, SECCLASS_LNK_FILE);
}

SEC("lsm/inode_mknod")
int BPF_PROG(te_inode_mknod, struct inode *dir, struct dentry *dentry, umode_t mode)
{
	return te_create(dir, dentry, te_class_of_mode(mode));
}

static __always_inline bool te_is_memory(struct inode *inode)
{
	u64 magic = inode->i_sb->s_magic;

	return (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC) && !(inode->i_flags & S_PRIVATE);
}

/* What the policy makes of its maker and its filesystem, where that has labels by transitions (fs_use_trans). */
static __noinline int te_memory_made(struct te_who *who, struct inode *inode __arg_trusted)
{
	u32 p = te_tables(policy_seqno()), f;
	struct te_made made = { .class = SECCLASS_FILE };
	u64 sid;

	if (!who || !inode || !p)
		return 0;
	f = te_filesystem_of(p, address(inode->i_sb->s_type));
	if (!f || ARENA_PTR(struct te_filesystem, f)->behavior != TE_BY_TRANSITION)
		return 0;
	made.source = who->sid;
	made.target = ARENA_PTR(struct te_filesystem, f)->sid;
	sid = te_new_label(TE_TRANSITION, &made);
	if (!sid || te_give(inode, sid))
		te_not_given();
	return 0;
}

/*
 * Is the inode what was about to be made by this name? In a filesystem in memory an old one looks as if it were new; but it
 * may be of another class, and what is linked had a name before.
 */
static __always_inline bool te_is_made(struct te_subject *s, struct dentry *dentry,
				       struct inode *inode)
{
	return s->made_dentry && s->made_dentry == address(dentry) &&
	       s->made_parent == address(dentry->d_parent) && inode_is_new(inode) &&
	       s->made_class == te_class_of_mode(inode->i_mode) &&
	       ((inode->i_mode & S_IFMT) == S_IFDIR || inode->i_nlink == 1);
}

/* The new inode. */
SEC("lsm/d_instantiate")
int BPF_PROG(te_d_instantiate, struct dentry *dentry, struct inode *inode)
{
	struct te_who who = te_me();
	struct te_subject *s = who.subject;

	if (!inode || !s)
		return 0;
	/* what nobody is asked about when it is made is its maker's: a pipe */
	if (inode->i_sb->s_magic == PIPEFS_MAGIC) {
		if (te_give(inode, who.sid))
			te_not_given();
		return 0;
	}
	/* memory that is given out by descriptors: memfd_create(2) */
	if (inode->i_sb->s_flags & SB_KERNMOUNT && te_is_memory(inode) && inode_is_new(inode)) {
		te_memory_made(&who, inode);
		return 0;
	}
	if (!te_is_made(s, dentry, inode) || fs_is_neutral(inode->i_sb->s_magic))
		return 0;
	te_create_is_over(s);
	if (te_give(inode, s->made))
		te_not_given();
	return 0;
}

/* Its number may be used again by another object. Filesystems in memory lose an inode with its last name, or end with all of theirs. */
SEC("lsm/inode_free_security")
int BPF_PROG(te_inode_free_security, struct inode *inode)
{
	u64 magic = inode->i_sb->s_magic;
	struct tg_given_key key;

	if (inode->i_nlink && !te_is_nameless(magic) && !fs_is_memory(magic))
		return 0;
	key = given_key(inode);
	te_given_forget(&key);
	return 0;
}

static __always_inline int te_remove(struct inode *dir, struct dentry *dentry, u32 request)
{
	int err;

	if (!te_me().subject)
		return 0;
	err = te_dir_asked(dir, dentry, DIR__REMOVE_NAME, TG_OP_UNLINK);
	return err ? err : te_named_asked(dentry, request, TG_OP_UNLINK);
}

SEC("lsm/inode_unlink")
int BPF_PROG(te_inode_unlink, struct inode *dir, struct dentry *dentry)
{
	return te_remove(dir, dentry, FILE__UNLINK);
}

SEC("lsm/inode_rmdir")
int BPF_PROG(te_inode_rmdir, struct inode *dir, struct dentry *dentry)
{
	return te_remove(dir, dentry, DIR__RMDIR);
}

/*
 * A name comes, or goes elsewhere: an object keeps the label that it has, as in SELinux, and does not get that of its new
 * path. What is below a directory cannot be told one by one: it goes only where its new path makes no difference to
 * file_contexts, else EXDEV, upon which mv(1) copies.
 */
static __noinline int te_keep_label_on_move(struct inode *inode, u64 old_dentry, u64 new_dentry)
{
	struct tg_note n = { .op = new_dentry ? TG_OP_RENAME : TG_OP_LINK,
			     .class = TG_C_DIR,
			     .dentry = old_dentry };
	u64 sid, old, new;

	if ((inode->i_mode & S_IFMT) == S_IFDIR) {
		old = te_path_state(old_dentry);
		new = te_path_state(new_dentry);
		if (!old || !new)
			return -EAGAIN;
		return old == new ? 0 : -EXDEV;
	}
	sid = te_inode_sid(inode, old_dentry);
	if (sid == TE_LATER)
		return -EAGAIN;
	/* a label that was given goes wherever the name does */
	if (te_given_sid(inode) == sid)
		return 0;
	return !te_gives() || te_give(inode, sid) ? te_full(&n) : 0;
}

SEC("lsm/inode_link")
int BPF_PROG(te_inode_link, struct dentry *old_dentry, struct inode *dir, struct dentry *new_dentry)
{
	struct te_who who = te_me();
	struct inode *inode;
	int err;

	if (!who.subject)
		return 0;
	te_create_is_over(who.subject);
	err = te_dir_asked(dir, new_dentry, DIR__ADD_NAME, TG_OP_LINK);
	if (!err)
		err = te_named_asked(old_dentry, FILE__LINK, TG_OP_LINK);
	inode = old_dentry->d_inode;
	return err || !inode ? err : te_keep_label_on_move(inode, address(old_dentry), 0);
}

SEC("lsm/inode_rename")
int BPF_PROG(te_inode_rename, struct inode *old_dir, struct dentry *old_dentry,
	     struct inode *new_dir, struct dentry *new_dentry)
{
	struct inode *over, *inode;
	u32 request = DIR__ADD_NAME;
	struct te_who who = te_me();
	int err;

	if (!who.subject)
		return 0;
	te_create_is_over(who.subject);
	over = new_dentry->d_inode;
	err = te_dir_asked(old_dir, old_dentry, DIR__REMOVE_NAME, TG_OP_RENAME);
	if (!err)
		err = te_named_asked(old_dentry, FILE__RENAME, TG_OP_RENAME);
	if (!err && is_directory(old_dentry) && address(old_dir) != address(new_dir))
		err = te_named_asked(old_dentry, DIR__REPARENT, TG_OP_RENAME);
	if (over)
		request |= DIR__REMOVE_NAME;
	if (!err)
		err = te_dir_asked(new_dir, new_dentry, request, TG_OP_RENAME);
	if (!err && over)
		err = te_named_asked(new_dentry,
				     is_directory(new_dentry) ? DIR__RMDIR : FILE__UNLINK,
				     TG_OP_RENAME);
	inode = old_dentry->d_inode;
	return err || !inode ?
		       err :
		       te_keep_label_on_move(inode, address(old_dentry), address(new_dentry));
}

#endif
