/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files: opened, mapped, received, changed. */
#ifndef TIDEGATE_RECORDER_FILES_H
#define TIDEGATE_RECORDER_FILES_H

static __always_inline int tell_file(struct file *file, struct tr_note *n)
{
	n->what = TR_ACCESS;
	n->inode = address(file->f_inode);
	n->dentry = address(file->f_path.dentry);
	return tell(n);
}

SEC("fexit/security_file_open")
int BPF_PROG(file_open, struct file *file)
{
	struct tr_note n = { .op = TG_OP_OPEN_READ, .class = TG_C_FILE, .refused = RESULT(ctx) };

	/* what is executed is told when it is */
	if ((file->f_inode->i_mode & S_IFMT) == S_IFDIR || opened_to_execute(file))
		return 0;
	if (file->f_mode & FMODE_READ)
		n.flags |= TR_READS;
	if (file->f_mode & FMODE_WRITE)
		n.flags |= TR_WRITES;
	if (file->f_mode & FMODE_WRITE && !(file->f_mode & FMODE_READ))
		n.op = TG_OP_OPEN_WRITE;
	if (file->f_mode & FMODE_WRITE && file->f_flags & O_APPEND)
		n.flags |= TR_APPENDS;
	if (file->f_flags & O_TMPFILE_FLAG) {
		n.op = TG_OP_CREATE;
		n.flags |= TR_TMPFILE;
		n.always = 1;
	}
	return tell_file(file, &n);
}

SEC("fexit/security_mmap_file")
int BPF_PROG(mmap_file, struct file *file, unsigned long prot, unsigned long flags)
{
	struct tr_note n = { .op = TG_OP_MMAP, .class = TG_C_MMAP, .refused = RESULT(ctx) };

	if (!file)
		return 0;
	if (prot & (PROT_READ | PROT_EXEC))
		n.flags |= TR_READS;
	/* MAYWRITE is enough: mprotect may come later */
	if ((flags & MAP_TYPE) != MAP_PRIVATE && file->f_mode & FMODE_WRITE)
		n.flags |= TR_WRITES;
	if (prot & PROT_EXEC)
		n.flags |= TR_EXECUTES;
	return n.flags ? tell_file(file, &n) : 0;
}

SEC("fexit/security_file_receive")
int BPF_PROG(file_receive, struct file *file)
{
	struct tr_note n = { .op = TG_OP_RECEIVE_FD, .class = TG_C_FILE, .refused = RESULT(ctx) };

	if ((file->f_inode->i_mode & S_IFMT) == S_IFDIR)
		return 0;
	if (file->f_mode & FMODE_READ)
		n.flags |= TR_READS;
	if (file->f_mode & FMODE_WRITE)
		n.flags |= file->f_flags & O_APPEND ? TR_WRITES | TR_APPENDS : TR_WRITES;
	return tell_file(file, &n);
}

/*
 * Going on to write what was opened before: what the monitor's guard is asked once its
 * writer has fallen. The one program on a path that every read and write takes.
 */
SEC("fexit/security_file_permission")
int BPF_PROG(file_permission, struct file *file, int mask)
{
	struct tr_note n = {
		.op = TG_OP_WRITE_REVOKED,
		.class = TG_C_FILE,
		.flags = TR_WRITES,
		.refused = RESULT(ctx),
	};
	u16 type = file->f_inode->i_mode & S_IFMT;

	if (!(mask & MAY_WRITE) || (type != S_IFREG && type != S_IFBLK && type != S_IFCHR))
		return 0;
	if (type == S_IFCHR && device_is_neutral(file->f_inode->i_rdev))
		return 0;
	return tell_file(file, &n);
}

/* As the monitor asks of whatever could change a disk, a device or a file (lomac/ioctl.h). */
SEC("fexit/security_file_ioctl")
int BPF_PROG(file_ioctl, struct file *file)
{
	struct tr_note n = { .op = TG_OP_SETATTR,
			     .class = TG_C_FILE,
			     .flags = TR_WRITES | TR_CONTROL,
			     .refused = RESULT(ctx) };
	u16 type = file->f_inode->i_mode & S_IFMT;

	if (type == S_IFREG ? !(file->f_mode & FMODE_WRITE) : type != S_IFBLK && type != S_IFCHR)
		return 0;
	return tell_file(file, &n);
}

static __always_inline int tell_dentry(struct dentry *dentry, u8 op, u32 flags, s32 refused)
{
	struct tr_note n = {
		.what = TR_ACCESS, .op = op, .class = TG_C_FILE, .flags = flags, .refused = refused
	};

	if (!dentry->d_inode)
		return 0;
	n.inode = address(dentry->d_inode);
	n.dentry = address(dentry);
	return tell(&n);
}

SEC("fexit/security_inode_setattr")
int BPF_PROG(inode_setattr, struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	return tell_dentry(dentry, TG_OP_SETATTR,
			   attr->ia_valid & ATTR_SET ? TR_WRITES : TR_WRITES | TR_CONTENT,
			   RESULT(ctx));
}

SEC("fexit/security_inode_setxattr")
int BPF_PROG(inode_setxattr, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return tell_dentry(dentry, TG_OP_XATTR, TR_WRITES, RESULT(ctx));
}

SEC("fexit/security_inode_removexattr")
int BPF_PROG(inode_removexattr, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return tell_dentry(dentry, TG_OP_XATTR, TR_WRITES, RESULT(ctx));
}

SEC("fexit/security_inode_set_acl")
int BPF_PROG(inode_set_acl, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return tell_dentry(dentry, TG_OP_XATTR, TR_WRITES, RESULT(ctx));
}

SEC("fexit/security_inode_remove_acl")
int BPF_PROG(inode_remove_acl, struct mnt_idmap *idmap, struct dentry *dentry)
{
	return tell_dentry(dentry, TG_OP_XATTR, TR_WRITES, RESULT(ctx));
}

SEC("fexit/security_inode_getxattr")
int BPF_PROG(inode_getxattr, struct dentry *dentry, const char *name)
{
	char head[16] = {};

	/* as the monitor asks (lomac/attr.h) */
	bpf_probe_read_kernel_str(head, sizeof(head), name);
	if (__builtin_memcmp(head, "user.", 5) && __builtin_memcmp(head, "trusted.", 8))
		return 0;
	if (!__builtin_memcmp(head, "trusted.overlay", 15))
		return 0;
	return tell_dentry(dentry, TG_OP_XATTR, TR_READS, RESULT(ctx));
}

SEC("fexit/security_inode_readlink")
int BPF_PROG(inode_readlink, struct dentry *dentry)
{
	struct inode *inode = dentry->d_inode;

	if (inode && fs_is_kernel(inode->i_sb->s_magic))
		return 0;
	return tell_dentry(dentry, TG_OP_READLINK, TR_READS, RESULT(ctx));
}

#endif
