/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: keys, at their creator's level. */
#ifndef TIDEGATE_LOMAC_KEY_H
#define TIDEGATE_LOMAC_KEY_H

#include "lib/arch.h"
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

/* Is it this operation of keyctl(2)? */
static __always_inline bool keyctl_is(u32 operation)
{
	struct pt_regs *regs = call_regs(bpf_get_current_task_btf());

	return (CALL_NUMBER(regs) == NR_keyctl && (u32)CALL_FIRST(regs) == operation) ||
	       (CALL_NUMBER(regs) == NR32_keyctl && (u32)CALL32_FIRST(regs) == operation);
}

/*
 * Is it the caller's own, and the caller not root? The kernel goes by the number that it has for
 * files, and by what it possesses, as by a session's key ring that it inherited: others' too.
 */
static __always_inline bool key_is_own(u64 key, u32 fsuid)
{
	return fsuid && CAST(struct key, key)->uid.val == fsuid;
}

/* What a key ring tells are names. */
static __always_inline bool key_is_ring(u64 key)
{
	char name[8] = {};

	bpf_probe_read_kernel_str(name, sizeof(name), CAST(struct key, key)->type->name);
	return !__builtin_memcmp(name, "keyring", 8);
}

/*
 * What is in a key is read, or the key is changed. A key that one possesses is read without being asked about, even where its
 * permissions do not say so, once it has been found; of that the kernel asks. EACCES it would take for such permissions.
 */
static __noinline int key_access(u64 key, bool reads)
{
	int err = lomac_ipc_access(key, reads && !key_is_ring(key), !reads, TG_OP_KEY);

	return err == -EACCES ? -EPERM : err;
}

/*
 * A user reaches his own keys by ordinary permission, at every level. Of those of root, whoever
 * reaches them, a subject below the top changes what was made at its level or below, and one that
 * reads what was made below its level falls.
 */
SEC("lsm/key_permission")
int BPF_PROG(lomac_key_permission, void *key_ref, const struct cred *cred, int need)
{
	u64 key = 0;
	bool reads;

	/* the kernel asks again later which task is the parent, when it may be another */
	if (keyctl_is(KEYCTL_SESSION_TO_PARENT))
		return top_only(TG_OP_KEY);
	reads = (need == KEY_NEED_READ || need == KEY_NEED_SEARCH) && keyctl_is(KEYCTL_READ);
	if (!reads && need != KEY_NEED_WRITE && need != KEY_NEED_SETATTR &&
	    !keyctl_is(KEYCTL_INVALIDATE))
		return 0;
	if (!reads && subject_level(subject_current()) >= policy.top)
		return 0;
	/*
	 * The first argument, whose type is opaque to the verifier; a reference is an
	 * address whose lowest bit says how it was come by.
	 */
	bpf_probe_read_kernel(&key, sizeof(key), ctx);
	key &= ~1ull;
	if (key_is_own(key, cred->fsuid.val))
		return 0;
	return verdict_of(key_access(key, reads));
}

#endif
