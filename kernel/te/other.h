/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the `te` model: what is no file, process, socket or IPC: keys, anonymous inodes, io_uring, watches,
 * quotas, maps and programs of BPF, performance counters. security/selinux/hooks.c.
 */
#ifndef TIDEGATE_TE_OTHER_H
#define TIDEGATE_TE_OTHER_H

/* Keys have their labels with IPC's objects, by their addresses. */
SEC("lsm/key_alloc")
int BPF_PROG(te_key_alloc, void *key)
{
	struct te_who who = te_me();

	/* no hook tells of a key's end: this may have been another's place */
	if (!who.subject)
		return te_ipc_forget(address(key));
	return te_ipc_label(address(key), who.subject->key_sid ? who.subject->key_sid : who.sid,
			    SECCLASS_KEY);
}

SEC("lsm/key_permission")
int BPF_PROG(te_key_permission, void *key_ref, const struct cred *cred, int need)
{
	struct tg_note n = { .op = TG_OP_KEY, .class = TG_C_IPC };
	struct te_who who = te_me();
	u64 key = 0;

	/* KEY_NEED_VIEW to KEY_NEED_SETATTR, in the order of the class's permissions */
	if (!who.subject || need < 1 || need > KEY_NEED_SETATTR)
		return 0;
	/* as in lomac/ipc.h */
	bpf_probe_read_kernel(&key, sizeof(key), ctx);
	return te_may(who.sid, te_ipc_sid(key & ~1ull), SECCLASS_KEY, 1u << ((need - 1) & 7), &n);
}

/* An anonymous inode of a kind that has labels: userfaultfd, io_uring, secret memory. */
SEC("lsm/inode_init_security_anon")
int BPF_PROG(te_inode_init_security_anon, struct inode *inode, const struct qstr *name,
	     const struct inode *context_inode)
{
	struct tg_note n = { .op = TG_OP_CREATE, .class = TG_C_FILE };
	struct te_who who = te_me();
	struct te_made made = { .class = SECCLASS_ANON_INODE };
	struct qstr *text = CAST(struct qstr, address(name));
	u64 sid;
	int err;

	if (!who.subject)
		return 0;
	made.source = made.target = who.sid;
	made.name = address(text->name);
	made.len = text->len & 255;
	sid = te_new_label(TE_TRANSITION, &made);
	if (!sid)
		return -EACCES;
	err = te_may(who.sid, sid, SECCLASS_ANON_INODE, FILE__CREATE, &n);
	if (err)
		return err;
	return !te_has_room() || te_give(inode, sid) ? te_full(&n) : 0;
}

static __always_inline int te_ring_asked(u64 target, u32 request)
{
	struct tg_note n = { .op = TG_OP_SYSTEM, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	return who.subject ?
		       te_may(who.sid, target ? target : who.sid, SECCLASS_IO_URING, request, &n) :
		       0;
}

SEC("lsm/uring_override_creds")
int BPF_PROG(te_uring_override_creds, const struct cred *new)
{
	return te_ring_asked(0, IO_URING__OVERRIDE_CREDS);
}

SEC("lsm/uring_sqpoll")
int BPF_PROG(te_uring_sqpoll)
{
	return te_ring_asked(0, IO_URING__SQPOLL);
}

SEC("?lsm/uring_allowed")
int BPF_PROG(te_uring_allowed)
{
	return te_ring_asked(0, IO_URING__ALLOWED);
}

/* What a ring has a driver do that it alone knows. */
SEC("lsm/uring_cmd")
int BPF_PROG(te_uring_cmd, struct io_uring_cmd *cmd)
{
	struct file *file = CAST(struct file, address(cmd->file));
	struct te_who who = te_me();
	u64 sid;

	if (!who.subject)
		return 0;
	sid = te_inode_peek(address(file->f_inode), address(file->f_path.dentry));
	return sid == TE_LATER ? -EAGAIN : te_ring_asked(sid, IO_URING__CMD);
}

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

SEC("lsm/quota_on")
int BPF_PROG(te_quota_on, struct dentry *dentry)
{
	return te_me().subject ? te_named_asked(dentry, FILE__QUOTAON, TG_OP_MOUNT) : 0;
}

SEC("lsm/quotactl")
int BPF_PROG(te_quotactl, int cmd, int type, int id, struct super_block *sb)
{
	if (!sb)
		return 0;
	switch (cmd) {
	case 0x800001: /* Q_SYNC */
	case 0x800002: /* Q_QUOTAON */
	case 0x800003: /* Q_QUOTAOFF */
	case 0x800006: /* Q_SETINFO */
	case 0x800008: /* Q_SETQUOTA */
	case 0x5801:   /* Q_XQUOTAON, Q_XQUOTAOFF, Q_XSETQLIM */
	case 0x5802:
	case 0x5804:
		return te_super_asked(address(sb), FILESYSTEM__QUOTAMOD);
	case 0x800004: /* Q_GETFMT */
	case 0x800005: /* Q_GETINFO */
	case 0x800007: /* Q_GETQUOTA */
	case 0x800009: /* Q_GETNEXTQUOTA */
	case 0x5803:   /* Q_XGETQUOTA, Q_XGETQSTAT, Q_XGETQSTATV, Q_XGETNEXTQUOTA */
	case 0x5805:
	case 0x5808:
	case 0x5809:
		return te_super_asked(address(sb), FILESYSTEM__QUOTAGET);
	}
	return 0;
}

#endif
