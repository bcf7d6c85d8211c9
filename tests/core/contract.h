/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * docs/reference/lomac.md as tables: what each decision must be, read from the contract and
 * not from the code. The first row that fits decides. A row says what it asks of
 * the object's attributes (any of them; 0: nothing), the subject's, and whether
 * the object's label is known.
 */
#ifndef CORE_CONTRACT_H
#define CORE_CONTRACT_H

enum known { ANY, KNOWN, UNKNOWN };

enum outcome {
	ALLOW,
	IF_TOP,        /* allowed at the top level */
	IF_NOT_BELOW,  /* allowed at the object's level and above */
	KEEP,          /* the level stays */
	FALL,          /* to the lower of the two levels */
	LOWEST,        /* to level 0 */
	RULE,          /* the rule's level */
	LOWER,         /* the lower of the two */
	RULE_IF_BELOW, /* the rule's level, refused where that is higher */
	REFUSE,
};

struct row {
	u16 object;
	u8 subject;
	enum known known;
	enum outcome outcome;
};

/* "observe"; neutral objects; procfs, sysfs: "reading them is neutral"; no label. */
static const struct row OBSERVE[] = {
	{ TG_NEUTRAL | TG_KERNEL, 0, KNOWN, KEEP },
	{ 0, TG_NODEMOTE, ANY, KEEP },
	{ 0, 0, UNKNOWN, LOWEST },
	{ 0, 0, ANY, FALL },
};

/* "a `nonetdemote` subject by the network" */
static const struct row OBSERVE_NET[] = {
	{ 0, TG_NODEMOTE | TG_NONETDEMOTE, ANY, KEEP },
	{ 0, 0, ANY, FALL },
};

/* "modify"; an object without a label counts as the highest. */
static const struct row MODIFY[] = {
	{ 0, 0, UNKNOWN, IF_TOP },
	{ TG_NEUTRAL | TG_LOWWRITE, 0, ANY, ALLOW },
	{ 0, 0, ANY, IF_NOT_BELOW },
};

/* "where the rule of d says `creator`, anybody may make names in it" */
static const struct row NAMES[] = {
	{ TG_CREATOR, 0, KNOWN, ALLOW },
	{ 0, 0, UNKNOWN, IF_TOP },
	{ TG_NEUTRAL | TG_LOWWRITE, 0, ANY, ALLOW },
	{ 0, 0, ANY, IF_NOT_BELOW },
};

/* `lownoopen`: "a lower subject may not open this object, for reading either"; no label: the top alone. */
static const struct row OPEN[] = {
	{ 0, 0, UNKNOWN, IF_TOP },
	{ TG_LOWNOOPEN, 0, KNOWN, IF_NOT_BELOW },
	{ 0, 0, ANY, ALLOW },
};

/* "Creation"; the attributes are those of the rule for the new path. */
static const struct row CREATE[] = {
	{ 0, 0, UNKNOWN, REFUSE },
	{ TG_NEUTRAL, 0, ANY, RULE },
	{ TG_CREATOR, 0, ANY, LOWER },
	{ 0, 0, ANY, RULE_IF_BELOW },
};

/* "rename", "link": laundering; the attributes are those of the new place. */
static const struct row RENAME[] = {
	{ 0, 0, UNKNOWN, REFUSE },
	{ TG_CREATOR, 0, ANY, LOWER },
	{ 0, 0, ANY, RULE_IF_BELOW },
};

/* "kill, ptrace, …: refused from low to high" */
static const struct row ACT[] = {
	{ 0, 0, ANY, IF_NOT_BELOW },
};

/*
 * "Privilege": the capabilities that every level may use, and the one that a level may use
 * above which no network is named; the numbers are those of capabilities(7)'s header.
 */
static const u8 EVERY_LEVEL[] = {
	0,  /* chown */
	1,  /* dac_override */
	3,  /* fowner */
	4,  /* fsetid */
	5,  /* kill */
	6,  /* setgid */
	7,  /* setuid */
	8,  /* setpcap */
	10, /* net_bind_service */
	18, /* sys_chroot */
	29, /* audit_write */
	31, /* setfcap */
};
#define BY_NETWORKS 13 /* net_raw */

static inline bool contract_capable(u8 level, u32 cap, u8 networks, u8 top)
{
	for (u32 i = 0; i < sizeof(EVERY_LEVEL); i++)
		if (EVERY_LEVEL[i] == cap)
			return true;
	return level == top || (cap == BY_NETWORKS && level >= networks);
}

static inline enum outcome contract_row(const struct row *row, u16 object, u8 subject, bool known)
{
	for (;; row++) {
		if (row->object && !(row->object & object))
			continue;
		if (row->subject && !(row->subject & subject))
			continue;
		if (row->known == ANY || (row->known == KNOWN) == known)
			return row->outcome;
	}
}

/* The row's outcome for a subject at `from` (or an object that gets a new place). */
static inline u8 contract(const struct row *rows, u16 object, u8 subject, bool known, u8 from,
			  u8 to, u8 top)
{
	u8 lower = from < to ? from : to;

	switch (contract_row(rows, object, subject, known)) {
	case ALLOW:
		return true;
	case IF_TOP:
		return from == top;
	case IF_NOT_BELOW:
		return from >= to;
	case KEEP:
		return from;
	case RULE:
		return to;
	case FALL:
	case LOWER:
		return lower;
	case LOWEST:
		return 0;
	case RULE_IF_BELOW:
		return to > from ? LOMAC_REFUSED : to;
	case REFUSE:
		return LOMAC_REFUSED;
	}
	abort();
}

#endif
