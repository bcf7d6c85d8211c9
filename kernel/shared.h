/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who else has an open file. What belongs to the description is everybody's who has it: its flags, and of a socket
 * whom it is connected to. This is asked where one of them changes that, and the tables are looked through only
 * if the file's references say that somebody else may have it.
 */
#ifndef TIDEGATE_SHARED_H
#define TIDEGATE_SHARED_H

/* May somebody else have it? Where threads share a table, the call under way has a reference of its own. */
static __always_inline bool file_is_shared(u64 file)
{
	struct files_struct *files = UNTRUSTED(bpf_get_current_task_btf())->files;

	return file_references(file) > (files && files->count.counter > 1 ? 2 : 1);
}

__noinline bool table_has(u64 table, u64 file)
{
	struct fdtable *fdt = CAST(struct fdtable, CAST(struct files_struct, table)->fdt);
	u32 max = fdt->max_fds, i, j;
	struct file **fds = fdt->fd;
	unsigned long *open = fdt->open_fds;

	if (max > TX_FDS)
		return true;
	bpf_for(i, 0, max / 64) {
		u64 word = 0;

		bpf_probe_read_kernel(&word, sizeof(word), open + i);
		if (!word)
			continue;
		bpf_for(j, 0, 64) {
			u64 f = 0;

			if (!(word >> j & 1))
				continue;
			bpf_probe_read_kernel(&f, sizeof(f), fds + i * 64 + j);
			if (f == file)
				return true;
		}
	}
	return false;
}

/* Has somebody above the level the file, of those whose program has none of the `trusted` attributes? */
__noinline bool file_is_above(u64 file, u32 level, u32 trusted)
{
	struct task_struct *t;
	bool above = false;

	bpf_rcu_read_lock();
	bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) {
		struct task_struct *fields = UNTRUSTED(t), *leader = fields->group_leader;
		u64 table = address(fields->files);
		struct tg_label label;

		if (above || !table)
			continue;
		/* threads mostly have one table, which their first one shows */
		if (fields->pid != fields->tgid && address(leader->files) == table)
			continue;
		label = subject_label(t);
		if (label.observes > level && !(label.attrs & trusted))
			above = table_has(table, file);
	}
	bpf_rcu_read_unlock();
	return above;
}

#endif
