/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What belongs to the top level. Which calls those are the monitor's own hooks tell:
 * they are included as plain functions, and what would have decided says which
 * operation it would have decided on.
 */
#ifndef TIDEGATE_RECORDER_SYSTEM_H
#define TIDEGATE_RECORDER_SYSTEM_H

#define top_only(op) (op)
/* which depends on the other tasks that are there, and not on the call */
#define mounts_are_own(user_ns, mount, tree) 0
#pragma push_macro("SEC")
#pragma push_macro("BPF_PROG")
#undef SEC
#undef BPF_PROG
#define SEC(name) static __always_inline __attribute__((unused))
#define BPF_PROG(name, args...) name(args)
#include "lomac/system.h"
#pragma pop_macro("SEC")
#pragma pop_macro("BPF_PROG")

/* Tells an operation that is one for the top level; 0 is none. */
static __noinline int tell_system(u8 op, s32 refused)
{
	struct tr_note n = { .what = TR_ACCESS,
			     .op = op,
			     .class = TG_C_SYSTEM,
			     .flags = TR_WRITES,
			     .refused = refused };

	return op ? tell(&n) : 0;
}

SEC("fexit/security_sb_mount")
int BPF_PROG(sb_mount, const char *dev, const struct path *path, const char *type,
	     unsigned long flags)
{
	return tell_system(lomac_sb_mount(dev, path, type, flags), RESULT(ctx));
}

SEC("fexit/security_sb_umount")
int BPF_PROG(sb_umount, struct vfsmount *mnt)
{
	return tell_system(lomac_sb_umount(mnt), RESULT(ctx));
}

SEC("fexit/security_sb_pivotroot")
int BPF_PROG(sb_pivotroot, const struct path *old_path, const struct path *new_path)
{
	return tell_system(lomac_sb_pivotroot(old_path, new_path), RESULT(ctx));
}

SEC("fexit/security_move_mount")
int BPF_PROG(move_mount, const struct path *from, const struct path *to)
{
	return tell_system(lomac_move_mount(from, to), RESULT(ctx));
}

SEC("fexit/security_sb_remount")
int BPF_PROG(sb_remount, struct super_block *sb)
{
	return tell_system(lomac_sb_remount(sb), RESULT(ctx));
}

SEC("fexit/security_kernel_load_data")
int BPF_PROG(kernel_load_data, int id)
{
	return tell_system(lomac_kernel_load_data(id), RESULT(ctx));
}

SEC("fexit/security_kernel_read_file")
int BPF_PROG(kernel_read_file, struct file *file, int id)
{
	return tell_system(lomac_kernel_read_file(file, id), RESULT(ctx));
}

SEC("fexit/security_bpf")
int BPF_PROG(bpf_call, int cmd)
{
	return tell_system(lomac_bpf(cmd), RESULT(ctx));
}

SEC("fexit/security_settime64")
int BPF_PROG(settime, const struct timespec64 *ts)
{
	return tell_system(lomac_settime(ts), RESULT(ctx));
}

SEC("fexit/security_quotactl")
int BPF_PROG(quotactl, int cmds)
{
	return tell_system(lomac_quotactl(cmds), RESULT(ctx));
}

SEC("fexit/security_capable")
int BPF_PROG(capable, const struct cred *cred, struct user_namespace *ns, int cap,
	     unsigned int opts)
{
	s32 refused = RESULT(ctx);

	/*
	 * a task that has not the right asks the monitor nothing; raw sockets are told as they are
	 * made
	 */
	if (refused == -EPERM || cap == CAP_NET_RAW || !is_privilege(cred, ns, cap) ||
	    is_no_news(cred, cap, opts))
		return 0;
	return tell_system(TG_OP_CAPABLE, refused);
}

#endif
