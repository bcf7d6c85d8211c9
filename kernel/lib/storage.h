/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Local storage of BPF, made where there is none yet. */
#ifndef TIDEGATE_LIB_STORAGE_H
#define TIDEGATE_LIB_STORAGE_H

#include "lib/bpf.h"

/*
 * What is kept of a task, an inode or a sock, made if there is nothing yet; NULL: there is no
 * memory. Of two tasks that make it at once the kernel has one fail, with the same NULL: a task
 * that looks again finds it. That may happen to it twice, as the first that is made of an object,
 * of whichever map, races with those of all; and once more is for an allocator, or a lock, that is
 * busy for the moment. Written out: a counter takes room on the stack.
 */
#define STORAGE_MADE(get, map, owner, value)                                         \
	({                                                                           \
		typeof(owner) made_of = owner;                                       \
		typeof(get(map, made_of, value, 0)) made = MADE_BY(get, map, value); \
		if (!made)                                                           \
			made = MADE_BY(get, map, value);                             \
		if (!made)                                                           \
			made = MADE_BY(get, map, value);                             \
		if (!made)                                                           \
			made = MADE_BY(get, map, value);                             \
		made;                                                                \
	})
#define MADE_BY(get, map, value) get(map, made_of, value, BPF_LOCAL_STORAGE_GET_F_CREATE)
#define TASK_STORAGE_MADE(map, task, value) STORAGE_MADE(bpf_task_storage_get, map, task, value)
#define INODE_STORAGE_MADE(map, inode) STORAGE_MADE(bpf_inode_storage_get, map, inode, 0)
#define SOCK_STORAGE_MADE(map, sk) STORAGE_MADE(bpf_sk_storage_get, map, sk, 0)

#endif
