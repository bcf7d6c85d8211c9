/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk down the path-level map's trie: the deepest node that a path reaches,
 * exact edges before stars. It knows no map and no dentry but through what its
 * includer defines, so that the same source runs in the kernel (map.h), in the
 * tests, under the fuzzer and before the model checker (tests/core):
 *
 *   void *plm_table(void)                           the edges; NULL: none
 *   u32 *plm_edge(void *table, struct tg_edge *key) an edge's child; NULL: none
 *   struct tg_node *plm_node(u32 id)                NULL: none
 *   long plm_read(void *to, u32 n, const void *name)  bytes of a name; 0: done
 *   struct qstr *plm_name(u64 dentry)               the name of a component
 *   bool plm_folds(u64 dentry)                      has it other spellings?
 *   struct tg_scratch *plm_begin(void)              room for one step; NULL: none
 *   void plm_end(struct tg_scratch *w)
 *   bpf_for(i, from, to), BOUND(n, size)            as in the kernel
 */
#ifndef TIDEGATE_LOMAC_MAP_WALK_H
#define TIDEGATE_LOMAC_MAP_WALK_H

#include "abi/policy.h"

/* What the map says of a path. */
struct tg_found {
	struct tg_rule rule;
	u32 node;
	u32 full; /* the whole path matched, not only its beginning */
};

/*
 * One step down the trie. 0: no such edge (the root is nobody's child). What a
 * loop carries is kept in memory, where the verifier need not follow its values.
 */
static __always_inline u32 plm_step(void *table, struct tg_scratch *w, u32 node, struct qstr *q)
{
	const unsigned char *name = q->name;
	u32 i;

	w->len = q->len;
	w->node = node;
	bpf_for(i, 0, (255 + TG_CHUNK - 1) / TG_CHUNK) {
		u32 left = w->len - i * TG_CHUNK, part = left, *next;

		if (part > TG_CHUNK)
			part = TG_CHUNK;
		__builtin_memset(&w->key, 0, sizeof(w->key));
		w->key.parent = w->node;
		w->key.len = part;
		w->key.more = left > TG_CHUNK;
		if (plm_read(w->key.name, part, name + i * TG_CHUNK))
			return 0;
		next = plm_edge(table, &w->key);
		if (!next)
			return 0;
		w->node = *next;
		if (left <= TG_CHUNK)
			return w->node;
	}
	return 0;
}

/* Walks the path noted in w, from its end (the root's child) to its beginning. */
static __always_inline bool plm_walk(struct tg_scratch *w, struct tg_found *out)
{
	void *table = plm_table();
	u32 i, n = w->n;
	struct tg_node *v;

	if (!table)
		return false;
	out->full = 1;
	out->node = 0;
	bpf_for(i, 0, n) {
		u64 d = w->up[BOUND(n - 1 - i, TG_DEPTH)];
		struct qstr *q = plm_name(d);
		u32 next = 0;

		v = plm_node(out->node);
		if (!v)
			return false;
		if (v->edges) {
			next = plm_step(table, w, out->node, q);
			/* it may be what an edge names, by another spelling */
			if (!next && plm_folds(d))
				return false;
		}
		if (!next)
			next = v->star;
		if (!next) {
			out->full = 0;
			break;
		}
		out->node = next;
	}
	v = plm_node(out->node);
	if (!v)
		return false;
	out->rule = out->full ? v->own : v->below;
	return true;
}

/* The rule of one name below a node that a path has reached, `full` or not. */
static __always_inline int plm_child(u32 node, u32 full, u64 dentry, struct tg_found *out)
{
	struct tg_node *v = plm_node(node);
	struct tg_scratch *w;
	void *table;
	u32 next = 0;

	if (!out || !v)
		return -1;
	out->node = node;
	out->full = 0;
	out->rule = v->below;
	if (!full)
		return 0;
	if (v->edges) {
		table = plm_table();
		w = table ? plm_begin() : NULL;
		if (!w)
			return -1;
		next = plm_step(table, w, node, plm_name(dentry));
		plm_end(w);
		if (!next && plm_folds(dentry))
			return -1;
	}
	if (!next)
		next = v->star;
	if (!next)
		return 0;
	v = plm_node(next);
	if (!v)
		return -1;
	out->node = next;
	out->full = 1;
	out->rule = v->own;
	return 0;
}

#endif
