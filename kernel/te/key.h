/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: keys. security/selinux/hooks.c. */
#ifndef TIDEGATE_TE_KEY_H
#define TIDEGATE_TE_KEY_H

#include "te/ipc.h"

/* Keys have their labels with IPC's objects, by their addresses. */
SEC("lsm/key_alloc")
int BPF_PROG(te_key_alloc, void *key)
{
	struct te_who who = te_me();

	/* no hook tells of a key's end: this may have been another's place */
	if (!who.subject)
		return te_ipc_forget(address(key));
	return te_ipc_label(address(key), who.subject->key_sid ? who.subject->key_sid : who.sid,
			    SECCLASS_KEY);
}

SEC("lsm/key_permission")
int BPF_PROG(te_key_permission, void *key_ref, const struct cred *cred, int need)
{
	struct tg_note n = { .op = TG_OP_KEY, .class = TG_C_IPC };
	struct te_who who = te_me();
	u64 key = 0;

	/* KEY_NEED_VIEW to KEY_NEED_SETATTR, in the order of the class's permissions */
	if (!who.subject || need < 1 || need > KEY_NEED_SETATTR)
		return 0;
	/* as in lomac/key.h */
	bpf_probe_read_kernel(&key, sizeof(key), ctx);
	return te_avc_has_perm(who.sid, te_ipc_sid(key & ~1ull), SECCLASS_KEY,
			       1u << ((need - 1) & 7), &n);
}

#endif
