/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guard of files of the `capability` model. */
#ifndef TIDEGATE_CAPS_GUARD_H
#define TIDEGATE_CAPS_GUARD_H

#include "lib/arch.h"
#include "lib/number.h"
#include "caps/use.h"

/* The kernel would send the owner of a descriptor a signal in whoever's name: only one's own process. Appending may not end. */
SEC("lsm/file_fcntl")
int BPF_PROG(caps_file_fcntl, struct file *file, unsigned int cmd, unsigned long arg)
{
	if (!caps_me())
		return 0;
	if (cmd == F_SETOWN_EX || (cmd == F_SETOWN && arg && (u32)arg != own_number()))
		return caps_deny(CAPS_OTHERS, TG_OP_SIGNAL, TG_C_TASK);
	if (cmd == F_SETFL && file->f_flags & O_APPEND && !(arg & O_APPEND) &&
	    !caps_is_nameless(file->f_inode))
		return caps_use(address(file), CAPS_WRITE, TG_OP_OPEN_WRITE);
	return 0;
}

/* The 64-bit calls that write at the end by a descriptor for appending. */
#define CAPS_APPENDS(call) \
	((call) == NR_write || (call) == NR_writev || (call) == NR_pwrite64 || (call) == NR_pwritev)

/* Others may not: pwritev2(2) has RWF_NOAPPEND, and fallocate(2) clears what is there. */
static __always_inline u32 caps_write_by(struct file *file)
{
	struct pt_regs *regs;

	if (!(file->f_flags & O_APPEND))
		return CAPS_WRITE;
	regs = call_regs(bpf_get_current_task_btf());
	return CAPS_APPENDS(CALL_NUMBER(regs)) ? CAPS_APPEND : CAPS_APPEND | CAPS_WRITE;
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
