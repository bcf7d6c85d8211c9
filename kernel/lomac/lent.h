/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages that splice(2) and sendfile(2) lend to a Unix socket: what lies there shows their owner's
 * memory as it is when it is read. An owner that falls meanwhile, having closed the socket, could
 * still change it. A file's pages are changed by tasks that may write the file, and what was
 * written into a pipe by nobody.
 */
#ifndef TIDEGATE_LOMAC_LENT_H
#define TIDEGATE_LOMAC_LENT_H

#include "lib/arch.h"
#include "lib/inode_kind.h"
#include "core/record.h"

#define LENT_PAGES 32 /* splice(2) lends 16 at a time */
#define PAGE_ODD 3    /* in `mapping`: no file's, but a process's own */

/*
 * The first page of a folio. Its others have, in the word where the first has its place in a list, that one's address
 * and 1; since 7.0 it may be a mask that leads there, and 1.
 */
static __always_inline u64 page_head(u64 page)
{
	u64 word = read_kernel_u64(page + bpf_core_field_offset(struct page, lru));

	if (!(word & 1))
		return page;
	return word >> (64 - PAGE_MASK_TOP) == (1ull << PAGE_MASK_TOP) - 1 ? page & word : word - 1;
}

/* Is it memory that somebody has and no path names? So is what cannot be read. */
static __always_inline bool page_is_owned(u64 page)
{
	u64 mapping = address(CAST(struct page, page_head(page))->mapping);
	struct inode *host;

	if (!mapping)
		return false;
	if (mapping & PAGE_ODD)
		return true;
	host = CAST(struct inode, address(CAST(struct address_space, mapping)->host));
	return !address(host->i_sb) || inode_is_memory(host);
}

/*
 * May what the message lends be changed by its lender, once that has fallen? A task at the lowest
 * level does not fall.
 */
__noinline bool lends_memory(u64 message)
{
	struct msghdr *msg = CAST(struct msghdr, message);
	u64 count = msg->msg_iter.nr_segs, pages = address(msg->msg_iter.bvec);
	bool owned = false;
	u32 i;

	if (!level_modifies())
		return false;
	if (msg->msg_iter.iter_type != ITER_BVEC || count > LENT_PAGES)
		return true;
	bpf_for(i, 0, LENT_PAGES) {
		u64 at = pages + i * bpf_core_type_size(struct bio_vec);

		if (i >= count)
			break;
		owned |= page_is_owned(address(CAST(struct bio_vec, at)->bv_page));
	}
	return owned;
}

/* Programs that are refused this copy, as they do where a file has nothing to lend. */
static __noinline int refuse_loan(void)
{
	struct tg_note n = { .op = TG_OP_SEND, .class = TG_C_UNIX, .source = ~0u };

	n.reason = TG_R_CHANNEL;
	return deny(subject_current(), &n, -EINVAL);
}

#endif
