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

/*
 * Where the globals of `profile`, `te` and `caps` are: in a section for each model, so that there is memory for them only once
 * the model is loaded (crates/monitor/src/object.rs). Those of `lomac`, and what all models share, are in the ordinary one.
 */
#define GLOBAL_OF(model) SEC(".bss." #model)

#endif
