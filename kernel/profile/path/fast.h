/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files and names that are simply allowed, by what is remembered of them: decided without being asked about in full. */
#ifndef TIDEGATE_PROFILE_PATH_FAST_H
#define TIDEGATE_PROFILE_PATH_FAST_H

#include "profile/path/state.h"
#include "profile/verdict.h"

/*
 * The quick way, without a frame of its own: is all of this simply allowed, whoever's the object is, by what is
 * remembered of it, or of the directory that the name is in? What is not known is asked in full.
 */
struct tg_quick {
	struct tg_name name;
	struct tg_who who;
	long state;
};

static __always_inline bool quick_begin(struct tg_quick *q, struct tg_confined *c, u64 mnt)
{
	struct tg_profile __arena *p;

	q->who = who_of(c);
	p = ARENA_PTR(struct tg_profile, q->who.profile);
	q->name.table = p->file.table;
	q->name.start = p->file.start;
	if (!q->who.profile || !q->name.table)
		return false;
	q->name.number = q->who.number;
	q->name.by = q->who.profile;
	q->name.mnt = mnt;
	place_begin(&q->name);
	return true;
}

static __always_inline bool quick_ends(struct tg_quick *q, long state, u32 request)
{
	q->state = state;
	return state >= 0 && is_simply_allowed(&q->who, q->name.table, state, request) &&
	       policy_seqno() == q->who.number;
}

/* The state before the names in a directory. */
static __always_inline long quick_stem(struct tg_quick *q, u64 dir)
{
	return placed_recall(&q->name, dir, name_start(q->name.start, NAME_STEM));
}

/* A name that its directory's lock keeps meanwhile. */
static __always_inline bool quick_name(struct tg_quick *q, long stem, struct dentry *d, bool dir,
				       u32 request)
{
	if (stem < 0)
		return false;
	stem = feed_component(feed_of(q->name.table), stem, d);
	return quick_ends(q, dir ? profile_step(q->name.table, stem, '/') : stem, request);
}

static __always_inline bool name_quickly(struct tg_quick *q, struct tg_confined *c,
					 struct path *dir, struct dentry *d, bool is_dir,
					 u32 request)
{
	return quick_begin(q, c, address(dir->mnt)) &&
	       quick_name(q, quick_stem(q, address(d->d_parent)), d, is_dir, request);
}

static __always_inline bool path_quickly(struct tg_confined *c, struct path *path, bool dir,
					 u32 request)
{
	u64 dentry = address(path->dentry);
	struct tg_quick q;

	return quick_begin(&q, c, address(path->mnt)) &&
	       quick_ends(&q,
			  placed_recall(&q.name, dentry,
					name_start(q.name.start, dir ? NAME_DIR : NAME_FILE)),
			  request);
}

/*
 * A file that is created by being opened is asked about twice in a row, with nothing in between of what the task
 * does: the second time by what was found the first time. It may have been renamed in between, as it may right after.
 */
static __always_inline void name_is_made(struct tg_who *who, u64 dentry, u32 table, u32 state)
{
	struct tg_confined *c = who->subject;

	c->made = dentry;
	c->made_plain = profile_pair(table, state)->plain;
	c->made_at = who->profile;
	c->made_number = who->number;
}

/* Is it the file that this open(2) has created, and all that it is opened for allowed? */
static __always_inline bool made_is_opened(struct tg_confined *c, struct file *file, u32 request)
{
	u64 made = c->made;
	struct tg_who who;

	c->made = 0;
	if (made != address(file->f_path.dentry) || !(file->f_mode & FMODE_CREATED_FLAG) ||
	    file->f_flags & O_TMPFILE_FLAG)
		return false;
	who = who_of(c);
	return who.profile && who.profile == c->made_at && who.number == c->made_number &&
	       !c->learning && !(request & ~c->made_plain);
}

#endif
