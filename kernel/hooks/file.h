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
	struct lomac_subject who = subject(s);
	struct tg_note n = { .op = TG_OP_OPEN_READ, .class = TG_C_FILE };
	struct lomac_object o;
	u32 mode = file->f_mode & (FMODE_READ | FMODE_WRITE);
	u16 type = inode->i_mode & S_IFMT;
	u64 label;
	u8 to;

	if (!s && mode == FMODE_WRITE)
		return 0;
	if (type == S_IFDIR || type == S_IFIFO)
		return 0;
	count_query(TG_C_FILE);
	label = label_of(inode, file_dentry(file), TG_C_FILE);
	o = object(label);
	if (!lomac_open(who, o)) {
		note_object(&n, inode, file_dentry(file), label);
		n.reason = TG_R_NOOPEN;
		return deny(s, &n, -EPERM);
	}
	/* an exec is observed by the new program, not by who asks for it */
	if (mode & FMODE_READ && !(file->f_flags & FMODE_EXEC_FLAG)) {
		to = lomac_observe(who, o);
		if (to < who.level) {
			int err;

			note_object(&n, inode, file_dentry(file), label);
			err = fall(s, to, &n, true);
			if (err)
				return err;
			s = subject_current();
		}
	}
	if (mode & FMODE_WRITE)
		return modify(s, inode, file_dentry(file), label, TG_OP_OPEN_WRITE, TG_C_FILE);
	return 0;
}

#endif
