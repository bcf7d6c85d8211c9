/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: System V IPC. selinux_msg_*(), selinux_shm_*(), selinux_sem_*(). */
#ifndef TIDEGATE_TE_IPC_H
#define TIDEGATE_TE_IPC_H

#include "te/verdict.h"

struct te_ipc {
	u64 sid;
	u32 class;
	u32 pad;
};

/* Objects and messages that governed tasks made, by their addresses. Without, their makers are not governed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, u64);
	__type(value, struct te_ipc);
} te_ipcs SEC(".maps");

static __always_inline u64 te_ipc_sid(u64 at)
{
	struct te_ipc *known = bpf_map_lookup_elem(&te_ipcs, &at);

	return known ? known->sid : TE_UNGOVERNED;
}

/* Labels what is at an address. */
static __always_inline int te_ipc_label(u64 at, u64 sid, u32 class)
{
	struct te_ipc fresh = { .sid = sid, .class = class };

	return bpf_map_update_elem(&te_ipcs, &at, &fresh, BPF_ANY) ? -ENOMEM : 0;
}

/* What was there is no more: another may come to be at its address. */
static __always_inline int te_ipc_forget(u64 at)
{
	bpf_map_delete_elem(&te_ipcs, &at);
	return 0;
}

static __always_inline int te_ipc_asked(u64 at, u32 class, u32 request)
{
	struct tg_note n = { .op = TG_OP_IPC, .class = TG_C_IPC };
	struct te_who who = te_me();

	return who.subject ? te_avc_has_perm(who.sid, te_ipc_sid(at), class, request, &n) : 0;
}

static __always_inline int te_ipc_made(u64 at, u32 class, u32 request)
{
	struct tg_note n = { .op = TG_OP_IPC, .class = TG_C_IPC };
	struct te_who who = te_me();
	int err;

	if (!who.subject)
		return 0;
	err = te_avc_has_perm(who.sid, who.sid, class, request, &n);
	return err ? err : te_ipc_label(at, who.sid, class);
}

/* What the whole system's IPC is like: IPC_INFO, MSG_INFO, SEM_INFO, SHM_INFO. */
static __always_inline int te_ipc_info(void)
{
	struct tg_note n = { .op = TG_OP_IPC, .class = TG_C_IPC };
	struct te_who who = te_me();

	return who.subject ? te_avc_has_perm(who.sid, te_initial_sid(TE_SID_KERNEL),
					     SECCLASS_SYSTEM, SYSTEM__IPC_INFO, &n) :
			     0;
}

/* What IPC_* say alike of each class; 0: something else. */
static __always_inline u32 te_ipc_request(int cmd)
{
	switch (cmd) {
	case IPC_RMID:
		return IPC__DESTROY;
	case IPC_SET:
		return IPC__SETATTR;
	case IPC_STAT:
		return IPC__GETATTR | IPC__ASSOCIATE;
	}
	return 0;
}

SEC("lsm/ipc_permission")
int BPF_PROG(te_ipc_permission, struct kern_ipc_perm *perm, short flag)
{
	struct tg_note n = { .op = TG_OP_IPC, .class = TG_C_IPC };
	struct te_who who = te_me();
	u64 at = address(perm);
	struct te_ipc *known;
	u32 request = 0;

	if (!who.subject)
		return 0;
	known = bpf_map_lookup_elem(&te_ipcs, &at);
	if (flag & 0444)
		request |= IPC__UNIX_READ;
	if (flag & 0222)
		request |= IPC__UNIX_WRITE;
	if (!request)
		return 0;
	return te_avc_has_perm(who.sid, known ? known->sid : TE_UNGOVERNED,
			       known ? known->class : SECCLASS_IPC, request, &n);
}

SEC("lsm/msg_queue_alloc_security")
int BPF_PROG(te_msg_queue_alloc, struct kern_ipc_perm *q)
{
	return te_ipc_made(address(q), SECCLASS_MSGQ, MSGQ__CREATE);
}

SEC("lsm/msg_queue_free_security")
int BPF_PROG(te_msg_queue_free, struct kern_ipc_perm *q)
{
	return te_ipc_forget(address(q));
}

SEC("lsm/msg_queue_associate")
int BPF_PROG(te_msg_queue_associate, struct kern_ipc_perm *q)
{
	return te_ipc_asked(address(q), SECCLASS_MSGQ, MSGQ__ASSOCIATE);
}

SEC("lsm/msg_queue_msgctl")
int BPF_PROG(te_msg_queue_msgctl, struct kern_ipc_perm *q, int cmd)
{
	u32 request = te_ipc_request(cmd);

	/* MSG_INFO; MSG_STAT, MSG_STAT_ANY */
	if (cmd == IPC_INFO || cmd == 12)
		return te_ipc_info();
	if (cmd == 11 || cmd == 13)
		request = MSGQ__GETATTR | MSGQ__ASSOCIATE;
	return request ? te_ipc_asked(address(q), SECCLASS_MSGQ, request) : 0;
}

SEC("lsm/msg_queue_msgsnd")
int BPF_PROG(te_msg_queue_msgsnd, struct kern_ipc_perm *q, struct msg_msg *msg)
{
	struct tg_note n = { .op = TG_OP_IPC, .class = TG_C_IPC };
	struct te_who who = te_me();
	struct te_made made = { .class = SECCLASS_MSG };
	struct te_ipc fresh = { .class = SECCLASS_MSG };
	u64 at = address(msg);
	int err;

	if (!who.subject)
		return 0;
	made.source = who.sid;
	made.target = te_ipc_sid(address(q));
	fresh.sid = te_new_label(TE_TRANSITION, &made);
	if (!fresh.sid)
		return -EACCES;
	err = te_avc_has_perm(who.sid, made.target, SECCLASS_MSGQ, MSGQ__WRITE, &n);
	if (!err)
		err = te_avc_has_perm(who.sid, fresh.sid, SECCLASS_MSG, MSG__SEND, &n);
	if (!err)
		err = te_avc_has_perm(fresh.sid, made.target, SECCLASS_MSGQ, MSGQ__ENQUEUE, &n);
	if (err)
		return err;
	return bpf_map_update_elem(&te_ipcs, &at, &fresh, BPF_ANY) ? -ENOMEM : 0;
}

SEC("lsm/msg_queue_msgrcv")
int BPF_PROG(te_msg_queue_msgrcv, struct kern_ipc_perm *q, struct msg_msg *msg,
	     struct task_struct *target)
{
	struct tg_note n = { .op = TG_OP_IPC, .class = TG_C_IPC };
	u64 sid = te_sid_of(target), at = address(msg);
	int err;

	if (!sid)
		return 0;
	err = te_avc_has_perm(sid, te_ipc_sid(address(q)), SECCLASS_MSGQ, MSGQ__READ, &n);
	return err ? err : te_avc_has_perm(sid, te_ipc_sid(at), SECCLASS_MSG, MSG__RECEIVE, &n);
}

SEC("lsm/msg_msg_free_security")
int BPF_PROG(te_msg_msg_free, struct msg_msg *msg)
{
	return te_ipc_forget(address(msg));
}

SEC("lsm/shm_alloc_security")
int BPF_PROG(te_shm_alloc, struct kern_ipc_perm *shm)
{
	return te_ipc_made(address(shm), SECCLASS_SHM, SHM__CREATE);
}

SEC("lsm/shm_free_security")
int BPF_PROG(te_shm_free, struct kern_ipc_perm *shm)
{
	return te_ipc_forget(address(shm));
}

SEC("lsm/shm_associate")
int BPF_PROG(te_shm_associate, struct kern_ipc_perm *shm)
{
	return te_ipc_asked(address(shm), SECCLASS_SHM, SHM__ASSOCIATE);
}

SEC("lsm/shm_shmctl")
int BPF_PROG(te_shm_shmctl, struct kern_ipc_perm *shm, int cmd)
{
	u32 request = te_ipc_request(cmd);

	/* SHM_INFO; SHM_LOCK, SHM_UNLOCK; SHM_STAT, SHM_STAT_ANY */
	if (cmd == IPC_INFO || cmd == 14)
		return te_ipc_info();
	if (cmd == 11 || cmd == 12)
		request = SHM__LOCK;
	else if (cmd == 13 || cmd == 15)
		request = SHM__GETATTR | SHM__ASSOCIATE;
	return request ? te_ipc_asked(address(shm), SECCLASS_SHM, request) : 0;
}

SEC("lsm/shm_shmat")
int BPF_PROG(te_shm_shmat, struct kern_ipc_perm *shm, char *at, int flags)
{
	return te_ipc_asked(address(shm), SECCLASS_SHM,
			    flags & SHM_RDONLY ? SHM__READ : SHM__READ | SHM__WRITE);
}

SEC("lsm/sem_alloc_security")
int BPF_PROG(te_sem_alloc, struct kern_ipc_perm *sem)
{
	return te_ipc_made(address(sem), SECCLASS_SEM, SEM__CREATE);
}

SEC("lsm/sem_free_security")
int BPF_PROG(te_sem_free, struct kern_ipc_perm *sem)
{
	return te_ipc_forget(address(sem));
}

SEC("lsm/sem_associate")
int BPF_PROG(te_sem_associate, struct kern_ipc_perm *sem)
{
	return te_ipc_asked(address(sem), SECCLASS_SEM, SEM__ASSOCIATE);
}

SEC("lsm/sem_semctl")
int BPF_PROG(te_sem_semctl, struct kern_ipc_perm *sem, int cmd)
{
	u32 request = te_ipc_request(cmd);

	switch (cmd) {
	case IPC_INFO:
	case 19: /* SEM_INFO */
		return te_ipc_info();
	case 11: /* GETPID */
	case 14: /* GETNCNT */
	case 15: /* GETZCNT */
		request = SEM__GETATTR;
		break;
	case 12: /* GETVAL */
	case 13: /* GETALL */
		request = SEM__READ;
		break;
	case 16: /* SETVAL */
	case 17: /* SETALL */
		request = SEM__WRITE;
		break;
	case 18: /* SEM_STAT */
	case 20: /* SEM_STAT_ANY */
		request = SEM__GETATTR | SEM__ASSOCIATE;
		break;
	}
	return request ? te_ipc_asked(address(sem), SECCLASS_SEM, request) : 0;
}

SEC("lsm/sem_semop")
int BPF_PROG(te_sem_semop, struct kern_ipc_perm *sem, struct sembuf *ops, unsigned int count,
	     int alter)
{
	return te_ipc_asked(address(sem), SECCLASS_SEM, alter ? SEM__READ | SEM__WRITE : SEM__READ);
}

#endif
