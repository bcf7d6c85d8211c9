/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Long runs of the machine in machine.h: after every step nothing may be higher
 * than where its bytes come from. prove_step shows it for one step of any kind;
 * this shows that the machine which the proof speaks of does run.
 */
#include "native.h"
#include "fuzz.h"
#include "machine.h"

enum seen { FELL = STEPS, REFUSED, SEEN };
const char *const fuzz_events[] = { "read",
				    "write",
				    "network",
				    "act",
				    "fork",
				    "make",
				    "move",
				    "a subject falls",
				    "a step changes nothing",
				    NULL };
unsigned long fuzz_seen[SEEN];

static struct lomac_object any_object(struct bytes *b, u8 top)
{
	u8 level = take(b) % (top + 1);
	u16 attrs = take(b);

	return (struct lomac_object){ .level = level,
				      .attrs = attrs | (take(b) & 1) << 8,
				      .known = take(b) % 8 };
}

static struct machine any_machine(struct bytes *b)
{
	struct machine m = { .top = 1 + take(b) % (TG_LEVELS - 1) };

	for (u32 i = 0; i < PARTIES; i++) {
		m.s[i].label.level = take(b) % (m.top + 1);
		m.s[i].label.attrs = take(b);
		m.s[i].origin = m.s[i].label.level;
		m.o[i].label = any_object(b, m.top);
		m.o[i].label.known = true;
		m.o[i].origin = m.o[i].label.level;
	}
	return m;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct bytes b = { data, size };
	struct machine m = any_machine(&b);

	CLAIM(machine_holds(&m));
	while (b.left) {
		struct machine before = m;
		u8 who = take(&b), flags = take(&b);
		struct choice c = {
			.step = take(&b) % STEPS,
			.s = who % PARTIES,
			.other = who / PARTIES % PARTIES,
			.o = who / (PARTIES * PARTIES) % PARTIES,
			.dir = flags % PARTIES,
			.net = take(&b) % (m.top + 1),
			.lost = flags >= 0xf0,
			.dir_lost = flags < 0x10,
			.place = any_object(&b, m.top),
		};

		machine_step(&m, c);
		CLAIM(machine_holds(&m));
		CLAIM(m.s[c.s].label.level <= before.s[c.s].label.level || c.step == FORK);
		if (!memcmp(&m, &before, sizeof(m)))
			fuzz_seen[REFUSED]++;
		else
			fuzz_seen[c.step]++;
		fuzz_seen[FELL] += m.s[c.s].label.level < before.s[c.s].label.level;
	}
	return 0;
}
