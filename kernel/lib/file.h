/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open files. */
#ifndef TIDEGATE_LIB_FILE_H
#define TIDEGATE_LIB_FILE_H

#include "lib/verifier.h"

static __always_inline u64 file_dentry(struct file *file)
{
	return address(file->f_path.dentry);
}

/* Was a process's program opened by an execution? No other open has this flag (linux/fcntl.h, VALID_OPEN_FLAGS). */
static __always_inline bool exe_is_executed(struct file *exe)
{
	return exe->f_flags & FMODE_EXEC_FLAG;
}

#endif
