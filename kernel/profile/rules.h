/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AppArmor's profiles: the walk of an automaton, and what becomes of a request. Pure
 * functions of an image (abi/profile_image.h), the same source in the kernel and in the tests
 * (tests/core), where ARENA(type, offset) is a place in the image.
 */
#ifndef TIDEGATE_PROFILE_RULES_H
#define TIDEGATE_PROFILE_RULES_H

#include "abi/profile_image.h"
#include "abi/record.h"

/* Classes of rules: AA_CLASS_* of security/apparmor/include/apparmor.h. */
enum profile_class {
	PROFILE_CLASS_MOUNT = 7,
	PROFILE_CLASS_PTRACE = 9,
	PROFILE_CLASS_SIGNAL = 10,
	PROFILE_CLASS_NET = 14,
	PROFILE_CLASS_NS = 21,
};

/* Permissions: AA_MAY_* of security/apparmor/include/perms.h. */
#define MAY_EXEC_ (1u << 0)
#define MAY_WRITE_ (1u << 1)
#define MAY_READ_ (1u << 2)
#define MAY_APPEND_ (1u << 3)
#define MAY_CREATE_ (1u << 4)
#define MAY_DELETE_ (1u << 5)
#define MAY_CONNECT_ (1u << 6)
#define MAY_SETATTR_ (1u << 8)
#define MAY_GETATTR_ (1u << 9)
#define MAY_CHMOD_ (1u << 12)
#define MAY_CHOWN_ (1u << 13)
#define MAY_LOCK_ (1u << 15)
#define LINK_SUBSET_ (1u << 15)
#define MMAP_EXEC_ (1u << 16)
#define MAY_LINK_ (1u << 18)
#define MAY_ACCEPT_ (1u << 20)
#define MAY_BIND_ (1u << 21)
#define MAY_LISTEN_ (1u << 22)
#define MAY_SETOPT_ (1u << 24)
#define MAY_GETOPT_ (1u << 25)
#define MAY_ONEXEC_ (1u << 29)
#define MAY_CHANGE_PROFILE_ (1u << 30)
#define MAY_CHANGE_HAT_ (1u << 31)

/* Those of mounts, and of user namespaces. */
#define MAY_PIVOTROOT_ (1u << 0)
#define MAY_MOUNT_ (1u << 1)
#define MAY_UMOUNT_ (1u << 2)
#define MOUNT_DATA_ (1u << 6) /* the options that the filesystem's type has decide */
#define USERNS_CREATE_ (1u << 3)

/* Where an execution leads: crates/bundle/src/profile/perms.rs, Exec. */
#define EXEC_INDEX 0x00ffffffu
#define EXEC_TYPE 0x0c000000u
#define EXEC_NAME 0x04000000u
#define EXEC_TABLE 0x08000000u
#define EXEC_UNSAFE 0x10000000u
#define EXEC_CHILD 0x20000000u
#define EXEC_INHERIT 0x40000000u
#define EXEC_UNCONFINED 0x80000000u

/* The state after a byte. */
static __always_inline u32 profile_step(u32 table, u32 state, u8 byte)
{
	ARENA(struct tg_table) *t = ARENA_PTR(struct tg_table, table);

	return ARENA_PTR(u16, t->next)[state * t->width + t->classes[byte]];
}

/* What a state allows; */
static __always_inline ARENA(struct tg_pair) * profile_pair(u32 table, u32 state)
{
	ARENA(struct tg_table) *t = ARENA_PTR(struct tg_table, table);

	return &ARENA_PTR(struct tg_pair, t->pairs)[ARENA_PTR(u16, t->accepts)[state]];
}

/* the owner, or others. */
static __always_inline ARENA(struct tg_perms) * profile_perms(u32 table, u32 state, bool owner)
{
	ARENA(struct tg_pair) *pair = profile_pair(table, state);

	return owner ? &pair->owner : &pair->other;
}

/* What becomes of a request. */
enum profile_verdict {
	PROFILE_ALLOWED,
	PROFILE_AUDITED,  /* and its rule asks for a record */
	PROFILE_COMPLAIN, /* recorded, and let through */
	PROFILE_QUIET,    /* refused without a record */
	PROFILE_REFUSED,
	PROFILE_KILLED, /* refused, and the process with it */
};

/*
 * aa_audit_file() and aa_check_perms() of security/apparmor. What a rule refuses quietly is
 * refused in complain mode, too.
 */
static __always_inline u32 profile_judge(u32 mode, bool audit_all, struct tg_perms perms,
					 u32 request)
{
	u32 denied = request & (~perms.allow | perms.deny);

	if (!denied)
		return audit_all || request & perms.audit ? PROFILE_AUDITED : PROFILE_ALLOWED;
	if (!(denied & ~perms.quiet) && !audit_all)
		return PROFILE_QUIET;
	if (mode == TG_MODE_COMPLAIN)
		return PROFILE_COMPLAIN;
	return mode == TG_MODE_KILL ? PROFILE_KILLED : PROFILE_REFUSED;
}

/* xindex_is_subset() of security/apparmor/file.c: a link's execution against its target's. */
static __always_inline bool profile_exec_subset(u32 link, u32 target)
{
	return (link & ~EXEC_UNSAFE) == (target & ~EXEC_UNSAFE) &&
	       (!(link & EXEC_UNSAFE) || target & EXEC_UNSAFE);
}

#endif
