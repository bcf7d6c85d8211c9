// SPDX-License-Identifier: GPL-2.0-only
/* The reference monitor. What each part does stands at its head. */
#include "types.h"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include "kfuncs.h"
#include "abi.h"
#include "maps.h"
#include "models/lomac.h"
#include "path.h"
#include "label.h"
#include "subject.h"
#include "object.h"
#include "profile/confined.h"
#include "audit.h"
#include "tx.h"
#include "channel.h"
#include "rest.h"
#include "turn.h"
#include "pipeline.h"
#include "fifo.h"
#include "transaction.h"
#include "decide.h"
#include "hooks/file.h"
#include "hooks/dir.h"
#include "hooks/attr.h"
#include "hooks/guard.h"
#include "hooks/socket.h"
#include "hooks/exec.h"
#include "hooks/mmap.h"
#include "hooks/unix.h"
#include "hooks/ipc.h"
#include "hooks/task.h"
#include "hooks/system.h"
#include "hooks/ps.h"
#include "profile/name.h"
#include "profile/judge.h"
#include "profile/file.h"
#include "profile/exec.h"
#include "profile/capable.h"
#include "profile/peer.h"
#include "profile/mount.h"

char LICENSE[] SEC("license") = "GPL";
