/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guard of files of the `capability` model. */
#ifndef TIDEGATE_CAPS_GUARD_H
#define TIDEGATE_CAPS_GUARD_H

#include "lib/call.h"
#include "caps/use.h"

/* The kernel would send the owner of a descriptor a signal in whoever's name: only one's own process. Appending may not end. */
SEC("lsm/file_fcntl")
int BPF_PROG(caps_file_fcntl, struct file *file, unsigned int cmd, unsigned long arg)
{
	if (!caps_me())
		return 0;
	if (cmd == F_SETOWN_EX ||
	    (cmd == F_SETOWN && arg && (u32)arg != bpf_get_current_pid_tgid() >> 32))
		return caps_deny(CAPS_OTHERS, TG_OP_SIGNAL, TG_C_TASK);
	if (cmd == F_SETFL && file->f_flags & O_APPEND && !(arg & O_APPEND) &&
	    !caps_is_nameless(file->f_inode))
		return caps_use(address(file), CAPS_WRITE, TG_OP_OPEN_WRITE);
	return 0;
}

/* The calls that write at the end by a descriptor for appending, as x86-64 numbers them: write, writev, pwrite64, pwritev. */
#define CAPS_APPENDS(call) ((call) == 1 || (call) == 20 || (call) == 18 || (call) == 296)

/* Others may not: pwritev2(2) has RWF_NOAPPEND, and fallocate(2) clears what is there. */
static __always_inline u32 caps_write_by(struct file *file)
{
	s32 call;

	if (!(file->f_flags & O_APPEND))
		return CAPS_WRITE;
	call = call_of(bpf_get_current_task_btf());
	return CAPS_APPENDS(call) ? CAPS_APPEND : CAPS_APPEND | CAPS_WRITE;
}

/* The guard: reads and writes through descriptors. Attached only where something is checked at each use, or was taken back. */
SEC("lsm/file_permission")
int BPF_PROG(caps_guard_file_permission, struct file *file, int mask)
{
	u32 right = 0;

	if (!caps_me() || caps_is_nameless(file->f_inode))
		return 0;
	if (mask & MAY_READ)
		right |= CAPS_READ;
	if (mask & (MAY_WRITE | MAY_APPEND))
		right |= caps_write_by(file);
	return right ? caps_use(address(file), right,
				mask & MAY_READ ? TG_OP_READ_REVOKED : TG_OP_WRITE_REVOKED) :
		       0;
}

#endif
