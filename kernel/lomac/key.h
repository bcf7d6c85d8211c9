/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: keys, at their creator's level. */
#ifndef TIDEGATE_LOMAC_KEY_H
#define TIDEGATE_LOMAC_KEY_H

#include "lomac/ipc.h"

#define KEY_MADE_TICKS 2500 /* 2.5 to 25 s: a key has its serial number by then */

/*
 * No hook tells of a key's end, which wipes its memory. So an entry counts as long as the memory has the number that
 * it was first seen with.
 */
static long key_gone(struct bpf_map *map, u64 *key, struct tg_charged *entry, void *ctx)
{
	u32 serial, at, payer;

	if (!entry->born)
		return 0;
	serial = CAST(struct key, *key)->serial;
	if (serial && !entry->serial)
		entry->serial = serial;
	if (serial == entry->serial &&
	    (serial || (u32)bpf_jiffies64() - entry->born < KEY_MADE_TICKS))
		return 0;
	at = entry->at;
	payer = entry->payer;
	if (!bpf_map_delete_elem(map, key))
		share_give(TG_T_OBJECTS, at, payer);
	return 0;
}

SEC("lsm/key_alloc")
int BPF_PROG(lomac_key_alloc, void *key)
{
	int err = kernel_object_make(address(key), true);

	/* the keys that its user had may be gone */
	if (err == -ENOSPC) {
		bpf_for_each_map_elem(&kernel_objects, key_gone, NULL, 0);
		err = kernel_object_make(address(key), true);
	}
	return err == -ENOSPC ? objects_full() : err;
}

/* Is it this operation of keyctl (250; of i386 288)? */
static __always_inline bool keyctl_is(u32 operation)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	return (regs->orig_ax == 250 && (u32)regs->di == operation) ||
	       (regs->orig_ax == 288 && (u32)regs->bx == operation);
}

/*
 * Is it the caller's own, who is not root? The kernel goes by the number that he has for files, and by what he
 * possesses, as by a session's key ring that he inherited: others' too.
 */
static __always_inline bool key_is_own(u64 key, u32 fsuid)
{
	return fsuid && CAST(struct key, key)->uid.val == fsuid;
}

/*
 * A user reaches his own keys by ordinary permission, at every level. Of those of root, whoever reaches them, a subject
 * below the top changes what was made at its level or below.
 */
SEC("lsm/key_permission")
int BPF_PROG(lomac_key_permission, void *key_ref, const struct cred *cred, int need)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = TG_OP_KEY, .class = TG_C_IPC, .source = ~0u };
	struct lomac_object o;
	u64 key = 0;

	/* a session keyring given to the parent is an act on it */
	if (keyctl_is(KEYCTL_SESSION_TO_PARENT)) {
		struct task_struct *me = bpf_get_current_task_btf();
		struct task_struct *parent = bpf_task_from_pid(me->real_parent->pid);
		u8 level = policy.top;

		if (parent) {
			level = subject_label(parent).observes;
			bpf_task_release(parent);
		}
		n.object = level;
		return subject_level(s) < level ? deny(s, &n, -EPERM) : 0;
	}
	if (need != KEY_NEED_WRITE && need != KEY_NEED_SETATTR && !keyctl_is(KEYCTL_INVALIDATE))
		return 0;
	if (subject_level(s) >= policy.top)
		return 0;
	/*
	 * The first argument, whose type is opaque to the verifier; a reference is an
	 * address whose lowest bit says how it was come by.
	 */
	bpf_probe_read_kernel(&key, sizeof(key), ctx);
	key &= ~1ull;
	if (key_is_own(key, cred->fsuid.val))
		return 0;
	count_query(TG_C_IPC);
	o = kernel_object(key);
	if (lomac_modify(lomac_subject_modifying(s), o, policy.top))
		return 0;
	n.object = o.level;
	return deny(s, &n, -EPERM);
}

#endif
