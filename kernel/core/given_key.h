/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The key of the tables of given labels: `given` of lomac/maps.h, `te_given` of te/inode_sid.h. */
#ifndef TIDEGATE_CORE_GIVEN_KEY_H
#define TIDEGATE_CORE_GIVEN_KEY_H

#include "abi/policy.h"
#include "lib/bpf.h"

static __always_inline struct tg_given_key given_key(struct inode *inode)
{
	struct tg_given_key k = {
		.ino = inode->i_ino,
		.dev = inode->i_sb->s_dev,
		.generation = inode->i_generation,
	};
	return k;
}

#endif
