/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: System V IPC, at its creator's level. */
#ifndef TIDEGATE_LOMAC_IPC_H
#define TIDEGATE_LOMAC_IPC_H

#include "lomac/check.h"

static __always_inline struct lomac_object kernel_object(u64 key)
{
	struct tg_charged *entry = bpf_map_lookup_elem(&kernel_objects, &key);
	struct lomac_object o = { .level = entry ? entry->level : policy.top, .known = true };

	return o;
}

static __always_inline void kernel_object_free(u64 key)
{
	struct tg_charged *entry = bpf_map_lookup_elem(&kernel_objects, &key);
	u32 at, payer, born;

	if (!entry)
		return;
	at = entry->at;
	payer = entry->payer;
	born = entry->born;
	if (bpf_map_delete_elem(&kernel_objects, &key))
		return;
	share_give(TG_T_OBJECTS, at, payer);
	if (!born)
		share_give(TG_T_SYSTEM_V, at, payer);
}

/*
 * An entry only for what a governed subject makes; no entry: the top level. What was at the address before has
 * gone. -ENOSPC: its user has had its share.
 */
static __always_inline int kernel_object_make(u64 key, bool is_key)
{
	struct tg_subject *s = subject_current();
	struct tg_charged fresh = { .level = subject_level(s), .at = subject_level(s) };

	kernel_object_free(key);
	if (!s || fresh.level == policy.top)
		return 0;
	fresh.payer = payer_current();
	fresh.born = is_key ? (u32)bpf_jiffies64() | 1 : 0;
	if (!share_take(TG_T_OBJECTS, fresh.level, fresh.payer, 0))
		return -ENOSPC;
	if (!is_key)
		share_take(TG_T_SYSTEM_V, fresh.level, fresh.payer, BUDGET_ALWAYS);
	if (!bpf_map_update_elem(&kernel_objects, &key, &fresh, BPF_NOEXIST))
		return 0;
	share_give(TG_T_OBJECTS, fresh.level, fresh.payer);
	if (!is_key)
		share_give(TG_T_SYSTEM_V, fresh.level, fresh.payer);
	return -ENOMEM;
}

/* An object that its user has no share of the table for. */
static __noinline int objects_full(void)
{
	struct tg_note n = {
		.op = TG_OP_IPC, .class = TG_C_IPC, .source = ~0u, .reason = TG_R_TABLE_FULL
	};

	return deny(subject_current(), &n, -ENOSPC);
}

enum ipc_kind { IPC_SEMAPHORES, IPC_QUEUE, IPC_SEGMENT };

#define SEM_MNI 3 /* of kernel.sem */

/*
 * Does the kernel's own table, which is all users' and levels', keep room for the others? A task at
 * the top may fill it. A user's objects of all three kinds are counted together.
 */
static __always_inline bool ipc_has_room(enum ipc_kind kind)
{
	struct ipc_namespace *space = UNTRUSTED(bpf_get_current_task_btf())->nsproxy->ipc_ns;
	u32 room = kind == IPC_SEMAPHORES ? space->sem_ctls[SEM_MNI] :
		   kind == IPC_QUEUE      ? space->msg_ctlmni :
					    space->shm_ctlmni;
	/* by constants, of which alone the kernel's own places are known when it loads this */
	u32 used = kind == IPC_SEMAPHORES ? space->ids[IPC_SEMAPHORES].in_use :
		   kind == IPC_QUEUE      ? space->ids[IPC_QUEUE].in_use :
					    space->ids[IPC_SEGMENT].in_use;
	u32 level = level_modifies(), own;

	if (level >= policy.top)
		return true;
	own = READ_ONCE(*share_of(TG_T_SYSTEM_V, level, payer_current()));
	return budget_admits(level, policy.top, room, used, own, 1, 0);
}

static __always_inline int ipc_make(u64 perm, enum ipc_kind kind)
{
	int err = ipc_has_room(kind) ? kernel_object_make(perm, false) : -ENOSPC;

	return err == -ENOSPC ? objects_full() : err;
}

static __always_inline int lomac_ipc_access(u64 key, bool reads, bool writes, u8 op)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = op, .class = TG_C_IPC, .source = ~0u };
	struct lomac_object o = kernel_object(key);
	u8 to;

	count_query(TG_C_IPC);
	n.object = o.level;
	if (reads) {
		to = lomac_observe(lomac_subject_observing(s), o);
		if (to < subject_observes(s)) {
			int err = fall(s, to, &n, false);

			if (err)
				return err;
			s = subject_current();
		}
	}
	if (writes && !lomac_modify(lomac_subject_modifying(s), o, policy.top))
		return deny(s, &n, -EPERM);
	return 0;
}

SEC("lsm/shm_alloc_security")
int BPF_PROG(lomac_shm_alloc, struct kern_ipc_perm *perm)
{
	return ipc_make(address(perm), IPC_SEGMENT);
}

SEC("lsm/sem_alloc_security")
int BPF_PROG(lomac_sem_alloc, struct kern_ipc_perm *perm)
{
	return ipc_make(address(perm), IPC_SEMAPHORES);
}

SEC("lsm/msg_queue_alloc_security")
int BPF_PROG(lomac_msg_alloc, struct kern_ipc_perm *perm)
{
	return ipc_make(address(perm), IPC_QUEUE);
}

SEC("lsm/shm_free_security")
int BPF_PROG(lomac_shm_free, struct kern_ipc_perm *perm)
{
	kernel_object_free(address(perm));
	return 0;
}

SEC("lsm/sem_free_security")
int BPF_PROG(lomac_sem_free, struct kern_ipc_perm *perm)
{
	kernel_object_free(address(perm));
	return 0;
}

SEC("lsm/msg_queue_free_security")
int BPF_PROG(lomac_msg_free, struct kern_ipc_perm *perm)
{
	kernel_object_free(address(perm));
	return 0;
}

/* shmat, semop, msgsnd, msgrcv and the *get calls all ask here: msgrcv to read. */
SEC("lsm/ipc_permission")
int BPF_PROG(lomac_ipc_permission, struct kern_ipc_perm *perm, short flag)
{
	return lomac_ipc_access(address(perm), flag & 0444, flag & 0222, TG_OP_IPC);
}

#define SEARCH_NUMBER 5 /* MSG_COPY */

/*
 * A message that is received is gone, so a task that takes one changes the queue; a copy (MSG_COPY)
 * leaves it there. It is asked of each message: those that may not be taken are passed over. A
 * receiver that waits for one is asked about in the sender's call. Of a call the record is that of
 * the queue's first message.
 */
SEC("lsm/msg_queue_msgrcv")
int BPF_PROG(lomac_msg_queue_msgrcv, struct kern_ipc_perm *perm, struct msg_msg *msg,
	     struct task_struct *target, long type, int mode)
{
	struct tg_note n = { .op = TG_OP_IPC, .class = TG_C_IPC, .source = ~0u };
	struct lomac_object o = kernel_object(address(perm));
	struct tg_label label = subject_label(target);
	struct lomac_subject who = { .level = label.level };

	if (mode == SEARCH_NUMBER || lomac_modify(who, o, policy.top))
		return 0;
	if (address(target) != address(bpf_get_current_task_btf()) ||
	    address(CAST(struct msg_queue, address(perm))->q_messages.next) != address(msg))
		return policy.permissive || label.attrs & TG_PERMISSIVE ? 0 : -EPERM;
	n.object = o.level;
	return deny(subject_current(), &n, -EPERM);
}

static __always_inline int ipc_control(struct kern_ipc_perm *perm, bool changes)
{
	return perm && changes ? lomac_ipc_access(address(perm), false, true, TG_OP_IPC) : 0;
}

SEC("lsm/shm_shmctl")
int BPF_PROG(lomac_shm_shmctl, struct kern_ipc_perm *perm, int cmd)
{
	return ipc_control(perm, cmd <= IPC_SET || cmd == SHM_LOCK || cmd == SHM_UNLOCK);
}

SEC("lsm/sem_semctl")
int BPF_PROG(lomac_sem_semctl, struct kern_ipc_perm *perm, int cmd)
{
	return ipc_control(perm, cmd <= IPC_SET || cmd == SETVAL || cmd == SETALL);
}

SEC("lsm/msg_queue_msgctl")
int BPF_PROG(lomac_msg_queue_msgctl, struct kern_ipc_perm *perm, int cmd)
{
	return ipc_control(perm, cmd <= IPC_SET);
}

#endif
