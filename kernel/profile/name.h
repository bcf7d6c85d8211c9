/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where an automaton gets to by an object's path, as the profile model sees paths: through
 * the mounts by which it was reached, to the root of the task's mount namespace
 * (d_namespace_path() of security/apparmor/path.c).
 *
 * The state is remembered by the path itself. A walk up hashes it, from the last component
 * to the first, twice, with secret multipliers and different shifts: two paths can be made to
 * agree in one of the hashes without its secret, but by bits that the other one tells apart. The
 * automaton is walked only if that path has not been seen under this automaton and
 * policy. So nothing has to be forgotten when something is renamed, mounted or linked: what
 * has another path then is looked up by that. Each walk is thrown away if a rename or a mount ran
 * meanwhile.
 *
 * As long as none runs at all, an object that is there keeps its path, and the state is remembered by
 * where the kernel has the object, too, which no walk has to find out.
 */
#ifndef TIDEGATE_NAME_H
#define TIDEGATE_NAME_H

/* A state by its path's hashes. Each hash is kept with the state, so that of two writers at once
 * nothing is read but what one of them wrote. */
struct tg_remembered {
	u64 one;
	u64 two;
	u64 state;
};

/* States that a match looks back: WB_HISTORY_SIZE. */
#define TG_LOOKED_BACK 32

#define TG_REMEMBERED_BITS 15
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << TG_REMEMBERED_BITS);
	__type(key, u32);
	__type(value, struct tg_remembered);
} remembered SEC(".maps");

/* Set when the monitor is loaded, odd, and never shown. */
u64 secrets[4];

/* In place of a first state: not a state is remembered, but the profile that is for the program. */
#define NAME_ATTACH 0x80000000u

enum tg_name_error {
	NAME_DISCONNECTED = -1, /* no path to the root */
	NAME_LATER = -2,	/* renames or mounts do not end */
	NAME_TOO_LONG = -3,
};

/* path_flags: security/apparmor/include/path.h */
#define PATH_CONNECT 0x4
#define PATH_CHROOT_REL 0x8
#define PATH_MEDIATE_DELETED 0x10000

static __always_inline void name_mix(struct tg_name *n, u64 word)
{
	u64 one = (n->one ^ word) * secrets[0], two = (n->two + word) * secrets[1];

	n->one = one ^ one >> 32;
	n->two = two ^ two >> 29;
}

/* The kernel's words at any address; what is not there is 0. */
static __always_inline u64 name_word(u64 at)
{
	return CAST(struct qstr, at)->hash_len;
}

/* False: it was not hashed to its end. */
static __always_inline bool name_mix_component(struct tg_name *n, struct dentry *d)
{
	u64 at = (u64)d->d_name.name, len = d->d_name.len & 255, end = at + (len & ~7ull), word;

	while (at != end) {
		if (!MAY_LOOP)
			return false;
		name_mix(n, name_word(at));
		at += 8;
	}
	/* the length above the bytes that are left, so that a hash's words can be told apart from its end */
	word = len << 56;
	if (len & 7)
		word |= name_word(at) & ((1ull << (len & 7) * 8) - 1);
	name_mix(n, word);
	return true;
}

static __always_inline struct mount *real_mount(u64 mnt)
{
	return CAST(struct mount, mnt - bpf_core_field_offset(struct mount, mnt));
}

/* Namespaces have numbers from here on; trees of mounts that are nowhere attached have others, or none. */
#define NS_NUMBERS 0xf0000000u
#define NS_INITIAL 0xeffffff8u

static __always_inline bool mount_is_anonymous(struct mount *m)
{
	u64 at = (u64)m->mnt_ns;
	u32 number;

	if (!at || at >= (u64)-4095)
		return true;
	number = CAST(struct mnt_namespace, at)->ns.inum;
	return number < NS_NUMBERS && number != NS_INITIAL;
}

static __always_inline bool mount_is_ours(struct mount *m)
{
	struct task_struct *me = bpf_get_current_task_btf();
	u64 ns = (u64)m->mnt_ns;

	return ns && ns == (u64)CAST(struct nsproxy, address(me->nsproxy))->mnt_ns;
}

/* The clone of a mount that an overlay reads its layers by: what is opened there was asked about above. */
static __always_inline bool mount_is_private(u64 mnt)
{
	struct mount *m = real_mount(mnt);

	return (u64)m->mnt_ns >= (u64)-4095 && !(m->mnt.mnt_flags & MNT_INTERNAL);
}

/* Hashes the path, from its end up, and notes the dentries on the way. False: it is too deep. */
static __always_inline bool name_climb(struct tg_name *n, struct tg_scratch *w)
{
	struct dentry *d = CAST(struct dentry, n->dentry), *up;
	struct mount *m = real_mount(n->mnt), *parent;
	u64 top = n->raw ? 0 : (u64)m->mnt.mnt_root, root = 0, root_mnt = 0;

	if (n->flags & PATH_CHROOT_REL && !n->raw) {
		struct task_struct *me = bpf_get_current_task_btf();
		struct fs_struct *fs = CAST(struct fs_struct, address(me->fs));

		root = (u64)fs->root.dentry;
		root_mnt = (u64)fs->root.mnt;
	}
	n->one = secrets[2] ^ ((u64)n->number << 32 | n->table);
	n->two = secrets[3] + n->start;
	n->root = 1;
	n->connected = 0;
	n->steps = 0;
	w->n = 0;
	if (n->dir)
		name_mix(n, 1);
	while (MAY_LOOP) {
		if (n->steps >= 2 * TG_DEPTH)
			return false;
		n->steps++;
		if (root && (u64)d == root && (u64)m + bpf_core_field_offset(struct mount, mnt) == root_mnt) {
			n->connected = mount_is_ours(m);
			return true;
		}
		if ((u64)d == top) {
			parent = CAST(struct mount, m->mnt_parent);
			if ((u64)parent == (u64)m) {
				n->connected = !root && mount_is_ours(m);
				/* seen from where no root is: by the filesystem alone */
				n->raw = !n->connected && (root || mount_is_anonymous(m));
				return true;
			}
			d = CAST(struct dentry, m->mnt_mountpoint);
			m = parent;
			top = (u64)m->mnt.mnt_root;
			continue;
		}
		up = CAST(struct dentry, d->d_parent);
		if ((u64)up == (u64)d)
			return true;
		if (!name_mix_component(n, d))
			return false;
		n->root = 0;
		if (w->n >= TG_DEPTH)
			return false;
		w->up[BOUND(w->n, TG_DEPTH)] = (u64)d;
		w->n++;
		d = up;
	}
	return false;
}

/*
 * The same, again from the filesystem's root where that is what there is; and ends the hashes.
 * Of functions with a body of their own the verifier looks at each once.
 */
__noinline bool name_seen(struct tg_name *n, struct tg_scratch *w)
{
	if (!n || !w)
		return false;
	n->raw = 0;
	if (!name_climb(n, w) || (n->raw && !name_climb(n, w)))
		return false;
	name_mix(n, n->connected ? 1 : (u64)n->disconnected << 1);
	return true;
}

/* The state after the first bytes of the scratch's text. */
__noinline u32 name_feed(u32 table, u32 state, struct tg_scratch *w, u32 len)
{
	AT(struct tg_table) *t = PART(struct tg_table, table);
	u32 width = t->width, next = t->next, off;

	asm volatile("" ::"r"(&arena));
	if (!w)
		return 0;
	for (off = UNKNOWN_ZERO; off < len; off += 16) {
		u32 at = BOUND(off, 256);

		if (!MAY_LOOP)
			return 0;
#pragma unroll
		for (u32 k = 0; k < 16; k++) {
			if (at + k >= len)
				return state;
			state = PART(u16, next)[state * width + t->classes[(u8)w->text[at + k]]];
		}
	}
	return state;
}

/* Walks the automaton by the path that a climb has noted. */
static __always_inline u32 name_walk(struct tg_name *n, struct tg_scratch *w)
{
	u32 state = n->start, i, len;

	if (!n->connected && n->disconnected_len) {
		bpf_for(i, 0, n->disconnected_len)
			state = profile_step(n->table, state, PART(u8, n->disconnected)[i]);
	}
	if (!w->n)
		return n->root && n->connected ? profile_step(n->table, state, '/') : state;
	bpf_for(i, 0, w->n) {
		struct dentry *d = CAST(struct dentry, w->up[BOUND(w->n - 1 - i, TG_DEPTH)]);

		len = d->d_name.len & 255;
		w->text[0] = '/';
		if (bpf_probe_read_kernel(w->text + 1, len, d->d_name.name))
			return 0;
		state = name_feed(n->table, state, w, len + 1);
	}
	if (n->dir)
		state = profile_step(n->table, state, '/');
	return state;
}

/* Room for a path of half as many bytes. */
#define TG_TEXT 8192
struct tg_text {
	u32 busy;
	u32 len;
	char text[TG_TEXT];
	u32 history[TG_LOOKED_BACK];
};

#define TG_TEXTS 32
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TG_TEXTS);
	__type(key, u32);
	__type(value, struct tg_text);
} texts SEC(".maps");

static __always_inline struct tg_text *text_get(void)
{
	u32 i;

	bpf_for(i, 0, TG_TEXTS) {
		u32 slot = i;
		struct tg_text *t = bpf_map_lookup_elem(&texts, &slot);

		if (t && !__sync_val_compare_and_swap(&t->busy, 0, 1))
			return t;
	}
	return NULL;
}

/* Does an attachment accept the text? */
__noinline bool attach_accepts(u32 table, struct tg_text *t)
{
	u32 state = 1, i;

	asm volatile("" ::"r"(&arena));
	if (!t)
		return false;
	for (i = UNKNOWN_ZERO; i < t->len; i++) {
		if (!MAY_LOOP)
			return false;
		state = profile_step(table, state, t->text[BOUND(i, TG_TEXT)]);
		if (!state)
			return false;
	}
	return profile_perms(table, state, true)->allow & MAY_EXEC_;
}

/* How much of the text it matches before it goes in circles: leftmatch_fb() of security/apparmor/match.c. */
__noinline u32 attach_left(u32 table, struct tg_text *t)
{
	u32 state = 1, i, j, count = 0, kept = 0;

	asm volatile("" ::"r"(&arena));
	if (!t)
		return 0;
	bpf_for(i, 0, t->len) {
		u32 before = state;

		t->history[BOUND(i, TG_LOOKED_BACK)] = state;
		state = profile_step(table, state, t->text[BOUND(i, TG_TEXT)]);
		if (before >= state) {
			bpf_for(j, 0, kept) {
				if (t->history[BOUND(i - j, TG_LOOKED_BACK)] == state)
					return count - j;
			}
		}
		if (kept < TG_LOOKED_BACK)
			kept++;
		count++;
	}
	return count;
}

/* Is it the last part of a profile's name? */
static __always_inline bool attach_is(struct tg_profile __arena *p, struct tg_text *t)
{
	u32 i;

	for (i = UNKNOWN_ZERO; i < t->len; i++) {
		if (!MAY_LOOP || PART(char, p->last)[i] != t->text[BOUND(i, TG_TEXT)])
			return false;
	}
	return true;
}

/*
 * The most specific of the profiles from this one on that are for the program of this path;
 * 0: none, or several that are equally so. find_attach() of security/apparmor/domain.c.
 */
static __always_inline long attach_find(u32 first, struct tg_text *t)
{
	u32 at = first, found = 0, length = 0;
	bool conflict = false;

	while (at) {
		struct tg_profile __arena *p = PART(struct tg_profile, at);
		u32 count;

		if (!MAY_LOOP)
			return NAME_LATER;
		if (p->attach.table) {
			if (attach_accepts(p->attach.table, t)) {
				count = attach_left(p->attach.table, t);
				if (count > length || (!found && count == length)) {
					found = at;
					length = count > p->attach_length ? count : p->attach_length;
					conflict = false;
				} else if (count == length) {
					conflict = true;
				}
			}
		} else if (p->last_len == t->len && attach_is(p, t)) {
			return at;
		}
		at = p->sibling;
	}
	/* the last one may not have been read to its end */
	if (!MAY_LOOP)
		return NAME_LATER;
	return conflict ? 0 : found;
}

/* The profile for the program whose path a climb has noted. */
static __noinline long name_attach(struct tg_name *n, struct tg_scratch *w)
{
	struct tg_text *t = text_get();
	long found = NAME_TOO_LONG;
	u32 i;

	if (!t)
		return NAME_LATER;
	t->len = 0;
	if (!n->connected) {
		bpf_for(i, 0, n->disconnected_len) {
			t->text[BOUND(i, TG_TEXT / 2)] = PART(char, n->disconnected)[i];
			t->len = BOUND(i + 1, TG_TEXT / 2);
		}
	}
	bpf_for(i, 0, w->n) {
		struct dentry *d = CAST(struct dentry, w->up[BOUND(w->n - 1 - i, TG_DEPTH)]);
		u32 len = d->d_name.len & 255;

		if (t->len + len + 1 >= TG_TEXT / 2)
			goto out;
		t->text[BOUND(t->len, TG_TEXT / 2)] = '/';
		t->len++;
		if (bpf_probe_read_kernel(t->text + BOUND(t->len, TG_TEXT / 2), len, d->d_name.name))
			goto out;
		t->len += len;
	}
	found = attach_find(n->table, t);
out:
	__sync_lock_test_and_set(&t->busy, 0);
	return found;
}

/* One of the two entries that a state may be in. */
static __always_inline struct tg_remembered *name_place(struct tg_name *n, u32 second)
{
	u32 at = n->one >> (64 - TG_REMEMBERED_BITS) ^ second;

	return bpf_map_lookup_elem(&remembered, &at);
}

static __always_inline long name_recall_at(struct tg_name *n, u32 second)
{
	struct tg_remembered *r = name_place(n, second);
	u64 state;

	if (!r)
		return NAME_LATER;
	state = *(volatile u64 *)&r->state;
	if ((*(volatile u64 *)&r->one ^ state) != n->one || (*(volatile u64 *)&r->two ^ state) != n->two)
		return NAME_LATER;
	return state;
}

/* The state that this path has led to; NAME_LATER: none is remembered. */
static __always_inline long name_recall(struct tg_name *n)
{
	long state = name_recall_at(n, 0);

	return state >= 0 ? state : name_recall_at(n, 1);
}

/* What was in the first entry goes to the second: two that meet there do not put each other out. */
static __always_inline void name_remember(struct tg_name *n, u64 state)
{
	struct tg_remembered *first = name_place(n, 0), *second = name_place(n, 1);

	if (!first || !second)
		return;
	second->one = first->one;
	second->two = first->two;
	second->state = first->state;
	first->one = n->one ^ state;
	first->two = n->two ^ state;
	first->state = state;
}

/*
 * Hashes what the path depends on while no rename and no mount runs: the name and the directory by
 * their addresses, the mount, the namespace. Addresses are used again; the inode's number and
 * generation tell what is there. What is left is another name of the same file, at the address of one that was
 * removed, with the same hash: who may open that file by a name that it had may keep it open as well.
 * False: it depends on more.
 */
static __always_inline bool name_placed(struct tg_name *n, u64 sequence)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct dentry *d = CAST(struct dentry, n->dentry);
	struct inode *inode = CAST(struct inode, d->d_inode);

	if (n->flags & PATH_CHROOT_REL || !inode)
		return false;
	/* no table lies so high: no path's hash begins so */
	n->one = secrets[2] ^ ((u64)n->number << 32 | 1u << 31 | n->table);
	n->two = secrets[3] + n->start;
	name_mix(n, n->dentry);
	name_mix(n, n->mnt);
	name_mix(n, sequence);
	name_mix(n, address(d->d_parent));
	name_mix(n, d->d_name.hash_len);
	name_mix(n, inode->i_ino);
	name_mix(n, (u64)n->dir << 32 | inode->i_generation);
	name_mix(n, address(CAST(struct nsproxy, address(me->nsproxy))->mnt_ns));
	return true;
}

static __always_inline bool name_connects(struct tg_name *n)
{
	return n->connected || n->flags & PATH_CONNECT;
}

/* What is found by a path that stays as it is meanwhile. */
static __always_inline long name_read(struct tg_name *n, struct tg_scratch *w, bool attach)
{
	u64 before;
	long ret;

	for (n->tries = 0; n->tries < TG_TRIES && MAY_LOOP; n->tries++) {
		before = path_settled();
		if (before & PATH_ODD)
			break;
		if (!name_seen(n, w))
			return NAME_TOO_LONG;
		if (path_sequence() != before)
			continue;
		if (!name_connects(n))
			return NAME_DISCONNECTED;
		ret = name_recall(n);
		if (ret >= 0)
			return ret;
		ret = attach ? name_attach(n, w) : name_walk(n, w);
		/* not found for want of room: not to be remembered */
		if (ret < 0)
			return ret;
		if (path_sequence() == before && policy_number() == n->number) {
			name_remember(n, ret);
			return ret;
		}
	}
	return NAME_LATER;
}

static __always_inline long name_look_up(struct tg_name *n, bool attach)
{
	struct tg_scratch *w = scratch_get();
	long ret;

	if (!w)
		return NAME_LATER;
	ret = name_read(n, w, attach);
	scratch_put(w);
	return ret;
}

/* The same as name_state(), by the path alone. */
__noinline long name_state_look_up(struct tg_name *n)
{
	return n ? name_look_up(n, false) : NAME_LATER;
}

/* The state that the path leads to, or an enum tg_name_error. */
__noinline long name_state(struct tg_name *n)
{
	u64 before, one, two;
	long state;

	if (!n)
		return NAME_LATER;
	/* nothing is allowed by no rules */
	if (!n->table)
		return 0;
	before = path_sequence();
	if (before & PATH_ODD || !name_placed(n, before))
		return name_state_look_up(n);
	state = name_recall(n);
	if (state >= 0)
		return state;
	one = n->one;
	two = n->two;
	state = name_state_look_up(n);
	if (state >= 0 && path_sequence() == before && policy_number() == n->number) {
		n->one = one;
		n->two = two;
		name_remember(n, state);
	}
	return state;
}

/* Of the profiles from n->table on, the one that is for the program, 0: none; or an enum tg_name_error. */
__noinline long name_profile(struct tg_name *n)
{
	if (!n)
		return NAME_LATER;
	if (!n->table)
		return 0;
	n->start = NAME_ATTACH;
	return name_look_up(n, true);
}

#endif
