/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: what an object carries besides its content. */
#ifndef TIDEGATE_LOMAC_ATTR_H
#define TIDEGATE_LOMAC_ATTR_H

#include "lomac/shared.h"
#include "lomac/terminal.h"

/*
 * Of what changes: whose an object is, and which users may open it, rather than what it holds or
 * when.
 */
enum { HOLDS, OWNED, OWNER };

/* ATTR_* of linux/fs.h: user and group; the mode, and times other than now, which only the owner sets. */
#define ATTR_OWNER (1 << 1 | 1 << 2)
#define ATTR_OWNED (ATTR_OWNER | 1 << 0 | 1 << 7 | 1 << 8 | 1 << 16)

/*
 * To write to a device that is neutral, or to a socket or a FIFO that is `lowwrite`, is
 * everybody's. Whose it is, and which users may open it, is not: by its mode one would take it from
 * everybody else. A pty is its session's, and the directory that all have theirs in is the top's.
 */
static __noinline int modify_owned(struct dentry *dentry, struct inode *inode, u64 label, u8 op)
{
	struct tg_subject *s = subject_current();

	if (fs_magic(inode) == DEVPTS_MAGIC && dentry->d_fsdata)
		return session_is_higher(address(dentry->d_fsdata), subject_level(s), false) ?
			       refuse(inode, address(dentry), label, op, TG_C_FILE) :
			       0;
	label &= ~((u64)(TG_NEUTRAL | TG_LOWWRITE) << 8);
	return modify(lomac_subject_modifying(s), inode, address(dentry), label, op, TG_C_FILE);
}

/*
 * Attributes of a socket reach whoever shares it, and so does its owner, by which it is let through. Its mode is that of
 * the name that it is given later.
 */
static __noinline int modify_socket(struct inode *inode, u8 op, u32 what)
{
	u64 at = address(inode) - bpf_core_field_offset(struct socket_alloc, vfs_inode);
	struct tg_note n = { .op = op, .class = TG_C_SOCKET, .source = ~0u };
	struct tg_subject *s = subject_current();

	if (op == TG_OP_XATTR || what == OWNER)
		return top_only(op);
	if (!s || what != OWNED ||
	    !end_is_above(address(CAST(struct socket_alloc, at)->socket.file), s->level))
		return 0;
	n.reason = TG_R_CHANNEL;
	return deny(s, &n, -EPERM);
}

/* A pipe is opened again by its mode and its owner: by a name in /proc, such as /dev/stdout. */
static __noinline int modify_pipe(struct inode *inode, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_FILE, .source = ~0u, .reason = TG_R_CHANNEL };
	struct tg_subject *s = subject_current();

	if (!s || s->level >= policy.top || !file_is_above(address(inode), s->level, TG_NODEMOTE))
		return 0;
	return deny(s, &n, -EPERM);
}

static __always_inline int modify_dentry(struct dentry *dentry, u8 op, u32 what)
{
	struct tg_subject *s = subject_current();
	struct inode *inode = dentry->d_inode;
	u16 type;
	u64 label;

	if (!s || !inode)
		return 0;
	if (fs_magic(inode) == SOCKFS_MAGIC)
		return modify_socket(inode, op, what);
	if (fs_magic(inode) == PIPEFS_MAGIC)
		return what == HOLDS ? 0 : modify_pipe(inode, op);
	/*
	 * memory that no path names is a channel for tasks that may have written to it; others come
	 * by /proc
	 */
	if (inode_is_memory(inode) &&
	    (s->level >= policy.top || s->level >= floor_of(address(inode))))
		return 0;
	count_query(TG_C_FILE);
	label = label_of(inode, address(dentry), TG_C_FILE);
	type = inode->i_mode & S_IFMT;
	if (what != HOLDS && (type == S_IFCHR || type == S_IFBLK || type == S_IFSOCK ||
			      type == S_IFIFO || fs_magic(inode) == DEVPTS_MAGIC))
		return modify_owned(dentry, inode, label, op);
	return modify(lomac_subject_modifying(s), inode, address(dentry), label, op, TG_C_FILE);
}

static __always_inline int observe_dentry(struct dentry *dentry, u8 op)
{
	struct tg_subject *s = subject_current();
	struct inode *inode = dentry->d_inode;
	struct tg_note n = { .op = op, .class = TG_C_FILE };
	u64 label;
	int err;
	u8 to;

	if (!inode)
		return 0;
	count_query(TG_C_FILE);
	label = label_of(inode, address(dentry), TG_C_FILE);
	/* of what may not be opened; names, which links are, are no data, but what is not known may be anything */
	if ((op == TG_OP_XATTR || !lomac_object_of_label(label).known) &&
	    !lomac_open(lomac_subject_modifying(s), lomac_object_of_label(label), policy.top))
		return refuse(inode, address(dentry), label, op, TG_C_FILE);
	to = lomac_observe(lomac_subject_observing(s), lomac_object_of_label(label));
	if (to >= subject_observes(s))
		return 0;
	if (label & LABEL_LATER)
		return refuse_label_changed(op, TG_C_FILE);
	note_object(&n, inode, address(dentry), label);
	err = fall(s, to, &n, true);
	if (err)
		return err;
	s = subject_current();
	label = label_of(inode, address(dentry), TG_C_FILE);
	return lomac_observe(lomac_subject_observing(s), lomac_object_of_label(label)) <
			       subject_observes(s) ?
		       refuse_label_changed(op, TG_C_FILE) :
		       0;
}

/* chmod, chown, utimes, truncate and ftruncate. The first argument differs by kernel. */
SEC("lsm/inode_setattr")
int BPF_PROG(lomac_inode_setattr, struct mnt_idmap *idmap, struct dentry *dentry,
	     struct iattr *attr)
{
	u32 valid = CAST(struct iattr, address(attr))->ia_valid;

	return modify_dentry(dentry, TG_OP_SETATTR,
			     valid & ATTR_OWNER ? OWNER :
			     valid & ATTR_OWNED ? OWNED :
						  HOLDS);
}

/* Flags and project by file_setattr(2); attached where the kernel has it, since 6.17. */
SEC("?lsm/inode_file_setattr")
int BPF_PROG(lomac_inode_file_setattr, struct dentry *dentry)
{
	return modify_dentry(dentry, TG_OP_SETATTR, OWNED);
}

SEC("lsm/inode_setxattr")
int BPF_PROG(lomac_inode_setxattr, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return modify_dentry(dentry, TG_OP_XATTR, OWNED);
}

SEC("lsm/inode_removexattr")
int BPF_PROG(lomac_inode_removexattr, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return modify_dentry(dentry, TG_OP_XATTR, OWNED);
}

SEC("lsm/inode_set_acl")
int BPF_PROG(lomac_inode_set_acl, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return modify_dentry(dentry, TG_OP_XATTR, OWNED);
}

SEC("lsm/inode_remove_acl")
int BPF_PROG(lomac_inode_remove_acl, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return modify_dentry(dentry, TG_OP_XATTR, OWNED);
}

SEC("lsm.s/inode_getxattr")
int BPF_PROG(lomac_inode_getxattr, struct dentry *dentry, const char *name)
{
	char head[16] = {};

	/* user.* and trusted.* hold what others may have written; what overlays note there is about their layers */
	bpf_probe_read_kernel_str(head, sizeof(head), name);
	if (__builtin_memcmp(head, "user.", 5) && __builtin_memcmp(head, "trusted.", 8))
		return 0;
	if (!__builtin_memcmp(head, "trusted.overlay", 15))
		return 0;
	return observe_dentry(dentry, TG_OP_XATTR);
}

SEC("lsm.s/inode_readlink")
int BPF_PROG(lomac_inode_readlink, struct dentry *dentry)
{
	struct inode *inode = dentry->d_inode;

	if (inode && fs_is_kernel(fs_magic(inode)))
		return 0;
	return observe_dentry(dentry, TG_OP_READLINK);
}

#endif
