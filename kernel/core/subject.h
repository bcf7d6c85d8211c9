/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the label of a subject is. In the task's storage, or, of a child that has not
 * needed more yet, in the slot that its address hashes to: making storage would cost a
 * fork more than the fork's own checks. Neither: the top level, ungoverned.
 *
 * A slot's word (slot.h) is also the quick answer to "at what level is the current
 * task?". What keeps it true:
 *   - every task begins in task_alloc, which writes or clears the slot for its address,
 *     so no word outlives the task it was about;
 *   - a word `born here` with no storage beside it is the label. Nobody takes its slot
 *     but a later task at the same address; storage is made from it, and then counts;
 *   - of a task that has storage it is a copy. Code that changes the storage corrects the copy
 *     after that; code that makes a copy looks at the storage again after that. Both by atomic
 *     operations, which are full barriers: one of the two sees the other.
 * A task reads only its own word as a copy; of another task the storage is asked.
 *
 * While a transaction may still put a level back, a subject is both: what it changes is decided by
 * the level it has; what it observes, and what others do to it, by the level it may get back. So no
 * subject has seen lower data whose level goes up again. There is no word about it in a slot
 * meanwhile.
 */
#ifndef TIDEGATE_CORE_SUBJECT_H
#define TIDEGATE_CORE_SUBJECT_H

#include "lib/storage.h"
#include "lib/verifier.h"
#include "core/maps.h"
#include "core/slot.h"

#define TG_SLOT_BITS 15
/* Each try lost means that somebody else's was won: it does not come to this. */
#define SLOT_TRIES (1 << 20)

struct tg_slot {
	u64 word;
	u64 cause; /* newest history record of the task that is born here */
	u32 clear; /* whether that one may hold what is revoked (held.h); never 0 */
};

/* It may: in `clear`, with something that no other fall has. */
#define MAY_HOLD (1u << 31)

struct tg_slot slots[1 << TG_SLOT_BITS];

/* The label in force when there is no memory to make one: the lowest. */
struct tg_subject subject_lost;

static __always_inline struct tg_slot *slot_of(u64 task)
{
	return &slots[BOUND(task * 0x9e3779b97f4a7c15ull >> (64 - TG_SLOT_BITS),
			    1 << TG_SLOT_BITS)];
}

/* The label in a task's storage; NULL: it has none. */
static __always_inline struct tg_subject *subject_stored(struct task_struct *task)
{
	return bpf_task_storage_get(&subjects, task, 0, 0);
}

/*
 * The word of a task that was born in its slot; 0: none was. To be asked before the storage: what
 * is not here any more is there by then.
 */
static __always_inline u64 slot_born(u64 task)
{
	u64 word = READ_ONCE(slot_of(task)->word);

	return word & SLOT_BORN && slot_is(word, task) ? word : 0;
}

/*
 * The level by which a subject observes, and others act on it: the one it has, or may get
 * back. Both are read at once.
 */
static __always_inline u8 subject_observes(struct tg_subject *s)
{
	u16 both;

	_Static_assert(__builtin_offsetof(struct tg_subject, from) ==
			       __builtin_offsetof(struct tg_subject, level) + 1,
		       "one word");
	/* a task that has no room for a label may not go unnoticed either */
	if (!s || s == &subject_lost)
		return policy.top;
	both = READ_ONCE(*(u16 *)&s->level);
	return both >> 8 ? (both >> 8) - 1 : both;
}

/* A subject's label, wherever it is. */
struct tg_label {
	u64 cause;
	u8 level;
	u8 observes; /* see subject_observes */
	u8 attrs;
	bool governed;
	u32 clear;
};

/* What a slot says of that. To be asked before its word: whose that is has had the slot all the time then. */
static __always_inline u32 slot_clear(u64 task)
{
	return READ_ONCE(slot_of(task)->clear);
}

static __always_inline struct tg_label subject_label(struct task_struct *task)
{
	u64 at = address(task);
	u32 clear = slot_clear(at);
	u64 word = slot_born(at);
	struct tg_subject *s = subject_stored(task);
	struct tg_label l = { .level = policy.top, .observes = policy.top };

	if (s) {
		l.clear = READ_ONCE(s->clear);
		if (!l.clear && word)
			l.clear = clear;
		l.cause = !s->cause && word ? slot_of(at)->cause : s->cause;
		l.level = s->level;
		l.observes = subject_observes(s);
		l.attrs = s->attrs;
		l.governed = true;
	} else if (word) {
		l.clear = clear;
		l.cause = slot_of(at)->cause;
		l.level = l.observes = slot_level(word);
		l.attrs = slot_attrs(word);
		l.governed = true;
	}
	return l;
}

/*
 * What new storage begins with, by the last bits of a slot's word: level and attributes. Here, as there is no room for
 * it on the stack. Code that needs an entry writes it first, and all write the same.
 */
#define SLOT_SAYS 0x80
struct tg_subject subjects_new[SLOT_SAYS];

/* The storage of a task, which is made by a slot's word if there is none; NULL: no memory. */
static __always_inline struct tg_subject *subject_begin(struct task_struct *task, u64 word,
							u64 cause, u32 clear)
{
	struct tg_subject *s, *new = &subjects_new[BOUND(word, SLOT_SAYS)];

	new->level = slot_level(word);
	new->attrs = slot_attrs(word);
	s = TASK_STORAGE_MADE(&subjects, task, new);
	/* unless there is a newer record, or a fall since */
	if (s) {
		__sync_val_compare_and_swap(&s->cause, 0, cause);
		__sync_val_compare_and_swap(&s->clear, 0, clear);
	}
	return s;
}

/* Gives storage to the task that was born in its slot; &subject_lost: no memory. */
static __noinline struct tg_subject *subject_store(struct task_struct *task, u64 word)
{
	struct tg_slot *slot = slot_of(address(task));
	struct tg_subject *s = subject_begin(task, word, slot->cause, slot->clear);

	if (!s)
		return &subject_lost;
	__sync_val_compare_and_swap(&slot->word, word, word & ~SLOT_BORN);
	return s;
}

/* The label of a task, in storage; NULL: ungoverned. */
static __always_inline struct tg_subject *subject_of(struct task_struct *task)
{
	u64 word = slot_born(address(task));

	/* even if there is storage: the slot's cause may not be in it yet */
	return word ? subject_store(task, word) : subject_stored(task);
}

static __always_inline struct tg_subject *subject_current(void)
{
	return subject_of(bpf_get_current_task_btf());
}

/* The label of a task, in storage, which is made if there is none; NULL: no memory. */
static __noinline struct tg_subject *subject_made(struct task_struct *task)
{
	struct tg_subject *s = subject_of(task);

	if (!s) {
		s = subject_begin(task, policy.top, 0, MAY_HOLD);
		/* it may be receiving something just now */
		if (s)
			__sync_val_compare_and_swap(&s->received, 0, MAY_HOLD);
	}
	return s == &subject_lost ? NULL : s;
}

static __always_inline u8 subject_level(struct tg_subject *s)
{
	if (!s)
		return policy.top;
	/* keeps the compiler from adding the offset before the test */
	barrier_var(s);
	return s->level;
}

/* What a slot is to say of a task by its storage; 0: nothing, as its level may be put back. */
static __always_inline u64 slot_word_of(u64 task, struct tg_subject *s)
{
	u16 both = READ_ONCE(*(u16 *)&s->level);

	return both >> 8 ? 0 : slot_word(task, both, READ_ONCE(s->attrs));
}

#define LEVEL_UNSURE 0xff

/* Copies the current task's label to its slot, if that is free; its level, or LEVEL_UNSURE. */
__noinline u8 level_remember(void)
{
	struct tg_subject *s = subject_current();
	u64 me = address(bpf_get_current_task_btf()), word, old;
	struct tg_slot *slot = slot_of(me);
	u16 both;
	u32 i;

	if (!s || s == &subject_lost)
		return subject_level(s);
	bpf_for(i, 0, SLOT_TRIES) {
		old = READ_ONCE(slot->word);
		word = slot_word_of(me, s);
		if (!slot_fits(me) || old & SLOT_BORN || (!word && !slot_is(old, me)))
			break;
		if (__sync_val_compare_and_swap(&slot->word, old, word) == old &&
		    slot_word_of(me, s) == word)
			break;
	}
	both = READ_ONCE(*(u16 *)&s->level);
	return both >> 8 ? LEVEL_UNSURE : both;
}

/* The current task's level, by its slot if it is there; LEVEL_UNSURE: it may be put back. */
static __always_inline u8 level_current(void)
{
	u64 me = address(bpf_get_current_task_btf()), word = slot_of(me)->word;

	return slot_is(word, me) ? slot_level(word) : level_remember();
}

/* The level by which it changes things. */
static __always_inline u8 level_modifies(void)
{
	u8 level = level_current();

	return level != LEVEL_UNSURE ? level : subject_level(subject_current());
}

/* After a task's storage has changed: its word, if it is there, becomes another. */
static __noinline int slot_change(u64 task, u64 word)
{
	struct tg_slot *slot = slot_of(task);
	u32 i;

	bpf_for(i, 0, SLOT_TRIES) {
		u64 old = __sync_fetch_and_add(&slot->word, 0);

		if (!slot_is(old, task) ||
		    __sync_val_compare_and_swap(&slot->word, old, word) == old)
			break;
	}
	return 0;
}

/* Corrects the word of a task whose storage user space has written. */
static __always_inline void slot_correct(u64 task, struct tg_subject *s)
{
	u32 i;

	bpf_for(i, 0, SLOT_TRIES) {
		u64 word = slot_word_of(task, s);

		slot_change(task, word);
		if (slot_word_of(task, s) == word)
			break;
	}
}

/* `from`: the level that may be put back, and 1; 0: this one stays. */
static __always_inline void subject_set_level(u64 task, struct tg_subject *s, u8 level, u8 from)
{
	WRITE_ONCE(*(u16 *)&s->level, level | from << 8);
	slot_change(task, slot_word_of(task, s));
}

/* Only the current task changes its attributes; the word is written again when it is asked for. */
static __always_inline void subject_set_attrs(struct tg_subject *s, u8 attrs)
{
	s->attrs = attrs;
	slot_change(address(bpf_get_current_task_btf()), 0);
}

/* A child is born with its parent's label in its slot; false: the slot is somebody else's. */
static __always_inline bool slot_bear(u64 child, struct tg_label *l)
{
	struct tg_slot *slot = slot_of(child);
	u64 old = slot->word, word = slot_word(child, l->level, l->attrs) | SLOT_BORN;

	if (!slot_fits(child) || (old & SLOT_BORN && !slot_is(old, child)) ||
	    __sync_val_compare_and_swap(&slot->word, old, word) != old)
		return false;
	slot->cause = l->cause;
	slot->clear = l->clear ? l->clear : MAY_HOLD;
	return true;
}

#endif
