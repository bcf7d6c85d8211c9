/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of plm.h over tables that hold anything: every look-up of an edge may
 * miss or give any number, every node may hold anything, every name may have any
 * length. What the walk asks for, and what it makes of the answers, is compared
 * with a plain reading of the trie's definition.
 */
#include "prove.h"

#define BOUND(n, size)                                                   \
	({                                                               \
		u64 bound_n = (n);                                       \
		PROVE(bound_n < (size), "an index is within its array"); \
		bound_n;                                                 \
	})
#define bpf_for(i, from, to) for ((i) = (from); (i) < (to); (i)++)

#define NODES 3       /* the numbers of all others have no node */
#define DEEP 32       /* components of a deep path */
#define LOOKED_AT 260 /* bytes of a name that chunks can cover */

static struct tg_scratch scratch;
static struct tg_node table_nodes[NODES];
static int table_edges;

/* The component looked at, and where in it the walk must be. */
static struct {
	struct qstr name;
	u32 number; /* of components so far */
	u32 at;     /* node, or link of a chain */
	u32 off;
	u32 watched; /* one byte of a chunk, whichever; what is true of it is true of all */
	bool ended;
} now;
static unsigned char name_bytes[LOOKED_AT];
static u32 answer[TG_DEPTH + 1];  /* what the edges led to, by component; 0: nothing */
static bool folded[TG_DEPTH + 1]; /* the component's directory folds names */
static bool no_room, short_names, stars_alone;
static int held;

static void *plm_table(void)
{
	return nondet_bool() ? &table_edges : NULL;
}

static struct tg_node *plm_node(u32 id)
{
	now.at = id;
	return id < NODES ? &table_nodes[id] : NULL;
}

static struct qstr *plm_name(u64 dentry)
{
	PROVE(scratch.n == 0 || dentry == scratch.n - 1 - now.number,
	      "components are taken from the root on");
	now.name.len = short_names ? 1 : nondet_u32();
	now.name.name = name_bytes;
	folded[now.number] = nondet_bool();
	now.number++;
	now.off = 0;
	now.ended = false;
	return &now.name;
}

static bool plm_folds(u64 dentry)
{
	PROVE(now.number, "a name is looked up before other spellings of it");
	return folded[now.number - 1];
}

static long plm_read(char *to, u32 n, const unsigned char *from)
{
	PROVE(to == scratch.key.name && n <= TG_CHUNK,
	      "a name is read into the key and no further");
	PROVE(from == now.name.name + now.off && (u64)now.off + n <= now.name.len,
	      "no byte beyond a name is read");
	PROVE(now.off + n <= LOOKED_AT, "no byte beyond the buffer is read");
	if (nondet_bool())
		return -1;
	if (now.watched < n)
		scratch.key.name[now.watched] = name_bytes[now.off + now.watched];
	return 0;
}

static u32 *plm_edge(void *table, struct tg_edge *key)
{
	static u32 child;
	u32 left = now.name.len - now.off, part = left < TG_CHUNK ? left : TG_CHUNK;
	char want = now.watched < part ? name_bytes[now.off + now.watched] : 0;

	PROVE(table == &table_edges, "edges are looked up in the edges");
	PROVE(!now.ended && key->parent == now.at, "an edge is asked for where the walk stands");
	PROVE(key->len == part && key->more == (left > TG_CHUNK),
	      "a key is the next chunk of the name");
	PROVE(key->name[now.watched] == want, "a key holds the name's bytes, then zeros");
	if (nondet_bool())
		return NULL;
	child = nondet_u32();
	now.at = child;
	now.off += TG_CHUNK;
	now.ended = left <= TG_CHUNK;
	if (now.ended)
		answer[now.number - 1] = child;
	return &child;
}

static struct tg_scratch *plm_begin(void)
{
	if (no_room)
		return NULL;
	held++;
	return &scratch;
}

static void plm_end(struct tg_scratch *w)
{
	PROVE(w == &scratch, "what was claimed is given back");
	held--;
}

/* memset of a key, as an assignment: byte by byte it would cost the solver hours. */
static void clear_key(struct tg_edge *key, int byte, size_t n)
{
	PROVE(byte == 0 && n == sizeof(*key), "a whole key is cleared");
	*key = (struct tg_edge){ 0 };
}
#define __builtin_memset clear_key

#include "lomac/map_walk.h"

struct tg_node nondet_node(void);
struct tg_found nondet_found(void);

static void any_input(void)
{
	now.watched = nondet_u32();
	ASSUME(now.watched < TG_CHUNK);
	__CPROVER_havoc_object(name_bytes);
	for (u32 i = 0; i < NODES; i++) {
		table_nodes[i] = nondet_node();
		if (stars_alone)
			table_nodes[i].edges = 0;
	}
}

static bool same_rule(struct tg_rule a, struct tg_rule b)
{
	return a.level == b.level && a.attrs == b.attrs && a.source == b.source;
}

/* One name: its chunks, in order and whole, and the end of the chain they lead to. */
void prove_step_down(void)
{
	u32 node = nondet_u32(), got;
	struct qstr *q;

	any_input();
	q = plm_name(0);
	now.at = node;
	got = plm_step(&table_edges, &scratch, node, q);
	PROVE(got == answer[0], "a step leads where the name's last edge does, else nowhere");
	PROVE(!got || now.ended, "no step by a part of a name");
	PROVE(!got || q->len <= LOOKED_AT, "no step by a name that no rule can have");
	WITNESS(got == 7 && q->len == 255, "the longest name is found");
	WITNESS(got == 7 && q->len == TG_CHUNK, "a name of one whole chunk is found");
	WITNESS(!got && q->len == 1, "a name is not found");
}

/* A whole path: the node that the answers lead to, and its own rule only at the path's end. */
static void walk(u32 n, u32 depth)
{
	struct tg_found out = nondet_found();
	u32 at = 0, next;
	bool full = true, found;

	any_input();
	scratch.n = n;
	for (u32 i = 0; i < depth; i++)
		scratch.up[i] = i;
	found = plm_walk(&scratch, &out);
	for (u32 i = 0; i < n && at < NODES; i++) {
		next = table_nodes[at].edges ? answer[i] : 0;
		PROVE(!found || next || !table_nodes[at].edges || !folded[i],
		      "a name that may be what an edge names has no rule");
		if (!next)
			next = table_nodes[at].star;
		if (!next) {
			full = false;
			break;
		}
		at = next;
	}
	PROVE(!found || at < NODES, "no rule of a node that is not there");
	if (found) {
		struct tg_rule want = full ? table_nodes[at].own : table_nodes[at].below;

		PROVE(out.node == at, "the node is the one that was reached");
		PROVE(out.full == full, "and whole paths are told from their beginnings");
		PROVE(same_rule(out.rule, want), "the rule is that node's");
	}
	WITNESS(found && n == depth && full && at == 2, "the deepest path ends on a node");
	WITNESS(found && n == depth && !full && now.number == 2, "a path leaves the trie");
	WITNESS(!found && now.number == 2, "a walk fails");
	WITNESS(stars_alone || (!found && now.number == 1 && folded[0] && !answer[0]),
		"a name may be what an edge names");
}

void prove_walk(void)
{
	u32 n = nondet_u32();

	ASSUME(n <= 3);
	walk(n, 3);
}

/*
 * A deep path, by stars alone: what a name may be is prove_step_down's, and what
 * a step leads to prove_walk's. The solver's time grows faster than the depth;
 * fuzz_plm.c goes to TG_DEPTH.
 */
void prove_deep_walk(void)
{
	short_names = true;
	stars_alone = true;
	walk(DEEP, DEEP);
}

/* A name below a known node: what a walk of one more component would find. */
void prove_child(void)
{
	struct tg_found out = nondet_found();
	u32 node = nondet_u32(), full = nondet_u32(), next = 0;
	struct tg_rule want;
	int err;

	any_input();
	no_room = nondet_bool();
	err = plm_child(node, full, 0, &out);
	PROVE(!held, "what was claimed is given back");
	PROVE(plm_child(node, full, 0, NULL) == -1, "nothing is written to nowhere");
	if (err)
		return;
	PROVE(node < NODES, "no rule below a node that is not there");
	want = table_nodes[node].below;
	if (full && table_nodes[node].edges) {
		next = answer[0];
		PROVE(next || !folded[0], "a name that may be what an edge names has no rule");
	}
	if (full && !next)
		next = table_nodes[node].star;
	PROVE(next < NODES, "no rule of a node that is not there");
	if (next)
		want = table_nodes[next].own;
	PROVE(out.node == (next ? next : node) && out.full == (next != 0),
	      "the node is the one that was reached");
	PROVE(same_rule(out.rule, want), "the rule is that node's");
	WITNESS(next == 2 && now.number == 1, "a name has a node");
	WITNESS(!next && full, "a name has none");
	WITNESS(!full, "a place below all nodes");
}
