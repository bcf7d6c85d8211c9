/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: watches of files, directories and filesystems. */
#ifndef TIDEGATE_TE_NOTIFY_H
#define TIDEGATE_TE_NOTIFY_H

#include "te/mount.h"

/* FS_OPEN_PERM, FS_ACCESS_PERM, FS_OPEN_EXEC_PERM, FS_PRE_ACCESS */
#define FS_PERM_EVENTS (0x00010000 | 0x00020000 | 0x00040000 | 0x00100000)
/* FS_ACCESS, FS_CLOSE_NOWRITE, FS_ACCESS_PERM, FS_PRE_ACCESS: that somebody reads */
#define FS_READ_EVENTS (0x00000001 | 0x00000010 | 0x00020000 | 0x00100000)

/* selinux_path_notify() */
SEC("lsm/path_notify")
int BPF_PROG(te_path_notify, const struct path *path, u64 mask, unsigned int type)
{
	struct tg_note n = { .op = TG_OP_GETATTR, .class = TG_C_FILE };
	struct te_who who = te_me();
	struct path *p = CAST(struct path, address(path));
	struct dentry *dentry = ((struct path *)path)->dentry;
	struct inode *inode = dentry->d_inode;
	u32 request = FILE__WATCH;
	int err;

	if (!who.subject || !inode)
		return 0;
	/* FSNOTIFY_OBJ_TYPE_VFSMOUNT, _SB, and since 6.15 _MNTNS */
	if (type == 1)
		request = FILE__WATCH_MOUNT;
	else if (type == 2)
		request = FILE__WATCH_SB;
	else if (type == 3)
		request = FILE__WATCH_MOUNTNS;
	if (type == 1 || type == 2) {
		err = te_super_asked(address(CAST(struct dentry, address(p->dentry))->d_sb),
				     FILESYSTEM__WATCH);
		if (err)
			return err;
	}
	if (mask & FS_PERM_EVENTS)
		request |= FILE__WATCH_WITH_PERM;
	if (mask & FS_READ_EVENTS)
		request |= FILE__WATCH_READS;
	return te_may_inode(inode, address(dentry), request, &n);
}

#endif
