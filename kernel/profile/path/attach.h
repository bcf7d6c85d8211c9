/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the profile that is for a program, by its path: attach_find(). exec_attach() of profile/exec.h asks for it at an execution, by name_profile() of state.h. */
#ifndef TIDEGATE_PROFILE_PATH_ATTACH_H
#define TIDEGATE_PROFILE_PATH_ATTACH_H

#include "profile/path/walk.h"

/* States that a match looks back: WB_HISTORY_SIZE. */
#define TG_LOOKED_BACK 32

/* Room for a path of half as many bytes. */
#define TG_TEXT 8192
struct tg_text {
	u32 busy;
	u32 len;
	struct tg_name name; /* whose stack is full */
	char text[TG_TEXT];
	u32 history[TG_LOOKED_BACK];
};

#define TG_TEXTS 256
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TG_TEXTS);
	__type(key, u32);
	__type(value, struct tg_text);
} profile_texts SEC(".maps");

static __always_inline struct tg_text *text_get(void)
{
	u32 first = bpf_get_smp_processor_id(), i, slot;
	struct tg_text *t;

	for (i = UNKNOWN_ZERO; i < TG_TEXTS && MAY_LOOP; i++) {
		slot = (first + i) % TG_TEXTS;
		t = bpf_map_lookup_elem(&profile_texts, &slot);
		if (t && !__sync_val_compare_and_swap(&t->busy, 0, 1))
			return t;
	}
	return NULL;
}

static __always_inline void text_put(struct tg_text *t)
{
	__sync_lock_test_and_set(&t->busy, 0);
}

/* Does an attachment accept the text? */
__noinline bool attach_accepts(u32 table, struct tg_text *t)
{
	u32 state = 1, i;

	USES_ARENA();
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

	USES_ARENA();
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
		if (!MAY_LOOP || ARENA_PTR(char, p->last)[i] != t->text[BOUND(i, TG_TEXT)])
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
		struct tg_profile __arena *p = ARENA_PTR(struct tg_profile, at);
		u32 count;

		if (!MAY_LOOP)
			return NAME_LATER;
		if (p->attach.table) {
			if (attach_accepts(p->attach.table, t)) {
				count = attach_left(p->attach.table, t);
				if (count > length || (!found && count == length)) {
					found = at;
					length =
						count > p->attach_length ? count : p->attach_length;
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
			t->text[BOUND(i, TG_TEXT / 2)] = ARENA_PTR(char, n->disconnected)[i];
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
		if (bpf_probe_read_kernel(t->text + BOUND(t->len, TG_TEXT / 2), len,
					  d->d_name.name))
			goto out;
		t->len += len;
	}
	found = attach_find(n->table, t);
out:
	text_put(t);
	return found;
}

#endif
