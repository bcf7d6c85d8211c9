/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every decision of lomac.h, for every input of up to four levels, against the contract. */
#include "native.h"
#include "contract.h"
#include "checks.h"

#define ATTRS 512    /* every set of enum tg_attr */
#define SUBJECTS 256 /* every byte of subject attributes */

static struct lomac_object object_of(u8 level, u32 attrs, bool known)
{
	return (struct lomac_object){ .level = level, .attrs = attrs, .known = known };
}

static void compare(const char *what, u64 *cases, u32 got, u32 want, struct lomac_subject s,
		    struct lomac_object o, u8 top)
{
	++*cases;
	if (got == want || failures++ > 8)
		return;
	fprintf(stderr, "%s: subject %u/%#x, object %u/%#x%s, top %u: %u, the contract says %u\n",
		what, s.level, s.attrs, o.level, o.attrs, o.known ? "" : " unknown", top, got,
		want);
}

/* Calls with s, o, top set to every combination. */
#define EVERY(body)                                                                          \
	for (u8 top = 1; top < 4; top++)                                                     \
		for (u8 from = 0; from <= top; from++)                                       \
			for (u8 to = 0; to <= top; to++)                                     \
				for (u32 i = 0; i < 2 * ATTRS; i++) {                        \
					struct lomac_object o = object_of(to, i / 2, i & 1); \
					for (u32 j = 0; j < SUBJECTS; j++) {                 \
						struct lomac_subject s = { .level = from,    \
									   .attrs = j };     \
						body;                                        \
					}                                                    \
				}

/* A decision about a subject and an object. */
#define CHECK(name, call, rows)                                                               \
	static u64 check_##name(void)                                                         \
	{                                                                                     \
		u64 cases = 0;                                                                \
		EVERY(compare(#name, &cases, call,                                            \
			      contract(rows, o.attrs, s.attrs, o.known, from, to, top), s, o, \
			      top))                                                           \
		return cases;                                                                 \
	}

CHECK(observe, lomac_observe(s, o), OBSERVE)
CHECK(observe_net, lomac_observe_net(s, to), OBSERVE_NET)
CHECK(modify, lomac_modify(s, o, top), MODIFY)
CHECK(names, lomac_names(s, o, top), NAMES)
CHECK(open, lomac_open(s, o, top), OPEN)
CHECK(create, lomac_create(s, o), CREATE)
CHECK(act, lomac_act(s, to), ACT)

/* An object and a place, each of every kind; a neutral object has no level to lose. */
static u64 check_rename(void)
{
	u64 cases = 0;

	for (u32 i = 0; i < 2 * ATTRS; i++)
		for (u32 j = 0; j < 2 * ATTRS; j++)
			for (u32 levels = 0; levels < 16; levels++) {
				u8 from = levels / 4, to = levels % 4;
				struct lomac_object o = object_of(from, i / 2, i & 1);
				struct lomac_object place = object_of(to, j / 2, j & 1);
				struct lomac_subject none = {};
				u8 want = contract(RENAME, place.attrs, 0, o.known && place.known,
						   from, to, 3);

				if (o.known && place.known && o.attrs & TG_NEUTRAL)
					want = from;
				compare("rename", &cases, lomac_rename(o, place), want, none, o, 3);
			}
	return cases;
}

/* Every capability there is, and numbers that are none. */
static u64 check_capable(void)
{
	u64 cases = 0;

	for (u8 top = 1; top < 4; top++)
		for (u8 level = 0; level <= top; level++)
			for (u8 networks = 0; networks <= top; networks++)
				for (u32 cap = 0; cap < 80; cap++) {
					struct lomac_subject s = { .level = level };
					struct lomac_object net = object_of(networks, 0, true);
					u32 want = contract_capable(level, cap, networks, top);
					u32 got = lomac_has_capability(s, cap, networks, top);

					compare("capable", &cases, got, want, s, net, top);
				}
	return cases;
}

/* "Trusted programs": which tasks may act in one's place, below the top and at it. */
static u64 check_controls(void)
{
	u64 cases = 0;

	for (u8 top = 1; top < 4; top++)
		for (u8 level = 0; level <= top; level++)
			for (u32 attrs = 0; attrs < SUBJECTS; attrs++)
				for (u32 other = 0; other < SUBJECTS; other++) {
					struct lomac_subject s = { .level = level, .attrs = attrs };
					bool network = other & TG_NONETDEMOTE;
					bool all = other & TG_NODEMOTE;
					bool want = level == top || attrs & TG_NODEMOTE ||
						    (!all && (!network || attrs & TG_NONETDEMOTE));

					compare("controls", &cases, lomac_controls(s, other, top),
						want, s, object_of(level, other, true), top);
				}
	return cases;
}

/* "Trusted programs": the code of one. */
static u64 check_is_code(void)
{
	u64 cases = 0;

	for (u8 top = 1; top < 4; top++)
		for (u8 level = 0; level <= top; level++)
			for (u32 i = 0; i < 2 * ATTRS; i++) {
				struct lomac_object o = object_of(level, i / 2, i & 1);
				struct lomac_subject none = {};
				bool others = o.attrs & TG_NEUTRAL || o.attrs & TG_LOWWRITE;

				compare("is_code", &cases, lomac_is_code(o, top),
					o.known && level == top && !others, none, o, top);
			}
	return cases;
}

int main(void)
{
	return RUN_CHECKS("lomac", " against the contract", { "observe", check_observe },
			  { "observe_net", check_observe_net }, { "modify", check_modify },
			  { "names", check_names }, { "open", check_open },
			  { "create", check_create }, { "act", check_act },
			  { "rename", check_rename }, { "capable", check_capable },
			  { "controls", check_controls }, { "is_code", check_is_code });
}
