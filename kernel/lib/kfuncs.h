/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel functions the monitor calls; declared as the kernels' BTF has them. */
#ifndef TIDEGATE_LIB_KFUNCS_H
#define TIDEGATE_LIB_KFUNCS_H

extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;

extern s64 bpf_map_sum_elem_count(const struct bpf_map *map) __ksym;
extern int bpf_path_d_path(struct path *path, char *buf, unsigned long buf__sz) __ksym;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

struct bpf_iter_task {
	u64 opaque[3];
};
struct bpf_iter_task_vma {
	u64 opaque[1];
};
extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
			     unsigned int flags) __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym;
extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task,
				 u64 addr) __ksym;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym;

#define BPF_TASK_ITER_ALL_THREADS 1
#define BPF_TASK_ITER_PROC_THREADS 2

#endif
