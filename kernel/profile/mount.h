/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the profile model: mounts. security/apparmor/mount.c.
 *
 * The source of a bind mount, of a move and of a device's mount comes as its caller's text, which
 * the kernel looks up after the hook and BPF cannot. So the text itself is the source's name, which
 * it is as long as no component of it leads elsewhere: `.` and `..` are refused here, and a
 * symbolic link when the kernel comes to follow it.
 */
#ifndef TIDEGATE_PROFILE_MOUNT_H
#define TIDEGATE_PROFILE_MOUNT_H

#include "lib/arch.h"
#include "profile/capable.h"
#include "profile/file.h"

/* What is mounted. */
enum mount_source {
	SOURCE_NONE, /* nothing, or what is nowhere mounted */
	SOURCE_PATH, /* what is at from_dentry and from_mnt */
	SOURCE_NAME, /* what has this text for its name */
	SOURCE_TEXT, /* the text itself, or a device, if the filesystem's type requires one */
};

struct tg_mount {
	u64 dentry; /* where */
	u64 mnt;
	u64 from_dentry;
	u64 from_mnt;
	u64 text; /* addresses of the kernel's own copies, 0: none */
	u64 type;
	u64 data;
	u32 flags; /* MS_* */
	u32 request;
	u8 source; /* enum mount_source */
	u8 odd;    /* found: a device may have another name than the text */
	u8 pad[2];
	/* the kernel is about to look the text up, in the call of this number; 0: not */
	u32 awaited;
	struct tg_perms perms; /* found: what the profile says */
	u32 pad2;
	struct tg_name name; /* room for its paths */
};

/* A task's newest mount. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_mount);
} profile_mounting SEC(".maps");

static __always_inline struct tg_mount *mount_current(void)
{
	return bpf_task_storage_get(&profile_mounting, bpf_get_current_task_btf(), 0, 0);
}

/* A path, from a state of the rules on all but files. */
static __always_inline long mount_path(struct tg_name *name, struct tg_who *who, u64 dentry,
				       u64 mnt, bool dir, u32 state)
{
	name_for(name, who, dentry, mnt, dir);
	name->table = ARENA_PTR(struct tg_profile, who->profile)->policy.table;
	name->start = state;
	/* always by the path: whether it is the root is asked for, too, and found on the way up alone */
	return name_state_look_up(name);
}

static __always_inline bool is_dir(u64 dentry)
{
	return (CAST(struct inode, CAST(struct dentry, dentry)->d_inode)->i_mode & S_IFMT) ==
	       S_IFDIR;
}

/* The kernel's copy of a text, after a byte of room. */
static __always_inline bool text_load(struct tg_text *t, u64 from)
{
	long n = bpf_probe_read_kernel_str(t->text + 1, TG_TEXT / 2, (void *)from);

	if (n < 1)
		return false;
	t->len = BOUND(n, TG_TEXT);
	return true;
}

/* The state after the text from this byte on. */
__noinline u32 text_feed(u32 table, u32 state, struct tg_text *t, u32 first)
{
	u32 i;

	USES_ARENA();
	if (!t)
		return 0;
	bpf_for(i, first, t->len)
		state = profile_step(table, state, t->text[BOUND(i, TG_TEXT)]);
	return state;
}

#define TEXT_AT(t, i) ((t)->text[BOUND(i, TG_TEXT)])

/* Has a path, which begins with a slash at this byte, neither an empty component nor `.` and `..`? */
__noinline bool text_is_plain(struct tg_text *t, u32 first)
{
	u32 i;

	if (!t)
		return false;
	/* its end ends a component, too */
	bpf_for(i, first + 1, t->len + 1) {
		if (i < t->len && TEXT_AT(t, i) != '/')
			continue;
		if (TEXT_AT(t, i - 1) == '/' && i < t->len)
			return false;
		if (TEXT_AT(t, i - 1) != '.')
			continue;
		if (TEXT_AT(t, i - 2) == '/' ||
		    (TEXT_AT(t, i - 2) == '.' && TEXT_AT(t, i - 3) == '/'))
			return false;
	}
	return true;
}

/* The state after a source that has a text for its name; below -3: that names nothing. */
#define NAME_ODD -4
static __noinline long source_named(struct tg_name *name, struct tg_who *who, struct tg_text *t,
				    bool dir, u32 state)
{
	struct fs_struct *fs = UNTRUSTED(bpf_get_current_task_btf())->fs;
	struct path *base = &fs->root;
	u32 first = 1;
	long before;

	if (t->text[1] != '/') {
		base = &fs->pwd;
		t->text[0] = '/';
		first = 0;
	}
	if (!text_is_plain(t, first))
		return NAME_ODD;
	before = mount_path(name, who, address(base->dentry), address(base->mnt), false, state);
	if (before < 0)
		return before;
	/* the root's own name is the slash that the text begins with */
	if (!name->root || !name->connected)
		state = before;
	if (TEXT_AT(t, t->len - 1) == '/')
		t->len--;
	state = text_feed(name->table, state, t, first);
	return dir ? profile_step(name->table, state, '/') : state;
}

/* Is the text, taken as it stands, the path that it would have as a name? */
static __always_inline bool source_is_same(struct tg_name *name, struct tg_who *who,
					   struct tg_text *t)
{
	struct fs_struct *fs = UNTRUSTED(bpf_get_current_task_btf())->fs;

	if (t->text[1] != '/' || !text_is_plain(t, 1) || TEXT_AT(t, t->len - 1) == '/')
		return false;
	return mount_path(name, who, address(fs->root.dentry), address(fs->root.mnt), false, 0) >=
		       0 &&
	       name->root && name->connected;
}

/* The state after the source of a mount. */
static __always_inline long mount_source(struct tg_mount *m, struct tg_name *name,
					 struct tg_who *who, struct tg_text *t, u32 state)
{
	switch (m->source) {
	case SOURCE_PATH:
		return mount_path(name, who, m->from_dentry, m->from_mnt, is_dir(m->from_dentry),
				  state);
	case SOURCE_NAME:
		if (!text_load(t, m->text))
			return NAME_LATER;
		return source_named(name, who, t, is_dir(m->dentry), state);
	case SOURCE_TEXT:
		if (!text_load(t, m->text))
			return NAME_LATER;
		m->odd = !source_is_same(name, who, t);
		return text_feed(ARENA_PTR(struct tg_profile, who->profile)->policy.table, state, t,
				 1);
	}
	return state;
}

/* What the rules say of a mount whose place and source led to this state: do_match_mnt(). */
static __always_inline bool mount_perms(struct tg_mount *m, u32 table, struct tg_text *t, u32 state)
{
	u32 i;

	state = profile_step(table, state, 0);
	if (m->type) {
		if (!text_load(t, m->type))
			return false;
		state = text_feed(table, state, t, 1);
	}
	state = profile_step(table, state, 0);
	bpf_for(i, 0, 32) {
		if (m->flags >> i & 1)
			state = profile_step(table, state, i + 1);
	}
	m->perms = perms_of(profile_perms(table, state, false));
	if (m->perms.allow & MAY_MOUNT_ || !m->data || !(m->perms.allow & MOUNT_DATA_))
		return true;
	state = profile_step(table, state, 0);
	if (!text_load(t, m->data))
		return false;
	state = text_feed(table, state, t, 1);
	if (state)
		m->perms = perms_of(profile_perms(table, state, false));
	return true;
}

/* What the profile says, or an enum tg_name_error. */
static __noinline long mount_says(struct tg_mount *m, struct tg_name *name, struct tg_who *who,
				  struct tg_text *t)
{
	u32 state = class_state(who->profile, PROFILE_CLASS_MOUNT);
	u32 table = ARENA_PTR(struct tg_profile, who->profile)->policy.table;
	long found;

	found = mount_path(name, who, m->dentry, m->mnt, is_dir(m->dentry), state);
	if (found < 0)
		return found;
	if (m->request != MAY_UMOUNT_) {
		found = mount_source(m, name, who, t, profile_step(table, found, 0));
		if (found < 0)
			return found;
	}
	if (m->request == MAY_MOUNT_)
		return mount_perms(m, table, t, found) ? 0 : NAME_LATER;
	m->perms = perms_of(profile_perms(table, found, false));
	return 0;
}

/* May the current task change its mounts as is noted? */
__noinline int mount_asked(void)
{
	struct tg_note note = { .op = TG_OP_MOUNT, .class = TG_C_SYSTEM };
	struct tg_mount *m = mount_current();
	struct tg_text *t;
	struct tg_who who;
	long error;
	u32 try;

	if (!m)
		return -ENOMEM;
	note.dentry = m->dentry;
	note.inode = address(CAST(struct dentry, m->dentry)->d_inode);
	for (try = 0; try < PROFILE_TRIES; try++) {
		who = who_is_confined();
		if (!who.profile || !class_state(who.profile, PROFILE_CLASS_MOUNT))
			return 0;
		if (is_gone(&who, m->dentry) ||
		    (m->source == SOURCE_PATH && is_gone(&who, m->from_dentry)))
			return profile_refuse(m->request, TG_R_DISCONNECTED, -ENOENT, &note);
		t = text_get();
		if (!t)
			break;
		error = mount_says(m, &m->name, &who, t);
		text_put(t);
		if (policy_seqno() != who.number)
			continue;
		if (error == NAME_ODD) {
			note.reason = TG_R_SOURCE;
			m->perms = (struct tg_perms){};
		} else if (error < 0) {
			return name_refuse(error, m->request, &note);
		}
		return profile_decide(&who, m->perms, m->request, -EACCES, &note);
	}
	return profile_refuse(m->request, TG_R_BUSY, -EAGAIN, &note);
}

static __always_inline u32 current_call(void)
{
	return CALL_NUMBER(call_regs(bpf_get_current_task_btf()));
}

/* Are two texts the same? */
__noinline bool text_is(struct tg_text *t, struct tg_text *other)
{
	u32 i;

	if (!t || !other || t->len != other->len)
		return false;
	bpf_for(i, 1, t->len) {
		if (TEXT_AT(t, i) != TEXT_AT(other, i))
			return false;
	}
	return true;
}

/*
 * Does the kernel look the source up now? A call after the one that the source was noted in looks
 * up its target before anything is noted anew.
 */
static __noinline bool source_is_looked_up(struct tg_mount *m)
{
	struct nameidata *nd =
		CAST(struct nameidata, address(bpf_get_current_task_btf()->nameidata));
	struct tg_text *t, *other = NULL;
	bool same = true;

	if (!m->awaited || m->awaited != current_call())
		return false;
	t = text_get();
	if (t) {
		other = text_get();
		if (other && text_load(t, m->text) &&
		    text_load(other, (u64)CAST(struct filename, nd->name)->name))
			same = text_is(t, other);
		if (other)
			text_put(other);
		text_put(t);
	}
	return same;
}

/* The source of a mount has, or may have, another name than the one that was decided by. */
static __always_inline int source_refuse(u64 dentry)
{
	struct tg_note note = {
		.op = TG_OP_MOUNT, .class = TG_C_SYSTEM, .reason = TG_R_SOURCE, .dentry = dentry
	};
	struct tg_perms perms = {};
	struct tg_who who = who_is_confined();

	if (!who.profile || !class_state(who.profile, PROFILE_CLASS_MOUNT))
		return 0;
	return profile_decide(&who, perms, MAY_MOUNT_, -EACCES, &note);
}

/* Attached only while a profile lets something be mounted. */
SEC("lsm/inode_follow_link")
int BPF_PROG(profile_inode_follow_link, struct dentry *dentry)
{
	struct tg_mount *m = profile_subjects_current() ? mount_current() : NULL;

	if (!m || !source_is_looked_up(m))
		return 0;
	if (m->source != SOURCE_NAME) {
		m->odd = 1;
		return 0;
	}
	m->awaited = 0;
	return source_refuse(address(dentry));
}

/* Only now it is known whether the filesystem is a device's. */
SEC("lsm/sb_kern_mount")
int BPF_PROG(profile_sb_kern_mount, const struct super_block *sb)
{
	struct tg_mount *m = profile_subjects_current() ? mount_current() : NULL;

	if (!m || !m->awaited || m->awaited != current_call() || m->source != SOURCE_TEXT ||
	    !m->odd || !(sb->s_type->fs_flags & FS_REQUIRES_DEV))
		return 0;
	return source_refuse(0);
}

/* Room to note a mount that is asked about, NULL: there is no memory. */
static __always_inline struct tg_mount *mount_begin(u64 dentry, u64 mnt, u32 request)
{
	struct tg_mount *m = TASK_STORAGE_MADE(&profile_mounting, bpf_get_current_task_btf(), 0);

	if (!m)
		return NULL;
	__builtin_memset(m, 0, sizeof(*m));
	m->dentry = dentry;
	m->mnt = mnt;
	m->request = request;
	return m;
}

static __always_inline void mount_from(struct tg_mount *m, const struct path *from)
{
	m->source = SOURCE_PATH;
	m->from_dentry = address(from->dentry);
	m->from_mnt = address(from->mnt);
}

/* apparmor_sb_mount(): which of the kinds of mount(2) it is. */
SEC("lsm/sb_mount")
int BPF_PROG(profile_sb_mount, const char *dev, const struct path *path, const char *type,
	     unsigned long flags, void *data)
{
	struct tg_mount *m;
	int err;

	if (!profile_subjects_current())
		return 0;
	m = mount_begin(address(path->dentry), address(path->mnt), MAY_MOUNT_);
	if (!m)
		return -ENOMEM;
	m->text = (u64)dev;
	if (flags & MS_REMOUNT) {
		m->flags = flags & ~MS_IGNORED;
		/* of a binary one's options no rule says anything */
		if (!(path->dentry->d_sb->s_type->fs_flags & FS_BINARY_MOUNTDATA))
			m->data = (u64)data;
	} else if (flags & MS_BIND) {
		m->flags = flags & (MS_REC | MS_BIND);
		m->source = SOURCE_NAME;
	} else if (flags & MS_PROPAGATION) {
		m->flags = flags & (MS_REC | MS_SILENT | MS_PROPAGATION);
	} else if (flags & MS_MOVE) {
		m->flags = MS_MOVE;
		m->source = SOURCE_NAME;
	} else {
		m->flags = flags & ~MS_IGNORED;
		m->source = dev ? SOURCE_TEXT : SOURCE_NONE;
		m->type = (u64)type;
		m->data = (u64)data;
	}
	/* which the kernel refuses by itself */
	if (m->source == SOURCE_NAME && !dev)
		return 0;
	err = verdict_of(mount_asked());
	if (!err && m->source)
		m->awaited = current_call();
	return err;
}

/* What is nowhere mounted has no name. */
SEC("lsm/move_mount")
int BPF_PROG(profile_move_mount, const struct path *from, const struct path *to)
{
	struct tg_mount *m;

	if (!profile_subjects_current())
		return 0;
	m = mount_begin(address(to->dentry), address(to->mnt), MAY_MOUNT_);
	if (!m)
		return -ENOMEM;
	m->flags = MS_MOVE;
	if (mount_is_ours(real_mount(address(from->mnt))))
		mount_from(m, from);
	return verdict_of(mount_asked());
}

SEC("lsm/sb_umount")
int BPF_PROG(profile_sb_umount, struct vfsmount *mnt)
{
	if (!profile_subjects_current())
		return 0;
	if (!mount_begin(address(mnt->mnt_root), address(mnt), MAY_UMOUNT_))
		return -ENOMEM;
	return verdict_of(mount_asked());
}

SEC("lsm/sb_pivotroot")
int BPF_PROG(profile_sb_pivotroot, const struct path *old, const struct path *new)
{
	struct tg_mount *m;

	if (!profile_subjects_current())
		return 0;
	m = mount_begin(address(new->dentry), address(new->mnt), MAY_PIVOTROOT_);
	if (!m)
		return -ENOMEM;
	mount_from(m, old);
	return verdict_of(mount_asked());
}

#endif
