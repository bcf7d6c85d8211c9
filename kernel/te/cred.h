/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Credentials, by which the kernel knows who opened a file, and whose limits are asked about: the SIDs of those that
 * governed tasks have. selinux_cred_prepare() and its like. A task's own SID is in its slot (subject.h); this is for what
 * it leaves behind, so nothing is written when a file is opened.
 */
#ifndef TIDEGATE_TE_CRED_H
#define TIDEGATE_TE_CRED_H

#include "te/verdict.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, u64);
	__type(value, u64);
} te_creds SEC(".maps");

static __always_inline u64 te_cred_sid(u64 cred)
{
	u64 *known = bpf_map_lookup_elem(&te_creds, &cred);

	return known ? *known : TE_UNGOVERNED;
}

__noinline int te_cred_give(u64 cred, u64 sid)
{
	return bpf_map_update_elem(&te_creds, &cred, &sid, BPF_ANY) ? -ENOMEM : 0;
}

/* What new ones are made of; at their address may have been others, whose end nobody has told of. */
static __always_inline int te_cred_copy(u64 new, u64 old)
{
	u64 sid = te_cred_sid(old);

	if (sid)
		return te_cred_give(new, sid) ? -ENOMEM : 0;
	bpf_map_delete_elem(&te_creds, &new);
	return 0;
}

SEC("lsm/cred_prepare")
int BPF_PROG(te_cred_prepare, struct cred *new, const struct cred *old)
{
	return te_cred_copy(address(new), address(old));
}

SEC("lsm/cred_transfer")
int BPF_PROG(te_cred_transfer, struct cred *new, const struct cred *old)
{
	if (te_cred_copy(address(new), address(old)))
		bpf_send_signal(9); /* nothing can be refused here */
	return 0;
}

/* Called only where some other security module keeps something in credentials: security_cred_free(). */
SEC("lsm/cred_free")
int BPF_PROG(te_cred_free, struct cred *cred)
{
	u64 at = address(cred);

	bpf_map_delete_elem(&te_creds, &at);
	return 0;
}

/*
 * The SID of another subject that has opened a file; TE_UNGOVERNED: none has, or a task that is not
 * governed, which hands over what it likes.
 */
static __always_inline u64 te_opener(u64 file, u64 own)
{
	u64 sid = te_cred_sid(address(CAST(struct file, file)->f_cred));

	return sid == own ? TE_UNGOVERNED : sid;
}

/* May the current task use what another has opened? */
static __always_inline int te_fd_has_perm(u64 file, struct tg_note *n)
{
	struct te_who who = te_me();
	u64 opener = who.subject ? te_opener(file, who.sid) : TE_UNGOVERNED;

	return opener ? te_avc_has_perm(who.sid, opener, SECCLASS_FD, FD__USE, n) : 0;
}

#endif
