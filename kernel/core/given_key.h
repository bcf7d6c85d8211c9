/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The key of the tables of given labels: `given` of lomac/maps.h, `te_given` of te/inode_sid.h. */
#ifndef TIDEGATE_CORE_GIVEN_KEY_H
#define TIDEGATE_CORE_GIVEN_KEY_H

#include "abi/policy.h"
#include "lib/inode_kind.h"

/*
 * In place of a generation, where there is none: of POSIX queues, hugetlbfs, ramfs, pipes and sockets, whose numbers are 32 bits of
 * one counter, so that after four thousand million pipes another object has the number of one that lives. The inodes of these
 * live as long as their objects: where one lies no other does. User space writes it down, so it is not the address itself.
 */
static __always_inline u32 place_in_memory(struct inode *inode)
{
	u64 magic = fs_magic(inode);

	if (!fs_is_memory(magic) && !fs_is_anonymous(magic) && magic != PIPEFS_MAGIC &&
	    magic != SOCKFS_MAGIC)
		return 0;
	return address(inode) * 0x9e3779b97f4a7c15ull >> 32;
}

static __always_inline struct tg_given_key given_key(struct inode *inode)
{
	struct tg_given_key k = {
		.ino = inode->i_ino,
		.dev = UNTRUSTED(inode)->i_sb->s_dev,
		.generation = inode->i_generation,
	};

	if (!k.generation)
		k.generation = place_in_memory(inode);
	return k;
}

#endif
