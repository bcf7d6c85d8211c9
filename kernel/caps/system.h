/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Operations that no capability file allows: what belongs to the whole machine, keys, System V IPC, mounts and rings. */
#ifndef TIDEGATE_CAPS_SYSTEM_H
#define TIDEGATE_CAPS_SYSTEM_H

#include "caps/ask.h"

#define CAPS_DENY(hook, op, class)                                         \
	SEC("lsm/" #hook)                                                  \
	int caps_##hook(void *ctx)                                         \
	{                                                                  \
		return caps_me() ? caps_deny(CAPS_NOBODYS, op, class) : 0; \
	}

CAPS_DENY(bpf, TG_OP_BPF, TG_C_SYSTEM)
CAPS_DENY(perf_event_open, TG_OP_BPF, TG_C_SYSTEM)
CAPS_DENY(syslog, TG_OP_SYSTEM, TG_C_SYSTEM)
CAPS_DENY(key_permission, TG_OP_KEY, TG_C_IPC)
CAPS_DENY(ipc_permission, TG_OP_IPC, TG_C_IPC)
CAPS_DENY(shm_alloc_security, TG_OP_IPC, TG_C_IPC)
CAPS_DENY(sem_alloc_security, TG_OP_IPC, TG_C_IPC)
CAPS_DENY(msg_queue_alloc_security, TG_OP_IPC, TG_C_IPC)
CAPS_DENY(shm_shmctl, TG_OP_IPC, TG_C_IPC)
CAPS_DENY(sem_semctl, TG_OP_IPC, TG_C_IPC)
CAPS_DENY(msg_queue_msgctl, TG_OP_IPC, TG_C_IPC)
CAPS_DENY(sb_mount, TG_OP_MOUNT, TG_C_SYSTEM)
CAPS_DENY(sb_umount, TG_OP_MOUNT, TG_C_SYSTEM)
CAPS_DENY(sb_remount, TG_OP_MOUNT, TG_C_SYSTEM)
CAPS_DENY(sb_pivotroot, TG_OP_MOUNT, TG_C_SYSTEM)
CAPS_DENY(move_mount, TG_OP_MOUNT, TG_C_SYSTEM)
CAPS_DENY(uring_override_creds, TG_OP_SYSTEM, TG_C_SYSTEM)
CAPS_DENY(uring_sqpoll, TG_OP_SYSTEM, TG_C_SYSTEM)

/* Rings, whose workers never leave the kernel: what was taken back might still be used by what is under way there. */
SEC("lsm/inode_init_security_anon")
int BPF_PROG(caps_inode_init_security_anon, struct inode *inode, const struct qstr *name)
{
	u64 text = read_kernel_u64(address(CAST(struct qstr, address(name))->name));

	/* "[io_urin", "[userfau" */
	if (!caps_me() || (text != 0x6e6972755f6f695bull && text != 0x756166726573755bull))
		return 0;
	return caps_deny(CAPS_NOBODYS, TG_OP_SYSTEM, TG_C_SYSTEM);
}

#endif
