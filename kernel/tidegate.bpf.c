// SPDX-License-Identifier: GPL-2.0-only
/* The reference monitor. What each part does stands at its head. */
#include "types.h"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "kfuncs.h"
#include "abi.h"
#include "maps.h"
#include "models/lomac.h"
#include "path.h"
#include "label.h"
#include "object.h"
#include "audit.h"
#include "transaction.h"
#include "decide.h"
#include "hooks/file.h"

char LICENSE[] SEC("license") = "GPL";
