/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers that nobody outside of the kernel knows. */
#ifndef TIDEGATE_CORE_SECRETS_H
#define TIDEGATE_CORE_SECRETS_H

#include "lib/bpf.h"

/* Set when the monitor is loaded, odd, and never shown. */
u64 secrets[4];

#endif
