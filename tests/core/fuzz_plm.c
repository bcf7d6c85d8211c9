/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of plm.h over tables as crates/monitor lays them out, names cut in
 * chunks, against a plain tree of whole names. The input chooses both the tree
 * and the paths that are looked up in it.
 */
#include "native.h"
#include "fuzz.h"

#define BOUND(n, size)                   \
	({                               \
		u64 bound_n = (n);       \
		CLAIM(bound_n < (size)); \
		bound_n;                 \
	})
#define bpf_for(i, from, to) for ((i) = (from); (i) < (to); (i)++)

#define TREE 64     /* nodes of the plain tree */
#define LINKS 512   /* edges, each of a chunk */
#define DEEPEST 6   /* components of a path, but for the longest */
#define LONGEST 300 /* bytes of a name; no rule's has more than 255 */

enum seen { EXACT, STAR, CHAIN, LEFT, WHOLE, UNKNOWABLE, FOLDED, SEEN };
const char *const fuzz_events[] = { "a name has an edge",
				    "a star takes a name",
				    "a name of several chunks is found",
				    "a path leaves the tree",
				    "a path ends on a node",
				    "a name is longer than any rule's",
				    "a name may be what an edge names",
				    NULL };
unsigned long fuzz_seen[SEEN];

struct name {
	u32 len;
	unsigned char text[LONGEST];
};

/* A node of the plain tree: `parent` and `name` lead to it, `star`: any name does. */
struct leaf {
	struct tg_node node;
	u32 parent;
	bool star;
	struct name name;
};

static struct leaf tree[TREE];
static u32 leaves;
static struct tg_edge laid_keys[LINKS];
static u32 laid_children[LINKS];
static u32 laid;  /* edges laid out */
static u32 fresh; /* the number that the next link between two chunks gets */
static struct tg_scratch scratch;
static struct qstr components[TG_DEPTH];
static bool held;
static u32 folding; /* the component, from the root on, whose directory folds names */

static void *plm_table(void)
{
	return laid_keys;
}

static u32 *plm_edge(void *table, struct tg_edge *key)
{
	for (u32 i = 0; i < laid; i++)
		if (!memcmp(&laid_keys[i], key, sizeof(*key)))
			return &laid_children[i];
	return NULL;
}

static struct tg_node *plm_node(u32 id)
{
	return id < leaves ? &tree[id].node : NULL;
}

static long plm_read(void *to, u32 n, const void *name)
{
	CLAIM(n <= TG_CHUNK);
	memcpy(to, name, n);
	return 0;
}

static struct qstr *plm_name(u64 dentry)
{
	CLAIM(dentry < TG_DEPTH);
	return &components[dentry];
}

static bool plm_folds(u64 dentry)
{
	return scratch.n - 1 - dentry == folding;
}

static struct tg_scratch *plm_begin(void)
{
	held = true;
	return &scratch;
}

static void plm_end(struct tg_scratch *w)
{
	CLAIM(w == &scratch && held);
	held = false;
}

#include "lomac/map_walk.h"

/* A name of a few letters, often as long as a chunk or some. */
static struct name any_name(struct bytes *b, u32 longest)
{
	static const u32 near[] = { 1, 2, TG_CHUNK, 2 * TG_CHUNK, 4 * TG_CHUNK, 255, LONGEST };
	u8 how = take(b);
	u32 len = near[how % 7] + (how >> 3) % 3 - 1;
	struct name name = { .len = len < 1 ? 1 : len > longest ? longest : len };

	memset(name.text, 'a' + (how >> 5) % 2, name.len);
	/* names differ in one byte, wherever that is */
	name.text[take(b) % name.len] = 'a' + (how >> 6);
	return name;
}

static bool same_name(const struct name *a, const struct name *b)
{
	return a->len == b->len && !memcmp(a->text, b->text, a->len);
}

static struct tg_rule any_rule(void)
{
	static u32 source;

	source++;
	return (struct tg_rule){ .level = source % TG_LEVELS, .attrs = source, .source = source };
}

/* The child by a name or by the star; 0: none. */
static u32 child_of(u32 parent, const struct name *name)
{
	for (u32 i = 1; i < leaves; i++)
		if (tree[i].parent == parent &&
		    (name ? !tree[i].star && same_name(&tree[i].name, name) : tree[i].star))
			return i;
	return 0;
}

/* Edges as the monitor's loader makes them: crates/monitor, encode.rs. */
static u32 link_to(u32 parent, const unsigned char *text, u32 len, bool more, u32 child)
{
	struct tg_edge key = { .parent = parent, .len = len, .more = more };
	u32 *found;

	memcpy(key.name, text, len);
	found = plm_edge(laid_keys, &key);
	if (found)
		return *found;
	CLAIM(laid < LINKS);
	laid_keys[laid] = key;
	laid_children[laid++] = child ? child : fresh++;
	return laid_children[laid - 1];
}

static void add_edges(u32 parent, const struct name *name, u32 child)
{
	const unsigned char *text = name->text;
	u32 left = name->len;

	for (; left > TG_CHUNK; left -= TG_CHUNK, text += TG_CHUNK)
		parent = link_to(parent, text, TG_CHUNK, true, 0);
	link_to(parent, text, left, false, child);
}

static u32 add(u32 parent, bool star, struct name name)
{
	u32 at = child_of(parent, star ? NULL : &name);

	if (at || leaves == TREE)
		return at;
	tree[leaves] = (struct leaf){
		.node = { .own = any_rule(), .below = any_rule() },
		.parent = parent,
		.star = star,
		.name = name,
	};
	if (star)
		tree[parent].node.star = leaves;
	else
		tree[parent].node.edges++;
	return leaves++;
}

static void grow(struct bytes *b)
{
	leaves = 1;
	laid = 0;
	fresh = TREE;
	tree[0] = (struct leaf){ .node = { .own = any_rule(), .below = any_rule() } };
	for (u32 rules = take(b) % 12; rules; rules--) {
		u32 at = take(b) % leaves;

		for (u32 depth = take(b) % 4; depth; depth--) {
			bool star = take(b) % 4 == 0;

			at = add(at, star, any_name(b, 255));
		}
	}
	for (u32 i = 1; i < leaves; i++)
		if (!tree[i].star)
			add_edges(tree[i].parent, &tree[i].name, i);
}

/*
 * What the definition says: names before stars, as far as it goes. False: a name that is none of those that the map has
 * there may be one of them, spelled otherwise.
 */
static bool plainly(const struct name *path, u32 n, struct tg_found *found)
{
	struct tg_found f = { .full = 1 };

	for (u32 i = 0; i < n; i++) {
		u32 next = child_of(f.node, &path[i]);

		if (!next && i == folding && tree[f.node].node.edges) {
			fuzz_seen[FOLDED]++;
			return false;
		}
		fuzz_seen[CHAIN] += next && path[i].len > TG_CHUNK;
		fuzz_seen[UNKNOWABLE] += path[i].len > 255;
		if (next)
			fuzz_seen[EXACT]++;
		else if ((next = child_of(f.node, NULL)))
			fuzz_seen[STAR]++;
		if (!next) {
			f.full = 0;
			break;
		}
		f.node = next;
	}
	f.rule = f.full ? tree[f.node].node.own : tree[f.node].node.below;
	fuzz_seen[f.full ? WHOLE : LEFT]++;
	*found = f;
	return true;
}

static bool same(const struct tg_found *a, const struct tg_found *b)
{
	return a->node == b->node && a->full == b->full && a->rule.source == b->rule.source;
}

/* A path's components are numbered from the object up, as a walk up meets them. */
static void look_up(struct bytes *b)
{
	struct name path[TG_DEPTH];
	struct tg_found want, parent, got;
	u8 how = take(b);
	u32 n = how == 0xff ? TG_DEPTH : how % (DEEPEST + 1);
	bool known, child;

	folding = take(b) % (2 * DEEPEST);
	for (u32 i = 0; i < n; i++) {
		path[i] = any_name(b, LONGEST);
		components[n - 1 - i] = (struct qstr){ .len = path[i].len, .name = path[i].text };
		scratch.up[i] = i;
	}
	known = plainly(path, n, &want);
	scratch.n = n;
	CLAIM(plm_walk(&scratch, &got) == known && (!known || same(&got, &want)));
	/* one name below its parent's place is the same as all at once */
	if (!n || !plainly(path, n - 1, &parent))
		return;
	child = !plm_child(parent.node, parent.full, 0, &got);
	CLAIM(child == known && (!known || same(&got, &want)));
	CLAIM(!held);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct bytes b = { data, size };

	grow(&b);
	for (int i = 0; i < 16; i++)
		look_up(&b);
	return 0;
}
