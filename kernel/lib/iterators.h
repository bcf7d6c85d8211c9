/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The types that BPF iterators are called with. */
#ifndef TIDEGATE_LIB_ITERATORS_H
#define TIDEGATE_LIB_ITERATORS_H

#include "lib/kernel_types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* What iterators are called with. */
struct seq_file {
	unsigned long count;
};
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};
struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};
struct mm_struct___ps {
	struct file *exe_file;
};

#pragma clang attribute pop

#endif
