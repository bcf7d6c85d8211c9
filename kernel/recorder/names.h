/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names: made, removed, moved. None is like another, so each is told. */
#ifndef TIDEGATE_RECORDER_NAMES_H
#define TIDEGATE_RECORDER_NAMES_H

/* A creation is told when its inode is there; one that was refused, at once. */
static __noinline int create(u64 dentry, u32 flags, s32 refused)
{
	struct tr_note n = {
		.what = TR_ACCESS,
		.op = TG_OP_CREATE,
		.class = TG_C_DIR,
		.dentry = dentry,
		.flags = flags,
		.refused = refused,
		.always = 1,
	};
	struct tr_creation c = { .dentry = dentry, .flags = flags };
	u64 thread = bpf_get_current_pid_tgid();

	if (refused)
		return tell(&n);
	c.parent = address(CAST(struct dentry, dentry)->d_parent);
	bpf_map_update_elem(&creating, &thread, &c, BPF_ANY);
	return 0;
}

SEC("fexit/security_inode_create")
int BPF_PROG(inode_create, struct inode *dir, struct dentry *dentry)
{
	return create(address(dentry), 0, RESULT(ctx));
}

SEC("fexit/security_inode_mkdir")
int BPF_PROG(inode_mkdir, struct inode *dir, struct dentry *dentry)
{
	return create(address(dentry), 0, RESULT(ctx));
}

SEC("fexit/security_inode_symlink")
int BPF_PROG(inode_symlink, struct inode *dir, struct dentry *dentry)
{
	return create(address(dentry), 0, RESULT(ctx));
}

SEC("fexit/security_inode_mknod")
int BPF_PROG(inode_mknod, struct inode *dir, struct dentry *dentry, umode_t mode)
{
	u16 type = mode & S_IFMT;

	return create(address(dentry), type == S_IFCHR || type == S_IFBLK ? TR_DEVICE : 0,
		      RESULT(ctx));
}

SEC("fexit/security_d_instantiate")
int BPF_PROG(d_instantiate, struct dentry *dentry, struct inode *inode)
{
	u64 thread = bpf_get_current_pid_tgid();
	struct tr_creation *c = bpf_map_lookup_elem(&creating, &thread);
	struct tr_note n = {
		.what = TR_ACCESS, .op = TG_OP_CREATE, .class = TG_C_DIR, .always = 1
	};

	if (!c || !inode || c->dentry != address(dentry) || c->parent != address(dentry->d_parent))
		return 0;
	n.flags = c->flags;
	bpf_map_delete_elem(&creating, &thread);
	n.inode = address(inode);
	n.dentry = address(dentry);
	return tell(&n);
}

static __always_inline int tell_names(struct dentry *dentry, struct dentry *other, u8 op,
				      s32 refused)
{
	struct tr_note n = {
		.what = TR_ACCESS, .op = op, .class = TG_C_DIR, .refused = refused, .always = 1
	};

	if (!dentry->d_inode)
		return 0;
	n.inode = address(dentry->d_inode);
	n.dentry = address(dentry);
	if (other) {
		n.other = address(other);
		n.over = address(other->d_inode);
	}
	return tell(&n);
}

SEC("fexit/security_inode_unlink")
int BPF_PROG(inode_unlink, struct inode *dir, struct dentry *dentry)
{
	return tell_names(dentry, NULL, TG_OP_UNLINK, RESULT(ctx));
}

SEC("fexit/security_inode_rmdir")
int BPF_PROG(inode_rmdir, struct inode *dir, struct dentry *dentry)
{
	return tell_names(dentry, NULL, TG_OP_UNLINK, RESULT(ctx));
}

SEC("fexit/security_inode_rename")
int BPF_PROG(inode_rename, struct inode *old_dir, struct dentry *old_dentry, struct inode *new_dir,
	     struct dentry *new_dentry)
{
	return tell_names(old_dentry, new_dentry, TG_OP_RENAME, RESULT(ctx));
}

SEC("fexit/security_inode_link")
int BPF_PROG(inode_link, struct dentry *old_dentry, struct inode *dir, struct dentry *new_dentry)
{
	return tell_names(old_dentry, new_dentry, TG_OP_LINK, RESULT(ctx));
}

#endif
