/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the models' iterators over tasks have in common. */
#ifndef TIDEGATE_CORE_PS_H
#define TIDEGATE_CORE_PS_H

#include "abi/ps.h"
#include "lib/bpf.h"

/* Keeps the type of the line in the object's BTF, where user space finds it. */
const struct tg_ps_model *type_ps_model;

/* Writes what a model has of a thread, by its number there. */
static __always_inline int ps_write_model(struct bpf_iter__task *ctx, struct task_struct *task,
					  u64 number)
{
	struct tg_ps_model line = {
		.start = task->start_boottime,
		.number = number,
		.tid = task->pid,
	};

	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}

#endif
