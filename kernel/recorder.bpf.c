// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The recorder: what subjects bind and change, for `tidegate record`. An object of its
 * own, loaded while somebody records and decides nothing. It stands on the exits of the
 * kernel's security_* functions, so that it needs no `bpf` in lsm= and sees what came of
 * each, the monitor's verdict included.
 */
#include "lib/bpf.h"
#include "lib/verifier.h"
#include "lib/memory.h"
#include "lib/inode_kind.h"
#include "lib/file.h"
#include "abi/policy.h"
#include "abi/record.h"
#include "abi/ps.h"
#include "abi/recorder.h"
#include "recorder/maps.h"
#include "lomac/rules.h"
#include "lib/path_walk.h"
#include "lib/inode_kind.h"
#include "lomac/privilege.h"
#include "recorder/emit.h"
#include "recorder/files.h"
#include "recorder/names.h"
#include "recorder/sockets.h"
#include "recorder/tasks.h"
#include "recorder/system.h"
#include "recorder/begin.h"

char LICENSE[] SEC("license") = "GPL";
