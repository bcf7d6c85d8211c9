/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager: the system itself. What changes the kernel or the view that all
 * processes share belongs to the top level: mounts, modules, kexec, clocks, BPF,
 * raw I/O, reboot. This is also how the monitor protects itself: the maps,
 * links and pins it stands on are reached only through bpf() and bpffs.
 */
#ifndef TIDEGATE_HOOK_SYSTEM_H
#define TIDEGATE_HOOK_SYSTEM_H

/* Mounting in a mount namespace that an unprivileged user made changes nobody else's view. */
static __always_inline int mounts(void)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct nsproxy *ns = me->nsproxy;

	if (ns && ns->mnt_ns->user_ns->level > 0 && me->cred->user_ns->level > 0)
		return 0;
	return top_only(TG_OP_MOUNT);
}

SEC("lsm.s/sb_mount")
int BPF_PROG(hook_sb_mount, const char *dev, const struct path *path)
{
	return mounts();
}

SEC("lsm.s/sb_umount")
int BPF_PROG(hook_sb_umount, struct vfsmount *mnt)
{
	return mounts();
}

SEC("lsm/sb_pivotroot")
int BPF_PROG(hook_sb_pivotroot, const struct path *old_path, const struct path *new_path)
{
	return mounts();
}

SEC("lsm/move_mount")
int BPF_PROG(hook_move_mount, const struct path *from, const struct path *to)
{
	return mounts();
}

SEC("lsm/sb_remount")
int BPF_PROG(hook_sb_remount, struct super_block *sb)
{
	return mounts();
}

SEC("lsm/kernel_load_data")
int BPF_PROG(hook_kernel_load_data, int id)
{
	return top_only(TG_OP_MODULE);
}

SEC("lsm.s/kernel_read_file")
int BPF_PROG(hook_kernel_read_file, struct file *file, int id)
{
	return top_only(TG_OP_MODULE);
}

SEC("lsm.s/bpf")
int BPF_PROG(hook_bpf, int cmd)
{
	return top_only(TG_OP_BPF);
}

SEC("lsm/settime")
int BPF_PROG(hook_settime, const struct timespec64 *ts)
{
	return top_only(TG_OP_SYSTEM);
}

SEC("lsm/quotactl")
int BPF_PROG(hook_quotactl, int cmds)
{
	return top_only(TG_OP_SYSTEM);
}

#define PR_SET_MM 35
#define PR_SET_MM_EXE_FILE 13
#define PR_SET_MM_MAP 14 /* with a file, or without: it is in the caller's memory, and may change */

/* Which program it is, is no process's to say: records name it, and the next start trusts by it. */
SEC("lsm/task_prctl")
int BPF_PROG(hook_task_prctl, int option, unsigned long what)
{
	if (option != PR_SET_MM || (what != PR_SET_MM_EXE_FILE && what != PR_SET_MM_MAP))
		return 0;
	return top_only(TG_OP_SYSTEM);
}

#define PERF_SECURITY_TRACEPOINT 3 /* probes, too */

SEC("lsm/perf_event_open")
int BPF_PROG(hook_perf_event_open, struct perf_event_attr *attr, int type)
{
	return type == PERF_SECURITY_TRACEPOINT ? top_only(TG_OP_BPF) : 0;
}

#define CAP_SYS_MODULE 16
#define CAP_SYS_RAWIO 17
#define CAP_SYS_PACCT 20
#define CAP_SYS_BOOT 22
#define CAP_SYS_ADMIN 21
#define CAP_SYS_TIME 25
#define CAP_SYS_TTY_CONFIG 26
#define CAP_AUDIT_CONTROL 30
#define CAP_SYSLOG 34
#define CAP_MAC_OVERRIDE 32
#define CAP_MAC_ADMIN 33
#define CAP_PERFMON 38
#define CAP_BPF 39

/* Calls that no hook tells of, known by their number (x86-64, and i386 where it swaps). */
static __always_inline int admin_call(void)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(me);

	if (me->flags & PF_IO_WORKER)
		return top_only(TG_OP_SYSTEM);
	switch (regs->orig_ax) {
	case 167: /* swapon */
	case 168: /* swapoff */
	/* write, writev, sendto, sendmsg, sendmmsg, io_uring_enter: devices set up by netlink, */
	case 1:
	case 20: /* and messages in another process's name */
	case 44:
	case 46:
	case 307:
	case 426:
	case 102: /* socketcall, sendmmsg, sendmsg of i386; getuid asks for none */
	case 345:
	case 370:
	case 300: /* fanotify_init: to hold up what others open */
	case 338: /* the same of i386 */
	case 170: /* sethostname */
	case 171: /* setdomainname */
	case 74:  /* sethostname of i386; fsync of x86-64 asks for none */
	case 121: /* setdomainname of i386; getpgid asks for none */
	case 87:  /* swapon of i386; unlink of x86-64 asks for no CAP_SYS_ADMIN */
	case 115: /* swapoff of i386; getgroups asks for none */
		return top_only(TG_OP_SYSTEM);
	case 298: /* perf_event_open, as far as it asks for privilege */
	case 336: /* the same of i386 */
		return top_only(TG_OP_BPF);
	case 442: /* mount_setattr */
	case 467: /* open_tree_attr */
		return mounts();
	}
	return 0;
}

/* Capabilities over the kernel itself, where the initial user namespace is asked for them. */
SEC("lsm/capable")
int BPF_PROG(hook_capable, const struct cred *cred, struct user_namespace *ns, int cap,
	     unsigned int opts)
{
	if (ns->level)
		return 0;
	switch (cap) {
	case CAP_SYS_ADMIN:
		return admin_call();
	case CAP_SYS_MODULE:
	case CAP_SYS_RAWIO:
	case CAP_SYS_PACCT:
	case CAP_SYS_BOOT:
	case CAP_SYS_TIME:
	case CAP_SYS_TTY_CONFIG: /* the console's keymap is everybody's */
	case CAP_AUDIT_CONTROL:
	case CAP_SYSLOG:
	case CAP_MAC_OVERRIDE:
	case CAP_MAC_ADMIN:
	case CAP_PERFMON:
	case CAP_BPF:
		return top_only(TG_OP_SYSTEM);
	}
	return 0;
}

#endif
