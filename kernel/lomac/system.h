/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager: the system itself. What changes the kernel or the view that all
 * processes share belongs to the top level: mounts, modules, kexec, clocks, BPF. What else
 * does needs a capability (capable.h). This is also how the monitor protects itself: the
 * maps, links and pins it stands on are reached only through bpf() and bpffs.
 */
#ifndef TIDEGATE_LOMAC_SYSTEM_H
#define TIDEGATE_LOMAC_SYSTEM_H

#include "abi/record.h"
#include "lib/verifier.h"

/*
 * Mounting in a mount namespace that an unprivileged user made changes no view but that of the tasks in
 * it, and of those that have the mount at which it is done, or some of the tree that is moved
 * (mount_owner.h; 0: there is none).
 */
static __always_inline int lomac_may_mount(u64 mount, u64 tree)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct nsproxy *ns = me->nsproxy;

	if (ns && ns->mnt_ns->user_ns->level > 0 && me->cred->user_ns->level > 0)
		return mounts_are_own(address(ns->mnt_ns->user_ns), mount, tree);
	return top_only(TG_OP_MOUNT);
}

SEC("lsm.s/sb_mount")
int BPF_PROG(lomac_sb_mount, const char *dev, const struct path *path, const char *type,
	     unsigned long flags)
{
	/* mount(2) may move a mount of others that hangs nowhere yet. This hook is not told which; the one of move_mount(2) is */
	if (flags & MS_MOVE)
		return top_only(TG_OP_MOUNT);
	return lomac_may_mount(address(path->mnt), 0);
}

SEC("lsm.s/sb_umount")
int BPF_PROG(lomac_sb_umount, struct vfsmount *mnt)
{
	/* it is taken away from its parent's peers, too */
	return lomac_may_mount(address(&real_mount(address(mnt))->mnt_parent->mnt), 0);
}

SEC("lsm/sb_pivotroot")
int BPF_PROG(lomac_sb_pivotroot, const struct path *old_path, const struct path *new_path)
{
	return lomac_may_mount(0, 0);
}

SEC("lsm/move_mount")
int BPF_PROG(lomac_move_mount, const struct path *from, const struct path *to)
{
	return lomac_may_mount(address(to->mnt), address(from->mnt));
}

SEC("lsm/sb_remount")
int BPF_PROG(lomac_sb_remount, struct super_block *sb)
{
	return lomac_may_mount(0, 0);
}

SEC("lsm/kernel_load_data")
int BPF_PROG(lomac_kernel_load_data, int id)
{
	return top_only(TG_OP_MODULE);
}

SEC("lsm.s/kernel_read_file")
int BPF_PROG(lomac_kernel_read_file, struct file *file, int id)
{
	return top_only(TG_OP_MODULE);
}

SEC("lsm.s/bpf")
int BPF_PROG(lomac_bpf, int cmd)
{
	return top_only(TG_OP_BPF);
}

SEC("lsm/settime")
int BPF_PROG(lomac_settime, const struct timespec64 *ts)
{
	return top_only(TG_OP_SYSTEM);
}

SEC("lsm/quotactl")
int BPF_PROG(lomac_quotactl, int cmds)
{
	return top_only(TG_OP_SYSTEM);
}

/*
 * Which program it is, is no process's to say: records name it, and the next start trusts by it.
 * Nor may it say which tasks another one shares a processor with, nor share one with it; its own
 * group may be higher ones'.
 */
SEC("lsm/task_prctl")
int BPF_PROG(lomac_task_prctl, int option, unsigned long what, unsigned long who,
	     unsigned long reach)
{
	if (option == PR_SCHED_CORE)
		return what == PR_SCHED_CORE_GET || (!who && reach != PR_SCHED_CORE_PROCESS_GROUP) ?
			       0 :
			       top_only(TG_OP_SCHED);
	if (option != PR_SET_MM || (what != PR_SET_MM_EXE_FILE && what != PR_SET_MM_MAP))
		return 0;
	return top_only(TG_OP_SYSTEM);
}

#define PERF_SECURITY_TRACEPOINT 3 /* probes, too */

SEC("lsm/perf_event_open")
int BPF_PROG(lomac_perf_event_open, struct perf_event_attr *attr, int type)
{
	return type == PERF_SECURITY_TRACEPOINT ? top_only(TG_OP_BPF) : 0;
}

#endif
