/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long an operation waits for a guard. */
#ifndef TIDEGATE_CORE_GUARD_WAIT_H
#define TIDEGATE_CORE_GUARD_WAIT_H

#include "lib/bpf.h"

#define GUARD_WAIT_NS 10000000000ull /* for the daemon to attach the guard */

#endif
