/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every decision of profile.h against what it is to be, and its walk over an image in an array. */
#include "native.h"
#include "checks.h"

#define STATES 65536 /* of the largest automaton */
#define ARENA_SIZE (STATES * 256 * sizeof(u16) + 65536)
static u8 arena[ARENA_SIZE] __attribute__((aligned(8)));

static void *part(u32 offset, size_t size)
{
	CLAIM(offset && offset + size <= ARENA_SIZE);
	return arena + offset;
}

#define ARENA(type) type
#define ARENA_PTR(type, offset) ((type *)part(offset, sizeof(type)))

#include "abi/profile_image.h"
#include "profile/rules.h"

static void compare(const char *what, u64 *cases, u32 got, u32 want, u32 one, u32 two)
{
	++*cases;
	if (got == want || failures++ > 8)
		return;
	fprintf(stderr, "%s: of %#x and %#x: %u, and not %u\n", what, one, two, got, want);
}

/* What becomes of one permission that is asked for. Of several the last in this order counts. */
enum fate { PASSES, PASSES_AUDITED, REFUSED_QUIETLY, REFUSED, FATES };

enum { ALLOW = 1, DENY = 2, AUDIT = 4, QUIET = 8, SETS = 16 };

static const u8 fates[SETS] = {
	[0] = REFUSED,
	[ALLOW] = PASSES,
	[DENY] = REFUSED,
	[DENY | ALLOW] = REFUSED,
	[AUDIT] = REFUSED,
	[AUDIT | ALLOW] = PASSES_AUDITED,
	[AUDIT | DENY] = REFUSED,
	[AUDIT | DENY | ALLOW] = REFUSED,
	[QUIET] = REFUSED_QUIETLY,
	[QUIET | ALLOW] = PASSES,
	[QUIET | DENY] = REFUSED_QUIETLY,
	[QUIET | DENY | ALLOW] = REFUSED_QUIETLY,
	[QUIET | AUDIT] = REFUSED_QUIETLY,
	[QUIET | AUDIT | ALLOW] = PASSES_AUDITED,
	[QUIET | AUDIT | DENY] = REFUSED_QUIETLY,
	[QUIET | AUDIT | DENY | ALLOW] = REFUSED_QUIETLY,
};

/* And what the request comes to: by the profile's mode, and whether it records everything. */
#define MODES 5
#define for_each_index(verdict) { verdict, verdict, verdict, verdict, verdict }
#define BY_MODE \
	{ PROFILE_REFUSED, PROFILE_COMPLAIN, PROFILE_KILLED, PROFILE_REFUSED, PROFILE_REFUSED }

static const u8 verdicts[FATES][2][MODES] = {
	[PASSES] = { for_each_index(PROFILE_ALLOWED), for_each_index(PROFILE_AUDITED) },
	[PASSES_AUDITED] = { for_each_index(PROFILE_AUDITED), for_each_index(PROFILE_AUDITED) },
	[REFUSED_QUIETLY] = { for_each_index(PROFILE_QUIET), BY_MODE },
	[REFUSED] = { BY_MODE, BY_MODE },
};

static u32 bit_of(u32 sets, u32 set, u32 bit)
{
	return sets & set ? bit : 0;
}

/* Two permissions, each in any of the sets; one of them, or both, asked for. */
static void judge_two(u64 *cases, u32 one, u32 two)
{
	for (u32 s = 0; s < SETS; s++)
		for (u32 t = 0; t < SETS; t++) {
			struct tg_perms perms = {
				.allow = bit_of(s, ALLOW, one) | bit_of(t, ALLOW, two),
				.deny = bit_of(s, DENY, one) | bit_of(t, DENY, two),
				.audit = bit_of(s, AUDIT, one) | bit_of(t, AUDIT, two),
				.quiet = bit_of(s, QUIET, one) | bit_of(t, QUIET, two),
			};
			u8 both = fates[s] > fates[t] ? fates[s] : fates[t];

			for (u32 mode = 0; mode < MODES; mode++)
				for (u32 all = 0; all < 2; all++) {
					compare("one", cases, profile_judge(mode, all, perms, one),
						verdicts[fates[s]][all][mode], s, t);
					compare("both", cases,
						profile_judge(mode, all, perms, one | two),
						verdicts[both][all][mode], s, t);
				}
		}
}

static u64 check_judge(void)
{
	u64 cases = 0;

	_Static_assert(TG_MODE_ENFORCE == 0 && TG_MODE_COMPLAIN == 1 && TG_MODE_KILL == 2 &&
			       TG_MODE_UNCONFINED == 3 && TG_MODE_USER == 4,
		       "BY_MODE is in the modes' order");
	for (u32 i = 0; i < 32; i++)
		for (u32 j = 0; j < 32; j++)
			if (i != j)
				judge_two(&cases, 1u << i, 1u << j);
	return cases;
}

/* An automaton at the beginning of the array, its parts behind it. */
#define TABLE 4096
#define PAIRS (TABLE + 1024)
#define ACCEPTS (PAIRS + 1024)

static struct tg_table *lay_out(u32 width, u32 next)
{
	struct tg_table *t = ARENA_PTR(struct tg_table, TABLE);

	memset(arena, 0, ARENA_SIZE);
	*t = (struct tg_table){ .width = width, .next = next, .accepts = ACCEPTS, .pairs = PAIRS };
	return t;
}

/* The state after a byte, of an automaton that accepts `/x`, `/xx`, `/xxx` and so on. */
static u32 plain_step(u32 state, u8 byte)
{
	if (state == 1 && byte == '/')
		return 2;
	return state >= 2 && byte == 'x' ? 3 : 0;
}

static u64 check_step(void)
{
	static const u16 next[4][3] = { { 0, 0, 0 }, { 0, 2, 0 }, { 0, 0, 3 }, { 0, 0, 3 } };
	struct tg_table *t = lay_out(3, 8192);
	u64 cases = 0;

	memcpy(arena + 8192, next, sizeof(next));
	t->classes['/'] = 1;
	t->classes['x'] = 2;
	for (u32 state = 0; state < 4; state++)
		for (u32 byte = 0; byte < 256; byte++)
			compare("step", &cases, profile_step(TABLE, state, byte),
				plain_step(state, byte), state, byte);

	/* every state and byte of the largest one: each leads to its own number and the byte's */
	t = lay_out(256, 65536);
	for (u32 byte = 0; byte < 256; byte++)
		t->classes[byte] = 255 - byte;
	for (u32 state = 0; state < STATES; state++)
		for (u32 byte = 0; byte < 256; byte++)
			ARENA_PTR(u16, 65536)[state * 256 + 255 - byte] = state ^ byte << 8;
	for (u32 state = 0; state < STATES; state++)
		for (u32 byte = 0; byte < 256; byte++)
			compare("step of many", &cases, profile_step(TABLE, state, byte),
				state ^ byte << 8, state, byte);
	return cases;
}

static u64 check_perms(void)
{
	u64 cases = 0;

	lay_out(1, 8192);
	for (u32 state = 0; state < 8; state++) {
		struct tg_pair *pair = &ARENA_PTR(struct tg_pair, PAIRS)[state];

		/* in another order than the states */
		ARENA_PTR(u16, ACCEPTS)[state] = 7 - state;
		pair->owner.allow = 10 + state;
		pair->other.allow = 20 + state;
	}
	for (u32 state = 0; state < 8; state++) {
		compare("owner", &cases, profile_perms(TABLE, state, true)->allow, 10 + 7 - state,
			state, 0);
		compare("other", &cases, profile_perms(TABLE, state, false)->allow, 20 + 7 - state,
			state, 0);
	}
	return cases;
}

/* Where an execution leads, part by part. */
struct exec {
	u32 type, index, flags;
	bool is_unsafe;
};

#define EXECS (3 * 3 * 8 * 2)

static struct exec exec_of(u32 n)
{
	static const u32 types[3] = { 0, EXEC_NAME, EXEC_TABLE };
	static const u32 indexes[3] = { 0, 1, EXEC_INDEX };
	static const u32 flags[3] = { EXEC_CHILD, EXEC_INHERIT, EXEC_UNCONFINED };
	struct exec e = { .type = types[n % 3], .index = indexes[n / 3 % 3], .is_unsafe = n / 72 };

	for (u32 i = 0; i < 3; i++)
		if (n / 9 >> i & 1)
			e.flags |= flags[i];
	return e;
}

static u32 exec_word(struct exec e)
{
	return e.type | e.index | e.flags | (e.is_unsafe ? EXEC_UNSAFE : 0);
}

/* A link leads where its target leads, and scrubs the environment if that does. */
static u64 check_exec_subset(void)
{
	u64 cases = 0;

	for (u32 i = 0; i < EXECS; i++)
		for (u32 j = 0; j < EXECS; j++) {
			struct exec link = exec_of(i), target = exec_of(j);
			bool same = link.type == target.type && link.index == target.index &&
				    link.flags == target.flags;
			bool scrubs = !link.is_unsafe || target.is_unsafe;

			compare("subset", &cases,
				profile_exec_subset(exec_word(link), exec_word(target)),
				same && scrubs, exec_word(link), exec_word(target));
		}
	return cases;
}

int main(void)
{
	return RUN_CHECKS("profile", "", { "judge", check_judge }, { "step", check_step },
			  { "perms", check_perms }, { "exec_subset", check_exec_subset });
}
