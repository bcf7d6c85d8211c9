/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every part of a BPF program needs: the kernel's types, libbpf's helpers, the kernel's functions. */
#ifndef TIDEGATE_LIB_BPF_H
#define TIDEGATE_LIB_BPF_H

#include "lib/kernel_types.h"
#include "lib/kernel_net.h"
#include "lib/iterators.h"
#include "lib/uapi.h"
/* libbpf's headers take the integers from those before */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include "lib/kfuncs.h"

#endif
