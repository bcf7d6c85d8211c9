/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The decisions of lomac.h: each claim holds for every value of its inputs. */
#include "prove.h"
#include "machine.h"

static u8 any_level(u8 top)
{
	u8 level = nondet_u8();

	ASSUME(level <= top);
	return level;
}

static u8 any_top(void)
{
	u8 top = nondet_u8();

	ASSUME(top >= 1 && top < TG_LEVELS);
	return top;
}

static struct lomac_subject any_subject(u8 top)
{
	struct lomac_subject s = { .level = any_level(top), .attrs = nondet_u8() };

	return s;
}

/* Every object: where the label is unknown, what stands in it may be anything. */
static struct lomac_object any_object(u8 top)
{
	struct lomac_object o = { .level = nondet_u8(),
				  .attrs = nondet_u16(),
				  .known = nondet_bool() };

	ASSUME(!o.known || o.level <= top);
	return o;
}

/* (a) No modify from below, but by lowwrite or of what is neutral; no label: top only. */
void prove_modify(void)
{
	u8 top = any_top();
	struct lomac_subject s = any_subject(top);
	struct lomac_object o = any_object(top);
	bool allowed = lomac_modify(s, o, top);

	if (allowed && o.known && !(o.attrs & (TG_LOWWRITE | TG_NEUTRAL)))
		PROVE(s.level >= o.level, "no modify from below");
	if (allowed && !o.known)
		PROVE(s.level == top, "an unknown object is modified from the top alone");
	if (s.level == top)
		PROVE(allowed, "the top level is never refused");
	if (lomac_names(s, o, top) && !allowed)
		PROVE(o.known && o.attrs & TG_CREATOR,
		      "names change without modify in creator areas alone");
	if (lomac_act(s, o.level))
		PROVE(s.level >= o.level, "no act on a higher subject");
	if (!lomac_open(s, o, top) && o.known)
		PROVE(o.attrs & TG_LOWNOOPEN && s.level < o.level,
		      "of what is known only lownoopen refuses an open");
	if (o.known && o.attrs & TG_LOWNOOPEN && s.level < o.level)
		PROVE(!lomac_open(s, o, top), "lownoopen refuses every lower subject");
	if (lomac_open(s, o, top) && !o.known)
		PROVE(s.level == top, "an unknown object is opened from the top alone");
	if (s.level == top)
		PROVE(lomac_open(s, o, top), "the top level opens everything");
	WITNESS(allowed && o.known && s.level < o.level,
		"lowwrite and neutral let a lower subject in");
	WITNESS(!allowed && o.known, "a lower subject is refused");
	WITNESS(!allowed && !o.known, "a subject is refused an unknown object");
	WITNESS(!lomac_open(s, o, top) && o.known, "an open is refused");
	WITNESS(!lomac_open(s, o, top) && !o.known, "an open of an unknown object is refused");
}

/*
 * What bind() passes by the quick question it could have passed by the rules: whatever
 * the subject's attributes, and, to read what is at the top, whatever its level.
 */
void prove_plain(void)
{
	u8 top = any_top();
	struct lomac_subject s = any_subject(top), asked = { .level = s.level };
	struct lomac_object o = any_object(top);
	bool reads = nondet_bool(), writes = nondet_bool(),
	     unasked = !writes && o.known && o.level == top;

	if (unasked)
		asked.level = top;
	if (lomac_plain(asked, o, reads, writes)) {
		PROVE(lomac_open(s, o, top), "it may be opened");
		PROVE(!reads || lomac_observe(s, o) == s.level, "nobody falls");
		PROVE(!writes || lomac_modify(s, o, top), "it may be modified");
	}
	WITNESS(lomac_plain(asked, o, reads, writes) && reads && writes && s.level < top,
		"below the top, too");
	WITNESS(lomac_plain(asked, o, reads, writes) && unasked && s.level < o.level,
		"the top's, from below");
	WITNESS(!lomac_plain(asked, o, reads, writes) && o.known && lomac_modify(s, o, top) &&
			writes && !reads,
		"it may say no where the rules say yes");
}

/* (b) Observation never raises, and leaves nobody above what was seen. */
void prove_observe(void)
{
	u8 top = any_top(), net = any_level(top);
	struct lomac_subject s = any_subject(top);
	struct lomac_object o = any_object(top);
	u8 after = lomac_observe(s, o), online = lomac_observe_net(s, net);

	PROVE(after <= s.level && online <= s.level, "observation never raises");
	if (o.known && !(o.attrs & (TG_NEUTRAL | TG_KERNEL)) && !(s.attrs & TG_NODEMOTE))
		PROVE(after <= o.level, "nobody stays above what was observed");
	if (!o.known && !(s.attrs & TG_NODEMOTE))
		PROVE(after == 0, "what is unknown lowers to the lowest");
	if (!(s.attrs & (TG_NODEMOTE | TG_NONETDEMOTE)))
		PROVE(online <= net, "nobody stays above a network");
	if (o.known)
		PROVE(after == s.level || after == o.level, "no fall below the object");
	WITNESS(after < s.level && o.known, "an object demotes");
	WITNESS(after > o.level && o.known && s.attrs & TG_NODEMOTE, "nodemote keeps its level");
	WITNESS(after < s.level && s.attrs & TG_NONETDEMOTE,
		"nonetdemote is for the network alone");
	WITNESS(online < s.level, "the network demotes");
}

/*
 * (c) What is made is no higher than its maker, what is renamed no higher than it
 * was; either is no higher than its place, and lower only in a creator area.
 */
void prove_names(void)
{
	u8 top = any_top();
	struct lomac_subject s = any_subject(top);
	struct lomac_object o = any_object(top), place = any_object(top);
	u8 made = lomac_create(s, place), moved = lomac_rename(o, place);

	if (made != LOMAC_REFUSED) {
		PROVE(place.known, "nothing is made where the rule is unknown");
		PROVE(made <= s.level || place.attrs & TG_NEUTRAL,
		      "nothing is made above its maker");
		PROVE(made <= place.level, "nothing is made above its place");
		PROVE(made == place.level || (made == s.level && place.attrs & TG_CREATOR),
		      "below its place only in a creator area, and then at its maker's level");
	}
	if (moved != LOMAC_REFUSED) {
		PROVE(o.known && place.known,
		      "nothing unknown is renamed, nor to an unknown place");
		PROVE(moved <= o.level, "no rename raises");
		PROVE(moved <= place.level || o.attrs & TG_NEUTRAL,
		      "nothing is renamed above its place");
		PROVE(moved == place.level || place.attrs & TG_CREATOR || o.attrs & TG_NEUTRAL,
		      "below its place only in a creator area");
	}
	if (s.level == top && place.known)
		PROVE(made == place.level, "the top level makes what the rule says");
	WITNESS(made == LOMAC_REFUSED && place.known, "a creation is refused");
	WITNESS(made < place.level, "a creator area takes what is lower");
	WITNESS(moved == LOMAC_REFUSED && place.known && o.known, "laundering is refused");
	WITNESS(moved < o.level, "an object falls to its new place");
	WITNESS(moved < place.level && !(o.attrs & TG_NEUTRAL),
		"a creator area keeps what is lower");
}

/*
 * Whatever is asked for: the top is never refused, a level has no more than those above it,
 * and nothing that is not on the list is given below the top.
 */
void prove_capable(void)
{
	u8 top = any_top(), networks = any_level(top);
	struct lomac_subject s = any_subject(top), above = any_subject(top);
	u32 cap = nondet_u32();
	bool allowed = lomac_has_capability(s, cap, networks, top);

	if (s.level == top)
		PROVE(allowed, "the top level is never refused");
	if (allowed && above.level >= s.level)
		PROVE(lomac_has_capability(above, cap, networks, top), "who is higher has no less");
	if (allowed && s.level < top)
		PROVE(cap == CAP_NET_RAW || (cap < 64 && LOMAC_CAPS >> cap & 1),
		      "below the top there is the list alone");
	if (allowed && cap == CAP_NET_RAW)
		PROVE(s.level >= networks, "no raw socket below a network that is named");
	WITNESS(allowed && s.level < top && cap != CAP_NET_RAW, "the list is for every level");
	WITNESS(allowed && s.level < top && cap == CAP_NET_RAW, "raw sockets below the top");
	WITNESS(!allowed && cap == CAP_NET_RAW, "a raw socket is refused");
	WITNESS(!allowed && cap != CAP_NET_RAW, "a capability is refused");
}

static struct choice any_choice(u8 top)
{
	struct choice c = {
		.step = nondet_u8(),
		.s = nondet_u8(),
		.other = nondet_u8(),
		.o = nondet_u8(),
		.dir = nondet_u8(),
		.net = any_level(top),
		.lost = nondet_bool(),
		.dir_lost = nondet_bool(),
		.place = any_object(top),
	};

	ASSUME(c.step < STEPS && c.s < PARTIES && c.other < PARTIES && c.o < PARTIES &&
	       c.dir < PARTIES);
	return c;
}

/* Any subjects and objects; `fresh`: no byte has moved yet. */
static struct machine any_machine(bool fresh)
{
	struct machine m = { .top = any_top() };

	for (u32 i = 0; i < PARTIES; i++) {
		m.s[i].label = any_subject(m.top);
		m.s[i].origin = fresh ? m.s[i].label.level : nondet_u8();
		m.o[i].label = any_object(m.top);
		m.o[i].label.known = true;
		ASSUME(m.o[i].label.level <= m.top);
		m.o[i].origin = fresh ? m.o[i].label.level : nondet_u8();
	}
	ASSUME(machine_holds(&m));
	return m;
}

/* (d) One step from any state in which the property holds: so it holds for ever. */
void prove_step(void)
{
	struct machine m = any_machine(false), before = m;
	struct choice c = any_choice(m.top);
	struct party *s = &before.s[c.s];
	struct thing *o = &m.o[c.o], *was = &before.o[c.o];

	machine_step(&m, c);
	PROVE(machine_holds(&m), "no low byte reaches anything high");
	WITNESS(c.step == READ && m.s[c.s].label.level < s->label.level, "a reader falls");
	WITNESS(c.step == WRITE && o->origin < was->origin, "bytes are written");
	WITNESS(c.step == WRITE && o->origin < was->origin && c.lost, "and to an unknown object");
	WITNESS(c.step == NETWORK && m.s[c.s].origin < s->origin, "bytes come from the network");
	WITNESS(c.step == ACT_ON && m.s[c.other].origin < before.s[c.other].origin,
		"bytes are sent");
	WITNESS(c.step == MAKE && o->label.level < was->label.level &&
			o->label.level < c.place.level,
		"an object is made below its place");
	WITNESS(c.step == MOVE && o->label.level < was->label.level,
		"an object falls to its new place");
	WITNESS(c.step == MOVE && was->origin < was->label.level && o->origin == o->label.level &&
			!(o->label.attrs & TG_LOWWRITE),
		"a subject high enough vouches for what it moves");
}

/* (d) The same by running: four steps of any kind from a fresh start, up to four levels. */
void prove_run(void)
{
	struct machine m = any_machine(true);
	u8 subject = m.s[0].label.level, object = m.o[0].origin;

	ASSUME(m.top < 4);
	for (u32 i = 0; i < 4; i++)
		machine_step(&m, any_choice(m.top));
	PROVE(machine_holds(&m), "no low byte reaches anything high");
	WITNESS(subject == 2 && m.s[0].label.level == 0 && m.o[0].origin < object,
		"a subject falls and taints an object");
}
