/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Low water-mark integrity: the decisions, and nothing else. Pure functions of
 * levels and attributes, the same source in the kernel, in the unit tests, under
 * the fuzzer and before the model checker (docs/reference/lomac.md is their contract).
 */
#ifndef TIDEGATE_LOMAC_RULES_H
#define TIDEGATE_LOMAC_RULES_H

#include "abi/policy.h"

struct lomac_object {
	u8 level;
	u16 attrs;  /* enum tg_attr */
	bool known; /* false: no label could be found; fail closed */
};

struct lomac_subject {
	u8 level;
	u8 attrs;
};

/* The level a subject has after observing an object. Never above its own. */
static __always_inline u8 lomac_observe(struct lomac_subject s, struct lomac_object o)
{
	if (o.known && (o.attrs & (TG_NEUTRAL | TG_KERNEL)))
		return s.level;
	if (s.attrs & TG_NODEMOTE)
		return s.level;
	if (!o.known)
		return 0;
	return o.level < s.level ? o.level : s.level;
}

/* The same for what comes from a network. */
static __always_inline u8 lomac_observe_net(struct lomac_subject s, u8 net)
{
	if (s.attrs & (TG_NODEMOTE | TG_NONETDEMOTE))
		return s.level;
	return net < s.level ? net : s.level;
}

/* May the subject change the object? An object without a label is the highest. */
static __always_inline bool lomac_modify(struct lomac_subject s, struct lomac_object o, u8 top)
{
	if (!o.known)
		return s.level >= top;
	if (o.attrs & (TG_NEUTRAL | TG_LOWWRITE))
		return true;
	return s.level >= o.level;
}

/* May it open the object at all? One without a label may be one that nobody below the top may open. */
static __always_inline bool lomac_open(struct lomac_subject s, struct lomac_object o, u8 top)
{
	if (!o.known)
		return s.level >= top;
	return !(o.attrs & TG_LOWNOOPEN && s.level < o.level);
}

/*
 * Is binding it beyond question: opened, nobody falls, no attribute decides? What
 * most accesses ask first; where the answer is no, the rules above and below decide.
 */
static __always_inline bool lomac_plain(struct lomac_subject s, struct lomac_object o, bool reads,
					bool writes)
{
	if (!o.known || o.attrs & TG_LOWNOOPEN)
		return false;
	return s.level == o.level || !(s.level < o.level ? writes : reads);
}

/* May it change the names in a directory? In a creator area everyone may. */
static __always_inline bool lomac_names(struct lomac_subject s, struct lomac_object dir, u8 top)
{
	if (dir.known && (dir.attrs & TG_CREATOR))
		return true;
	return lomac_modify(s, dir, top);
}

#define LOMAC_REFUSED 0xff

/*
 * The level of a new object at a place whose rule is given, LOMAC_REFUSED if the
 * subject may not make one there. `dir` has been passed by lomac_names.
 */
static __always_inline u8 lomac_create(struct lomac_subject s, struct lomac_object place)
{
	if (!place.known)
		return LOMAC_REFUSED;
	if (place.attrs & TG_NEUTRAL || s.level >= place.level)
		return place.level;
	return place.attrs & TG_CREATOR ? s.level : LOMAC_REFUSED;
}

/*
 * The level of an object after it got a name (rename, link) at a place whose
 * rule is given, LOMAC_REFUSED if that would launder it.
 */
static __always_inline u8 lomac_rename(struct lomac_object o, struct lomac_object place)
{
	if (!o.known || !place.known)
		return LOMAC_REFUSED;
	if (o.attrs & TG_NEUTRAL)
		return o.level;
	if (place.level > o.level)
		return place.attrs & TG_CREATOR ? o.level : LOMAC_REFUSED;
	return place.level;
}

#define CAP_DAC_OVERRIDE 1
#define CAP_DAC_READ_SEARCH 2
#define CAP_NET_RAW 13
#define CAP_SYS_RESOURCE 24

/*
 * The capabilities over what all share that a subject of any level may use: levels decide
 * what it reaches by them. In their numbers' order: CHOWN, DAC_OVERRIDE, FOWNER, FSETID,
 * KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, SYS_CHROOT, AUDIT_WRITE, SETFCAP.
 */
#define LOMAC_CAPS 0xa00405fbull

/*
 * May the subject use a capability in the initial user namespace? A raw socket speaks from any
 * address, so it is a modification of the highest network that the map names.
 */
static __always_inline bool lomac_has_capability(struct lomac_subject s, u32 cap, u8 networks,
						 u8 top)
{
	if (s.level >= top)
		return true;
	if (cap == CAP_NET_RAW)
		return s.level >= networks;
	return cap < 64 && LOMAC_CAPS >> cap & 1;
}

/* May the subject act on another (signal, ptrace, priority)? */
static __always_inline bool lomac_act(struct lomac_subject s, u8 target)
{
	return s.level >= target;
}

#define LOMAC_TRUST (TG_NODEMOTE | TG_NONETDEMOTE)

/* May it act in another's place (trace it, write its memory)? Below the top only if it is trusted as far as that one. */
static __always_inline bool lomac_controls(struct lomac_subject s, u8 attrs, u8 top)
{
	return s.level >= top || s.attrs & TG_NODEMOTE || !(attrs & LOMAC_TRUST & ~s.attrs);
}

/* Can the object be code of a trusted program: has the top alone had it in hand? */
static __always_inline bool lomac_is_code(struct lomac_object o, u8 top)
{
	return o.known && o.level >= top && !(o.attrs & (TG_NEUTRAL | TG_LOWWRITE));
}

#endif
