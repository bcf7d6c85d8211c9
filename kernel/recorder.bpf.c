// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The recorder: what subjects bind and change, for `tidegate record`. An object of its
 * own, loaded while somebody records and decides nothing. It stands on the exits of the
 * kernel's security_* functions, so that it needs no `bpf` in lsm= and sees what came of
 * each, the monitor's verdict included.
 */
#include "types.h"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include "kfuncs.h"
#include "abi.h"
#include "recorder/abi.h"
#include "recorder/maps.h"
#include "models/lomac.h"
#include "walk.h"
#include "kind.h"
#include "privilege.h"
#include "recorder/emit.h"
#include "recorder/files.h"
#include "recorder/names.h"
#include "recorder/sockets.h"
#include "recorder/tasks.h"
#include "recorder/system.h"
#include "recorder/begin.h"

char LICENSE[] SEC("license") = "GPL";
