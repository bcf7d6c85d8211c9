/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The label of a filesystem object: hint (inode storage), cache (the table of
 * given levels), server (the map). Flask's words; its Table 6 counts them.
 */
#ifndef TIDEGATE_LOMAC_OBJECT_H
#define TIDEGATE_LOMAC_OBJECT_H

#include "lib/overlay.h"
#include "core/given_key.h"
#include "core/stats.h"
#include "core/subject.h"
#include "lomac/budget.h"
#include "lomac/label.h"
#include "lomac/map.h"
#include "lomac/rules.h"

/* A label that the object's kind decides; 0: the map does. */
__noinline u64 label_of_kind(u64 addr, u32 seqno)
{
	struct inode *inode = CAST(struct inode, addr);
	u16 mode = inode->i_mode & S_IFMT;
	u64 magic = inode->i_sb->s_magic;

	if (fs_is_neutral(magic))
		return label_make(policy.top, TG_NEUTRAL, TG_FROM_KIND, seqno);
	if (mode == S_IFCHR && device_is_neutral(inode->i_rdev))
		return label_make(policy.top, TG_NEUTRAL, TG_FROM_KIND, seqno);
	return 0;
}

static __always_inline u8 floor_of(u64 key)
{
	struct tg_charged *floor = bpf_map_lookup_elem(&floors, &key);

	return floor ? floor->level : 0xff;
}

/* Levels fall so often at most. */
static __always_inline void floor_sink(struct tg_charged *floor, u32 level)
{
	u32 i;

	/* no bpf_for(), whose iterator has no room on the stack below a fall */
	for (i = 0; i < TG_LEVELS; i++) {
		u32 now = READ_ONCE(floor->level);

		if (level >= now || __sync_val_compare_and_swap(&floor->level, now, level) == now)
			break;
	}
}

/*
 * A channel may hold data of that level from now on. An entry that there was not yet is the payer's. 0; -ENOSPC: the
 * payer has had its share, and what would put the data there is to be refused. `how`: as share_take has it.
 */
__noinline int floor_charge(u64 key, u8 level, u32 payer, u32 how)
{
	struct tg_charged *floor, fresh = { .level = level, .payer = payer, .at = level };

	if (level >= policy.top)
		return 0;
	floor = bpf_map_lookup_elem(&floors, &key);
	if (floor) {
		floor_sink(floor, level);
		return 0;
	}
	if (!share_take(TG_T_FLOORS, level, payer, how))
		return -ENOSPC;
	if (!bpf_map_update_elem(&floors, &key, &fresh, BPF_NOEXIST))
		return 0;
	share_give(TG_T_FLOORS, level, payer);
	/* somebody else has made it meanwhile, or there is no memory */
	floor = bpf_map_lookup_elem(&floors, &key);
	if (!floor)
		return -ENOSPC;
	floor_sink(floor, level);
	return 0;
}

/* The same by the current task. */
__noinline int floor_lower(u64 key, u8 level)
{
	return floor_charge(key, level, payer_current(), 0);
}

static __always_inline void floor_forget(u64 key)
{
	struct tg_charged *floor = bpf_map_lookup_elem(&floors, &key);
	u32 at, payer;

	if (!floor)
		return;
	at = floor->at;
	payer = floor->payer;
	if (!bpf_map_delete_elem(&floors, &key))
		share_give(TG_T_FLOORS, at, payer);
}

/* /proc/PID/autogroup: no other file of procfs has that name. */
__noinline bool is_autogroup(u64 dentry)
{
	struct dentry *d = CAST(struct dentry, dentry);
	char name[10] = {};

	bpf_probe_read_kernel(name, sizeof(name), d->d_name.name);
	return !__builtin_memcmp(name, "autogroup", sizeof(name));
}

/*
 * /proc/PID and what is in it has its process's level, from moment to moment; 0:
 * not such a file. The numbers in its name may be another namespace's. By `autogroup`
 * the share of the processor of its whole session is set: the top's.
 */
static __always_inline u64 label_of_process(struct inode *inode, u64 dentry, u32 seqno)
{
	u64 at = address(inode) - bpf_core_field_offset(struct proc_inode, vfs_inode);
	struct proc_inode *pi = CAST(struct proc_inode, at);
	struct task_struct *task;
	u8 level;

	if (!pi->pid)
		return 0;
	if (is_autogroup(dentry))
		return label_make(policy.top, TG_KERNEL, TG_FROM_KIND, seqno);
	task = bpf_task_from_pid(pi->pid->numbers[0].nr);
	if (!task)
		return label_make(policy.top, TG_KERNEL, TG_FROM_KIND, seqno);
	/* its own it may change at the level it has, too */
	level = task->tgid == bpf_get_current_task_btf()->tgid ? subject_label(task).level :
								 subject_label(task).observes;
	bpf_task_release(task);
	return label_make(level, TG_KERNEL, TG_FROM_KIND, seqno);
}

/* Found without a place in the initial namespace. */
__noinline u64 label_unmounted(u64 magic, u32 seqno)
{
	if (fs_is_kernel(magic))
		return label_make(policy.top, TG_KERNEL, TG_FROM_KIND, seqno);
	if (fs_is_memory(magic))
		return label_make(policy.top, TG_CREATOR, TG_FROM_KIND, seqno);
	if (fs_is_foreign(magic))
		return label_make(0, 0, TG_FROM_KIND, seqno);
	return LABEL_UNKNOWN;
}

/* What is said of any name where the map sees no place. */
__noinline int place_unmounted(u64 magic, struct tg_found *place)
{
	u64 label = label_unmounted(magic, 0);

	if (!place)
		return -1;
	place->rule.level = label_level(label);
	place->rule.attrs = label_attrs(label);
	place->rule.source = ~0u;
	place->node = NODE_NONE;
	place->full = 0;
	return label & LABEL_UNKNOWN ? -1 : 0;
}

/* What is said of a name: by its path, or, where the map cannot see its filesystem, by what that is. */
static __always_inline int place_rule(u64 dentry, struct tg_found *place)
{
	int err = path_rule(dentry, place);

	if (err <= 0)
		return err;
	return place_unmounted(CAST(struct dentry, dentry)->d_sb->s_magic, place);
}

/* No label, as no path: `err` is path_rule's. */
static __always_inline u64 label_none(int err)
{
	return err == PATH_LATER ? LABEL_UNKNOWN | LABEL_LATER : LABEL_UNKNOWN;
}

/* What others fill is the lowest unless the map names the place where it is mounted; PATH_LATER: as path_rule. */
__noinline int is_foreign(u64 inode)
{
	struct inode *i = CAST(struct inode, inode);
	struct tg_found mount = {};
	int r;

	if (!fs_is_foreign(i->i_sb->s_magic))
		return false;
	r = path_rule(address(i->i_sb->s_root), &mount);
	return r == PATH_LATER ? r : r || !(mount.rule.attrs & TG_EXPLICIT);
}

/*
 * What a rule's attributes say of an object. `neutral` is about handles, which are character devices: a file that were neutral would be
 * written by everybody and trusted by all readers, and so would a directory's names. Those are at the rule's level.
 */
static __always_inline u16 attrs_by_rule(u16 attrs, u16 mode)
{
	return (mode & S_IFMT) == S_IFCHR ? attrs : attrs & ~TG_NEUTRAL;
}

__noinline u64 label_by_rule(struct tg_found *found, u64 inode, bool foreign, u32 seqno)
{
	struct inode *i = CAST(struct inode, inode);
	u16 attrs;

	if (!found)
		return LABEL_UNKNOWN;
	attrs = attrs_by_rule(found->rule.attrs, i->i_mode);

	if (foreign)
		return label_make(0, attrs & TG_LOWNOOPEN, TG_FROM_KIND, seqno);
	if (fs_is_kernel(i->i_sb->s_magic))
		attrs |= TG_KERNEL;
	return label_make(found->rule.level, attrs, TG_FROM_RULE, seqno);
}

/* An entry of the table of given levels: the level, and in whose account it is. */
#define GIVEN_CHARGED (1u << 31)
static __always_inline u8 given_level(u32 entry)
{
	return entry;
}

/* What a name is known by while it stands; never 0. */
static __always_inline u64 name_of(u64 dentry)
{
	struct dentry *d = CAST(struct dentry, dentry);

	return (address(d->d_parent) ^ d->d_name.hash_len) | 1;
}

#define RWSEM_NONSPINNABLE 2 /* beside the owner, while others wait */

/* Has the task locked the directory of the name, to change names there? Of a kernel whose locks do not say so it may have. */
static __always_inline bool locks_directory(u64 task, u64 dentry)
{
	struct dentry *parent = CAST(struct dentry, address(CAST(struct dentry, dentry)->d_parent));
	struct inode *dir = CAST(struct inode, address(parent->d_inode));

	if (!bpf_core_field_exists(((struct inode *)0)->i_rwsem.owner))
		return true;
	return (dir->i_rwsem.owner.counter & ~RWSEM_NONSPINNABLE) == task;
}

/*
 * Does a rename take the name from the inode now? What its hook has noted (names.h) stays if the rename fails after that. But the
 * task that renames has the directory locked until the object has its new name.
 */
static __always_inline bool is_moving(struct tg_inode *memo, u64 dentry, u64 name)
{
	if (READ_ONCE(memo->moving) != name)
		return false;
	return locks_directory(READ_ONCE(memo->mover), dentry) || name_of(dentry) != name;
}

/*
 * The label of what is moving, for other tasks than the one that moves it. No task opens it meanwhile that its new place would lower, or
 * not admit: if it moves, a reader would trust what is lower, and if it does not, a writer would have written to what is higher.
 */
static __always_inline u64 label_moving(struct tg_inode *memo, struct inode *inode, u64 label)
{
	bool opens = label_attrs(label) & TG_LOWWRITE && (inode->i_mode & S_IFMT) != S_IFDIR;

	if (memo->mover == address(bpf_get_current_task_btf()) ||
	    (memo->moving_to >= label_level(label) && !opens))
		return label;
	return label_none(PATH_LATER);
}

/*
 * The label by cache and server, remembered in the inode. LABEL_UNKNOWN if
 * there is none to be had.
 */
__noinline u64 label_find(struct inode *inode __arg_trusted, u64 dentry, u32 class, bool remember)
{
	u32 seqno = policy.seqno, *level;
	struct tg_found found = {};
	struct tg_given_key key = {};
	struct tg_inode *memo;
	struct tg_stats *st = stats_of(class);
	u64 magic, label, name, at = address(inode);
	int r, foreign;
	bool passing = false;

	if (!inode)
		return LABEL_UNKNOWN;
	if (is_special_of_overlay(at)) {
		remember = false;
		if (!look_behind(&at, &dentry))
			return LABEL_UNKNOWN;
	}
	/* as it is before the path is walked: a rename may come between */
	name = name_of(dentry);
	magic = CAST(struct inode, at)->i_sb->s_magic;
	label = label_of_kind(at, seqno);
	if (label)
		goto out;
	if (magic == PROC_MAGIC) {
		label = label_of_process(inode, dentry, seqno);
		if (label)
			return label;
	}
	key = given_key(CAST(struct inode, at));
	foreign = is_foreign(at);
	r = path_rule(dentry, &found);
	if (r == PATH_LATER || foreign == PATH_LATER)
		return label_none(PATH_LATER);
	/* what others serve may number its inodes as it likes */
	level = foreign ? NULL : bpf_map_lookup_elem(&given, &key);
	if (st) {
		if (level)
			__sync_fetch_and_add(&st->cache, 1);
		else
			__sync_fetch_and_add(&st->server, 1);
	}
	if (r > 0) {
		label = label_unmounted(magic, seqno);
		place_unmounted(magic, &found);
		passing = is_in_the_making(address(CAST(struct inode, at)->i_sb));
	} else if (r == 0) {
		label = label_by_rule(&found, at, foreign, seqno);
	} else if (!level) {
		return LABEL_UNKNOWN;
	} else {
		/* what its place says is not known: it may be nobody's below */
		label = label_make(0, TG_LOWNOOPEN, TG_FROM_GIVEN, seqno);
		remember = false;
	}
	if (level)
		label = label_make(given_level(*level), label_attrs(label) & ~TG_LOWWRITE,
				   TG_FROM_GIVEN, seqno);
	if (found.full)
		label |= LABEL_FULL;
out:
	if (label & LABEL_UNKNOWN)
		return label;
	memo = bpf_inode_storage_get(&inodes, inode, 0, 0);
	if (memo && is_moving(memo, dentry, name))
		return label_moving(memo, inode, label);
	if (!remember || policy.seqno != seqno)
		return label;
	memo = INODE_STORAGE_MADE(&inodes, inode);
	if (memo) {
		if (name_of(dentry) != name)
			return label;
		WRITE_ONCE(memo->place, (u64)seqno << 32 | found.node);
		memo->rule = found.rule.source;
		/* its place is noted all the same, for what is asked next */
		if (passing)
			return label;
		__sync_lock_test_and_set(&memo->word, label);
		/* a level given or promoted meanwhile, or another name, has to be found again */
		level = bpf_map_lookup_elem(&given, &key);
		if (is_moving(memo, dentry, name) || name_of(dentry) != name ||
		    !!level != (label_origin(label) == TG_FROM_GIVEN) ||
		    (level && given_level(*level) != label_level(label)))
			__sync_lock_test_and_set(&memo->word, 0);
	}
	return label;
}

/* The label remembered here; 0: none that holds. */
static __always_inline u64 label_in(struct tg_inode *memo)
{
	u64 label = memo ? memo->word : 0;

	return label_seqno(label) == policy.seqno ? label : 0;
}

static __always_inline u64 label_hint(struct inode *inode)
{
	return label_in(bpf_inode_storage_get(&inodes, inode, 0, 0));
}

/* The label, by hint if there is one. */
static __always_inline u64 label_of(struct inode *inode, u64 dentry, u32 class)
{
	u64 label = label_hint(inode);

	return label ? label : label_find(inode, dentry, class, true);
}

/*
 * Room for one more level that the current subject gives, which is at `by`, and for those that creations under way will
 * need; none once they are written down.
 */
static __always_inline bool given_has_room(u8 by)
{
	/* entries that the daemon has put back are in nobody's account, and take the level's room all the same */
	return !given_closed && budget_admits(by, policy.top, table_room(TG_T_GIVEN), given_used,
					      READ_ONCE(*share_of(TG_T_GIVEN, by, payer_current())),
					      1, BUDGET_FILES);
}

/* An entry has gone: its account has that back. What user space has put there is in nobody's. */
static __always_inline void given_back(u32 entry)
{
	__sync_fetch_and_sub(&given_used, 1);
	if (entry & GIVEN_CHARGED)
		share_give(TG_T_GIVEN, entry >> 8 & 0xf, entry >> 12);
}

/* Writes a given level down, in the account of the current subject. */
__noinline int given_enter(struct inode *inode __arg_trusted, u32 level)
{
	u32 by = subject_level(subject_current()), payer, entry, *before;
	struct tg_given_key key;
	int err;

	if (!inode)
		return -EPERM;
	key = given_key(inode);
	payer = BOUND(payer_current(), TG_ACCOUNTS);
	entry = level | by << 8 | payer << 12 | GIVEN_CHARGED;
	/* it has been asked for (given_has_room), and is what cannot be refused any more */
	share_take(TG_T_GIVEN, by, payer, BUDGET_ALWAYS);
	err = bpf_map_update_elem(&given, &key, &entry, BPF_NOEXIST);
	if (!err) {
		__sync_fetch_and_add(&given_used, 1);
		return 0;
	}
	share_give(TG_T_GIVEN, by, payer);
	/* whose account it is in does not change */
	before = bpf_map_lookup_elem(&given, &key);
	entry = level | (before ? *before & ~0xffu : 0);
	return bpf_map_update_elem(&given, &key, &entry, BPF_EXIST);
}

/* Gives an object a level that its path does not, for good. */
__noinline int label_give(struct inode *inode __arg_trusted, u64 dentry, u32 level)
{
	struct tg_inode *memo;
	int err;

	if (!inode)
		return -EPERM;
	err = given_enter(inode, level);
	memo = bpf_inode_storage_get(&inodes, inode, 0, 0);
	if (memo)
		__sync_lock_test_and_set(&memo->word, 0);
	if (err) {
		__sync_fetch_and_add(&labels_failed, 1);
		return err;
	}
	label_find(inode, dentry, TG_C_FILE, true);
	return 0;
}

/*
 * The label of an object known only by address, and, if `source` is there, the rule that gave it (~0: none); nothing is remembered.
 * `behind`: of what is behind an overlay's file, which is neutral itself.
 */
__noinline u64 label_looked(u64 inode, u64 dentry, u32 *source, bool behind)
{
	struct inode *i;
	struct tg_given_key key;
	struct tg_found found = {};
	u64 magic, label;
	int r, foreign;
	u32 *level;

	if (source)
		*source = ~0u;
	if ((behind || is_special_of_overlay(inode)) && !look_behind(&inode, &dentry))
		return LABEL_UNKNOWN;
	i = CAST(struct inode, inode);
	magic = i->i_sb->s_magic;
	label = label_of_kind(inode, policy.seqno);
	key = given_key(i);
	if (!label && magic == PROC_MAGIC)
		label = label_of_process(i, dentry, policy.seqno);
	if (label)
		return label;
	foreign = is_foreign(inode);
	r = path_rule(dentry, &found);
	if (r == PATH_LATER || foreign == PATH_LATER)
		return label_none(PATH_LATER);
	level = foreign ? NULL : bpf_map_lookup_elem(&given, &key);
	if (r < 0 && !level)
		return LABEL_UNKNOWN;
	if (r > 0)
		label = label_unmounted(magic, policy.seqno);
	else if (r == 0)
		label = label_by_rule(&found, inode, foreign, policy.seqno);
	else
		label = label_make(0, TG_LOWNOOPEN, TG_FROM_GIVEN, policy.seqno);
	if (!r && source)
		*source = found.rule.source;
	if (level)
		label = label_make(given_level(*level), label_attrs(label) & ~TG_LOWWRITE,
				   TG_FROM_GIVEN, policy.seqno);
	return label;
}

static __always_inline u64 label_peek(u64 inode, u64 dentry, u32 *source)
{
	return label_looked(inode, dentry, source, false);
}

/* Of what a descriptor is read and written by. */
static __always_inline u64 label_held(u64 inode, u64 dentry, u32 *source)
{
	return label_looked(inode, dentry, source, true);
}

/*
 * The lowest level whose data memory that no path names may hold: its writers', and
 * of a tmpfs file that has lost its name, what it had before. LEVEL_UNSURE: that cannot be
 * told now.
 */
static __always_inline u8 memory_level(struct inode *inode, u64 dentry, u32 class)
{
	struct dentry *d = CAST(struct dentry, dentry);
	u8 floor = floor_of(address(inode)), level = policy.top;

	if (d->d_parent != d) {
		u64 label = label_of(inode, dentry, class);

		if (label & LABEL_LATER)
			return LEVEL_UNSURE;
		level = label & LABEL_UNKNOWN ? 0 : label_level(label);
	}
	return floor < level ? floor : level;
}

/* That level as a label. */
static __always_inline u64 memory_label(struct inode *inode, u64 dentry, u32 class)
{
	u8 level = memory_level(inode, dentry, class);

	return level == LEVEL_UNSURE ? LABEL_UNKNOWN | LABEL_LATER :
				       label_make(level, 0, TG_FROM_KIND, policy.seqno);
}

/*
 * May a task at this level write memory by a descriptor? Not one that fell while it was a file:
 * what it was then is in `floors`.
 */
static __always_inline bool memory_admits(u64 inode, u64 dentry, u8 level)
{
	struct dentry *d = CAST(struct dentry, dentry);

	return d->d_parent == d || level >= policy.top || level >= floor_of(inode);
}

/* Does an open file write to memory like that? Of an overlay's file it is what lies behind it. */
__noinline bool writes_memory(u64 inode, u64 dentry, u8 level)
{
	if (is_of_overlay(inode) && !look_behind(&inode, &dentry))
		return false;
	return inode_is_memory(CAST(struct inode, inode)) && memory_admits(inode, dentry, level);
}

static __always_inline struct lomac_object lomac_object_of_label(u64 label)
{
	struct lomac_object o = {
		.level = label_level(label),
		.attrs = label_attrs(label),
		.known = !(label & LABEL_UNKNOWN),
	};
	return o;
}

#endif
