/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `capability` model: ioctl(2). */
#ifndef TIDEGATE_CAPS_IOCTL_H
#define TIDEGATE_CAPS_IOCTL_H

#include "caps/use.h"

static __always_inline int caps_ioctl_asked(struct file *file, u32 cmd)
{
	if (!caps_me())
		return 0;
	/* what is typed at a terminal in somebody else's name */
	if (cmd == TIOCSTI || cmd == TIOCLINUX || cmd == FIOSETOWN || cmd == SIOCSPGRP)
		return caps_deny(CAPS_NOBODYS, TG_OP_TTY, TG_C_FILE);
	/* of the descriptor, and not of the file */
	if (cmd == FIOCLEX || cmd == FIONCLEX || cmd == FIONBIO || cmd == FIOASYNC ||
	    cmd == FIONREAD)
		return 0;
	if (caps_is_nameless(file->f_inode))
		return 0;
	return caps_use(address(file), CAPS_IOCTL, TG_OP_TTY);
}

SEC("lsm/file_ioctl")
int BPF_PROG(caps_file_ioctl, struct file *file, unsigned int cmd)
{
	return caps_ioctl_asked(file, cmd);
}

SEC("lsm/file_ioctl_compat")
int BPF_PROG(caps_file_ioctl_compat, struct file *file, unsigned int cmd)
{
	return caps_ioctl_asked(file, cmd);
}

#endif
