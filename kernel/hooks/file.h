/* SPDX-License-Identifier: GPL-2.0-only */
/* Object manager: open files. */
#ifndef TIDEGATE_HOOK_FILE_H
#define TIDEGATE_HOOK_FILE_H

#define FMODE_EXEC_FLAG 0x20 /* __FMODE_EXEC in f_flags: opened to be executed */

static __always_inline u64 file_dentry(struct file *file)
{
	return address(file->f_path.dentry);
}

/* open, openat, O_TMPFILE, reopening through /proc; io_uring's opens too. */
SEC("lsm.s/file_open")
int BPF_PROG(hook_file_open, struct file *file)
{
	struct inode *inode = file->f_inode;
	struct tg_subject *s = subject_current();
	u32 mode = file->f_mode & (FMODE_READ | FMODE_WRITE);
	u16 type = inode->i_mode & S_IFMT;

	if (type == S_IFDIR)
		return 0;
	if (type == S_IFIFO || inode_is_memory(inode))
		return join(s, file, TG_OP_OPEN_READ);
	if (!s && mode == FMODE_WRITE)
		return 0;
	count_query(TG_C_FILE);
	/* an exec is observed by the new program, not by who asks for it */
	if (file->f_flags & FMODE_EXEC_FLAG)
		mode = 0;
	return bind(s, inode, file_dentry(file), mode, TG_OP_OPEN_READ, TG_C_FILE);
}

#endif
