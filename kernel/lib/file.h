/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open files. */
#ifndef TIDEGATE_LIB_FILE_H
#define TIDEGATE_LIB_FILE_H

#include "lib/verifier.h"

static __always_inline u64 file_dentry(struct file *file)
{
	return address(UNTRUSTED(file)->f_path.dentry);
}

#endif
