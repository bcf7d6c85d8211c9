/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager: System V IPC, at its creator's level, and keys. */
#ifndef TIDEGATE_LOMAC_IPC_H
#define TIDEGATE_LOMAC_IPC_H

static __always_inline struct lomac_object kernel_object(u64 key)
{
	struct tg_charged *entry = bpf_map_lookup_elem(&kernel_objects, &key);
	struct lomac_object o = { .level = entry ? entry->level : policy.top, .known = true };

	return o;
}

static __always_inline void kernel_object_free(u64 key)
{
	struct tg_charged *entry = bpf_map_lookup_elem(&kernel_objects, &key);
	u32 at, payer;

	if (!entry)
		return;
	at = entry->at;
	payer = entry->payer;
	if (!bpf_map_delete_elem(&kernel_objects, &key))
		share_give(TG_T_OBJECTS, at, payer);
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
	if (!bpf_map_update_elem(&kernel_objects, &key, &fresh, BPF_NOEXIST))
		return 0;
	share_give(TG_T_OBJECTS, fresh.level, fresh.payer);
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

static __always_inline int ipc_make(u64 perm)
{
	int err = kernel_object_make(perm, false);

	return err == -ENOSPC ? objects_full() : err;
}

static __always_inline int use(u64 key, bool reads, bool writes, u8 op)
{
	struct tg_subject *s = subject_current();
	struct tg_note n = { .op = op, .class = TG_C_IPC, .source = ~0u };
	struct lomac_object o = kernel_object(key);
	u8 to;

	count_query(TG_C_IPC);
	n.object = o.level;
	if (reads) {
		to = lomac_observe(observer(s), o);
		if (to < subject_observes(s)) {
			int err = fall(s, to, &n, false);

			if (err)
				return err;
			s = subject_current();
		}
	}
	if (writes && !lomac_modify(subject(s), o, policy.top))
		return deny(s, &n, -EPERM);
	return 0;
}

SEC("lsm/shm_alloc_security")
int BPF_PROG(hook_shm_alloc, struct kern_ipc_perm *perm)
{
	return ipc_make(address(perm));
}

SEC("lsm/sem_alloc_security")
int BPF_PROG(hook_sem_alloc, struct kern_ipc_perm *perm)
{
	return ipc_make(address(perm));
}

SEC("lsm/msg_queue_alloc_security")
int BPF_PROG(hook_msg_alloc, struct kern_ipc_perm *perm)
{
	return ipc_make(address(perm));
}

SEC("lsm/shm_free_security")
int BPF_PROG(hook_shm_free, struct kern_ipc_perm *perm)
{
	kernel_object_free(address(perm));
	return 0;
}

SEC("lsm/sem_free_security")
int BPF_PROG(hook_sem_free, struct kern_ipc_perm *perm)
{
	kernel_object_free(address(perm));
	return 0;
}

SEC("lsm/msg_queue_free_security")
int BPF_PROG(hook_msg_free, struct kern_ipc_perm *perm)
{
	kernel_object_free(address(perm));
	return 0;
}

/* shmat, semop, msgsnd, msgrcv and the *get calls all ask here: msgrcv to read. */
SEC("lsm/ipc_permission")
int BPF_PROG(hook_ipc_permission, struct kern_ipc_perm *perm, short flag)
{
	return use(address(perm), flag & 0444, flag & 0222, TG_OP_IPC);
}

#define SEARCH_NUMBER 5 /* MSG_COPY */

/*
 * A message that is received is gone, so who takes one changes the queue; a copy (MSG_COPY) leaves it there. It is asked of
 * each message: those that may not be taken are passed over. Who waits for one is asked about by who sends it. Of a call the
 * record is that of the queue's first message.
 */
SEC("lsm/msg_queue_msgrcv")
int BPF_PROG(hook_msg_queue_msgrcv, struct kern_ipc_perm *perm, struct msg_msg *msg,
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

#define IPC_SET 1
#define SHM_LOCK 11
#define SHM_UNLOCK 12
#define SETVAL 16
#define SETALL 17

static __always_inline int ipc_control(struct kern_ipc_perm *perm, bool changes)
{
	return perm && changes ? use(address(perm), false, true, TG_OP_IPC) : 0;
}

SEC("lsm/shm_shmctl")
int BPF_PROG(hook_shm_shmctl, struct kern_ipc_perm *perm, int cmd)
{
	return ipc_control(perm, cmd <= IPC_SET || cmd == SHM_LOCK || cmd == SHM_UNLOCK);
}

SEC("lsm/sem_semctl")
int BPF_PROG(hook_sem_semctl, struct kern_ipc_perm *perm, int cmd)
{
	return ipc_control(perm, cmd <= IPC_SET || cmd == SETVAL || cmd == SETALL);
}

SEC("lsm/msg_queue_msgctl")
int BPF_PROG(hook_msg_queue_msgctl, struct kern_ipc_perm *perm, int cmd)
{
	return ipc_control(perm, cmd <= IPC_SET);
}

#define KEY_NEED_WRITE 3
#define KEY_NEED_SETATTR 6

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
int BPF_PROG(hook_key_alloc, void *key)
{
	int err = kernel_object_make(address(key), true);

	/* the keys that its user had may be gone */
	if (err == -ENOSPC) {
		bpf_for_each_map_elem(&kernel_objects, key_gone, NULL, 0);
		err = kernel_object_make(address(key), true);
	}
	return err == -ENOSPC ? objects_full() : err;
}

#define KEYCTL_SESSION_TO_PARENT 18
#define KEYCTL_INVALIDATE 21

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
int BPF_PROG(hook_key_permission, void *key_ref, const struct cred *cred, int need)
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
	if (lomac_modify(subject(s), o, policy.top))
		return 0;
	n.object = o.level;
	return deny(s, &n, -EPERM);
}

#endif
