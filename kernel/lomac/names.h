/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: directories and the names in them. */
#ifndef TIDEGATE_LOMAC_NAMES_H
#define TIDEGATE_LOMAC_NAMES_H

#include "lomac/check.h"

/*
 * What the map says of a name in a directory, whose label is remembered. Where the
 * directory's path has left the map's nodes behind it is what it says of the directory.
 * If a policy came meanwhile, that node is another place's in it: the whole path is walked.
 */
static __always_inline int name_rule(struct tg_inode *dir, u64 label, struct dentry *dentry,
				     struct tg_found *place)
{
	u64 at = READ_ONCE(dir->place);
	int err = 0;

	if (at >> 32 != label_seqno(label))
		return place_rule(address(dentry), place);
	if ((u32)at == NODE_NONE) {
		err = place_unmounted(UNTRUSTED(dentry)->d_sb->s_magic, place);
	} else if (label & LABEL_FULL || label_origin(label) != TG_FROM_RULE) {
		err = child_rule(at, label & LABEL_FULL ? 1 : 0, address(dentry), place);
	} else {
		place->rule.level = label_level(label);
		place->rule.attrs = label_attrs(label);
		place->rule.source = dir->rule;
		place->node = at;
	}
	return policy_seqno() == label_seqno(label) ? err : place_rule(address(dentry), place);
}

/*
 * modify(directory), and what the map says of the name to be made. The label of
 * the directory holds the node its path reached, so a name costs one step; `memo`
 * is where it is remembered, NULL if it is not.
 */
static __always_inline int lomac_check_dir_change(struct lomac_subject who, struct inode *dir,
						  struct dentry *dentry, u8 op,
						  struct tg_found *place, struct tg_inode **memo)
{
	struct tg_note n = { .op = op, .class = TG_C_DIR };
	u64 parent = address(UNTRUSTED(dentry)->d_parent), label;
	struct lomac_object d;
	int err;

	count_query(TG_C_DIR);
	*memo = bpf_inode_storage_get(&inodes, dir, 0, 0);
	label = label_in(*memo);
	if (!label) {
		label = label_find(dir, parent, TG_C_DIR, true);
		*memo = bpf_inode_storage_get(&inodes, dir, 0, 0);
	}
	d = lomac_object_of_label(label);
	if (!lomac_names(who, d, policy.top)) {
		note_object(&n, dir, parent, label);
		n.dentry = address(dentry);
		return deny(subject_current(), &n, refusal(&n, label));
	}
	if (!place)
		return 0;
	if (label_origin(label) == TG_FROM_KIND) {
		place->rule.level = label_level(label);
		place->rule.attrs = label_attrs(label);
		place->rule.source = ~0u;
		if (*memo && (u32)READ_ONCE((*memo)->place) == NODE_NONE)
			place->node = NODE_NONE;
		return 0;
	}
	err = *memo ? name_rule(*memo, label, dentry, place) : -1;
	if (!err) {
		/* only the top makes devices: of whatever else gets the name the rule's level counts */
		place->rule.attrs &= ~TG_NEUTRAL;
		return 0;
	}
	/* what has no label is the top's */
	if (err != PATH_LATER && who.level >= policy.top) {
		place->rule.level = policy.top;
		place->rule.attrs = 0;
		place->rule.source = ~0u;
		return 0;
	}
	n.reason = TG_R_NO_LABEL;
	n.dentry = address(dentry);
	return deny(subject_current(), &n, refusal(&n, label_none(err)));
}

/*
 * The label of what a name stands for: remembered, or given, or by the directory's
 * node, which is a step where a path would be a walk. What is about to lose its
 * name is not remembered.
 */
static __always_inline u64 label_named(struct tg_inode *parent, struct dentry *dentry,
				       struct inode *inode)
{
	u64 label = label_hint(inode), above = label_in(parent);
	u32 seqno = policy.seqno, *level;
	struct tg_found place = {};
	struct tg_given_key key;
	u16 attrs;
	int err;

	if (label)
		return label;
	if (!parent || !above || label_origin(above) == TG_FROM_KIND ||
	    fs_is_foreign(fs_magic(inode)))
		return label_find(inode, address(dentry), TG_C_DIR, true);
	/* its filesystem is the directory's, whose kind has decided nothing */
	if ((inode->i_mode & S_IFMT) == S_IFCHR)
		label = label_of_kind(address(inode), seqno);
	if (label)
		return label;
	err = name_rule(parent, above, dentry, &place);
	if (err)
		return label_none(err);
	attrs = attrs_by_rule(place.rule.attrs, inode->i_mode);
	key = given_key(inode);
	level = bpf_map_lookup_elem(&given, &key);
	if (level)
		return label_make(given_level(*level), attrs & ~TG_LOWWRITE, TG_FROM_GIVEN, seqno);
	return label_make(place.rule.level, attrs, TG_FROM_RULE, seqno);
}

/*
 * What a name stands for, when the name is taken from it. To write to a device that is neutral, or to a socket or a FIFO
 * that is `lowwrite`, is everybody's, but its name is not: by that one would take it from everybody else, or put
 * another one there. A device's kind does not say whose it is; its place does.
 */
static __noinline u64 label_named_for(struct inode *inode, u64 dentry, u64 label)
{
	u16 type = inode->i_mode & S_IFMT, opened = label_attrs(label) & (TG_NEUTRAL | TG_LOWWRITE);
	struct tg_found place = {};
	struct tg_given_key key;
	u32 *level;
	int err;

	if (type == S_IFREG || type == S_IFDIR || type == S_IFLNK || !opened)
		return label;
	/* of an overlay's object what is behind it is asked about */
	if (fs_is_neutral(fs_magic(inode)))
		return label;
	if (label_origin(label) != TG_FROM_KIND)
		return label & ~((u64)opened << 8);
	err = place_rule(dentry, &place);
	if (err)
		return label_none(err);
	key = given_key(inode);
	level = bpf_map_lookup_elem(&given, &key);
	return label_make(level ? given_level(*level) : place.rule.level,
			  place.rule.attrs & ~(TG_NEUTRAL | TG_LOWWRITE), TG_FROM_RULE,
			  policy.seqno);
}

/* modify(what a name stands for), to take the name from it or to give it a further one. */
static __always_inline int modify_named(struct lomac_subject who, struct inode *inode,
					struct dentry *dentry, u64 label, u8 op)
{
	label = label_named_for(inode, address(dentry), label);
	return modify(who, inode, address(dentry), label, op, TG_C_DIR);
}

static __always_inline struct lomac_object place_object(struct tg_found *place)
{
	struct lomac_object o = { .level = place->rule.level,
				  .attrs = place->rule.attrs,
				  .known = true };

	return o;
}

/* What is moved or linked is not made: a note that is still there is of a creation that failed. */
static __always_inline void create_is_over(struct tg_subject *s)
{
	if (s && s != &subject_lost)
		s->creating = 0;
}

static __always_inline bool inode_is_open(struct inode *inode)
{
	return inode->i_readcount.counter || inode->i_writecount.counter;
}

/*
 * May the directory lose or change its name, as far as mounts go? The kernel looks at those of the caller's namespace, and
 * takes those of others away, asking nobody: whoever has one there would see what is put in its place.
 */
static __noinline int unmounted(struct dentry *dentry, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_DIR, .source = ~0u, .reason = TG_R_BUSY };
	struct tg_subject *s = subject_current();
	struct inode *inode = dentry->d_inode;

	if (!s || s->level >= policy.top || !inode || (inode->i_mode & S_IFMT) != S_IFDIR ||
	    !(dentry->d_flags & DENTRY_IS_MOUNTED))
		return 0;
	n.dentry = address(dentry);
	return deny(s, &n, -EBUSY);
}

/*
 * May the current subject, at a level below the top, remove lower files that need an entry each? Its user's account at their level may
 * be filled so once more. A task that has them open may be the same user's, or hold them in a way that nothing counts (O_PATH).
 */
static __always_inline bool floor_below(u8 level, u8 own, u32 payer)
{
	return share_has_room(TG_T_FLOORS, own, payer, 1, BUDGET_OTHER) &&
	       READ_ONCE(*share_of(TG_T_FLOORS, level, payer)) < 2 * budget_of_user(TG_FLOORS);
}

/*
 * The level of a file that has no name any more. A higher subject that removes it is not refused for what lower ones
 * fill the table with: it has its own level's room. At the top that is asked about only where somebody has the file open: else it
 * needs its entry for a moment.
 */
static __noinline int floor_name(struct inode *inode, u8 level)
{
	u8 own = subject_level(subject_current());
	u64 key = address(inode);
	struct tg_charged *floor = bpf_map_lookup_elem(&floors, &key);
	u32 payer = own < policy.top ? payer_current() : inode->i_uid.val;

	/* what is noted is of when it had no name yet (O_TMPFILE), or of a removal that failed: since then its name said it */
	if (floor) {
		WRITE_ONCE(floor->level, level);
		return 0;
	}

	if (level >= own)
		return floor_lower(key, level);
	if (own < policy.top && !floor_below(level, own, payer))
		return -ENOSPC;
	if (own >= policy.top && inode_is_open(inode) &&
	    !share_has_room(TG_T_FLOORS, own, payer, 1, BUDGET_OTHER))
		return -ENOSPC;
	return floor_charge(key, level, payer, BUDGET_ALWAYS);
}

/*
 * A file on tmpfs that loses its last name is memory to the tasks that have it open, and the
 * level it had the highest that it is written at. What its rule opened to all it
 * would be no more: not while lower subjects may have it mapped.
 */
static __always_inline int lomac_check_last_unlink(struct inode *inode, u64 dentry, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_DIR };
	struct lomac_object o;
	u64 label;

	if (fs_magic(inode) != TMPFS_MAGIC || (inode->i_mode & S_IFMT) != S_IFREG ||
	    inode->i_nlink != 1)
		return 0;
	label = label_of(inode, dentry, TG_C_DIR);
	if (label & LABEL_LATER)
		return refuse_label_changed(op, TG_C_DIR);
	o = lomac_object_of_label(label);
	if (o.attrs & TG_LOWWRITE && inode_is_open(inode)) {
		note_object(&n, inode, dentry, label);
		n.reason = TG_R_BUSY;
		return deny(subject_current(), &n, -EBUSY);
	}
	if (!floor_name(inode, o.known ? o.level : 0))
		return 0;
	note_object(&n, inode, dentry, label);
	n.reason = TG_R_TABLE_FULL;
	return deny(subject_current(), &n, -ENOSPC);
}

/* unlink, rmdir: modify both the directory and what the name stood for. */
static __always_inline int remove(struct inode *dir, struct dentry *dentry)
{
	struct lomac_subject who = { .level = level_modifies() };
	struct inode *inode = dentry->d_inode;
	struct tg_inode *memo;
	int err = 0;

	if (who.level < policy.top) {
		err = lomac_check_dir_change(who, dir, dentry, TG_OP_UNLINK, NULL, &memo);
		if (!err && inode)
			err = modify_named(who, inode, dentry, label_named(memo, dentry, inode),
					   TG_OP_UNLINK);
		if (!err)
			err = unmounted(dentry, TG_OP_UNLINK);
	}
	if (err || !inode)
		return err;
	return lomac_check_last_unlink(inode, address(dentry), TG_OP_UNLINK);
}

SEC("lsm.s/inode_unlink")
int BPF_PROG(lomac_inode_unlink, struct inode *dir, struct dentry *dentry)
{
	return remove(dir, dentry);
}

SEC("lsm.s/inode_rmdir")
int BPF_PROG(lomac_inode_rmdir, struct inode *dir, struct dentry *dentry)
{
	return remove(dir, dentry);
}

/*
 * May a directory move there with all that is below it, whose labels are not
 * looked at? Only where one rule holds throughout, and the same one; else the
 * move is refused as one between filesystems is, and mv(1) copies. Where the map
 * sees no place there is one for the whole filesystem.
 */
static __always_inline bool same_tree(struct tg_inode *memo, u64 label, struct tg_found *place)
{
	u64 at = memo ? READ_ONCE(memo->place) : 0;
	struct tg_node *from, *to;

	if (!memo || at >> 32 != label_seqno(label))
		return false;
	if ((u32)at == NODE_NONE && place->node == NODE_NONE)
		return policy_seqno() == label_seqno(label);
	to = node_of(place->node);
	if (!to)
		return false;
	from = node_of(at);
	if (!from || from->below.level != to->below.level ||
	    (from->below.attrs | TG_EXPLICIT) != (to->below.attrs | TG_EXPLICIT))
		return false;
	if (label & LABEL_FULL && (from->edges || from->star))
		return false;
	/* the nodes are those of the policy that the label was found under */
	return !(place->full && (to->edges || to->star)) && policy_seqno() == label_seqno(label);
}

/*
 * Does the place's rule say of the object what it already says? Of a directory not, as
 * its node counts for what is below it.
 */
static __always_inline bool same_label(struct inode *inode, u64 label, u8 level,
				       struct tg_found *place)
{
	bool is_given = label_origin(label) == TG_FROM_GIVEN;
	u16 differs = label_attrs(label) ^ place->rule.attrs;

	/* explicitness is for mount points; what has a level of its own is not `lowwrite` */
	differs &= ~(TG_EXPLICIT | TG_KERNEL | (is_given ? TG_LOWWRITE : 0));
	return (inode->i_mode & S_IFMT) != S_IFDIR && !differs && level == label_level(label) &&
	       (is_given || level == place->rule.level);
}

/*
 * An object gets a further name. A higher place would launder it; at a lower one
 * its level falls, unless it keeps another name, or somebody has it open and would go on
 * trusting it.
 */
static __always_inline int lomac_relabel_for_new_name(struct tg_subject *s, struct inode *inode,
						      struct dentry *old, u64 label,
						      struct dentry *new, struct tg_found *place,
						      u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_DIR };
	struct lomac_object o = lomac_object_of_label(label);
	u8 level = lomac_rename(o, place_object(place));
	bool is_given = label_origin(label) == TG_FROM_GIVEN;
	struct tg_inode *memo;
	bool admits; /* lower subjects may have it open that the new place does not admit */

	if (o.known && (o.attrs & TG_NEUTRAL || same_label(inode, label, level, place)))
		return 0;
	/* what is behind it gets the name next, and is asked about */
	if (is_of_overlay(address(inode)))
		return 0;
	note_object(&n, inode, address(new), label);
	if (level == LOMAC_REFUSED) {
		n.reason = TG_R_LAUNDER;
		n.source = place->rule.source;
		return deny(s, &n, refusal(&n, label));
	}
	memo = INODE_STORAGE_MADE(&inodes, inode);
	if (!memo) {
		n.reason = TG_R_NO_LABEL;
		return deny(s, &n, -ENOMEM);
	}
	if ((inode->i_mode & S_IFMT) == S_IFDIR && !same_tree(memo, label, place)) {
		n.reason = TG_R_TREE;
		return deny(s, &n, -EXDEV);
	}
	/*
	 * until it has moved, nothing is to be remembered by its old place (label_moving() of object.h)
	 */
	if (op == TG_OP_RENAME) {
		WRITE_ONCE(memo->moving_to, level);
		WRITE_ONCE(memo->mover, address(bpf_get_current_task_btf()));
		WRITE_ONCE(memo->moving, name_of(address(old)));
		__sync_lock_test_and_set(&memo->word, 0);
	}
	admits = o.attrs & TG_LOWWRITE &&
		 (!(place->rule.attrs & TG_LOWWRITE) || level != place->rule.level);
	if ((level < o.level || admits) && inode_is_open(inode)) {
		n.reason = TG_R_BUSY;
		return deny(s, &n, -EBUSY);
	}
	/*
	 * Under its other name nobody would know of the fall once the machine has lost its power, and a level that it was given
	 * would stay lowered if this call failed: refused as between filesystems, so that mv(1) and cp(1) copy
	 */
	if (level < o.level && (is_given || ((inode->i_mode & S_IFMT) != S_IFDIR &&
					     (op == TG_OP_LINK || inode->i_nlink > 1)))) {
		n.reason = TG_R_NAMES;
		return deny(s, &n, -EXDEV);
	}
	/* what has a level of its own keeps it */
	if (!is_given && level != place->rule.level &&
	    (!given_has_room(subject_level(s)) || label_give(inode, address(old), level))) {
		n.reason = TG_R_TABLE_FULL;
		return deny(s, &n, -ENOSPC);
	}
	return 0;
}

/* What a rename or a link is about: of a directory the label as it is remembered, with its node. */
static __always_inline u64 label_moved(struct tg_inode *parent, struct dentry *dentry,
				       struct inode *inode)
{
	if ((inode->i_mode & S_IFMT) == S_IFDIR)
		return label_of(inode, address(dentry), TG_C_DIR);
	return label_named(parent, dentry, inode);
}

SEC("lsm.s/inode_rename")
int BPF_PROG(lomac_inode_rename, struct inode *old_dir, struct dentry *old_dentry,
	     struct inode *new_dir, struct dentry *new_dentry)
{
	struct lomac_subject who = lomac_subject_modifying(subject_current());
	struct inode *inode = old_dentry->d_inode, *over = new_dentry->d_inode;
	struct tg_found place = {};
	struct tg_inode *memo;
	u64 label;
	int err;

	create_is_over(subject_current());
	if (!inode)
		return 0;
	err = lomac_check_dir_change(who, old_dir, old_dentry, TG_OP_RENAME, NULL, &memo);
	if (err)
		return err;
	label = label_moved(memo, old_dentry, inode);
	err = modify_named(who, inode, old_dentry, label, TG_OP_RENAME);
	if (!err)
		err = lomac_check_dir_change(who, new_dir, new_dentry, TG_OP_RENAME, &place, &memo);
	if (!err && over)
		err = modify_named(who, over, new_dentry, label_named(memo, new_dentry, over),
				   TG_OP_RENAME);
	if (!err)
		err = unmounted(old_dentry, TG_OP_RENAME);
	if (!err)
		err = unmounted(new_dentry, TG_OP_RENAME);
	if (!err)
		err = lomac_relabel_for_new_name(subject_current(), inode, old_dentry, label,
						 new_dentry, &place, TG_OP_RENAME);
	if (!err && over)
		err = lomac_check_last_unlink(over, address(new_dentry), TG_OP_RENAME);
	return err;
}

SEC("lsm/inode_link")
int BPF_PROG(lomac_inode_link, struct dentry *old_dentry, struct inode *dir,
	     struct dentry *new_dentry)
{
	struct tg_subject *s = subject_current();
	struct lomac_subject who = lomac_subject_modifying(s);
	struct inode *inode = old_dentry->d_inode;
	struct tg_found place = {};
	struct tg_inode *memo;
	u64 label;
	int err;

	create_is_over(s);
	if (!inode)
		return 0;
	label = label_of(inode, address(old_dentry), TG_C_DIR);
	err = modify_named(who, inode, old_dentry, label, TG_OP_LINK);
	if (!err)
		err = lomac_check_dir_change(who, dir, new_dentry, TG_OP_LINK, &place, &memo);
	if (!err)
		err = lomac_relabel_for_new_name(s, inode, old_dentry, label, new_dentry, &place,
						 TG_OP_LINK);
	return err;
}

#endif
