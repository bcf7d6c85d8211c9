/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of open files. */
#ifndef TIDEGATE_LIB_FDTABLE_H
#define TIDEGATE_LIB_FDTABLE_H

#include "lib/bpf.h"

#define FDTABLE_MAX (1 << 20) /* entries of a descriptor table that is looked at */

#endif
