/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the descriptors and the mappings of a task mean to a demotion: which channels they are, and what they refuse. */
#ifndef TIDEGATE_LOMAC_DEMOTE_DESCRIPTORS_H
#define TIDEGATE_LOMAC_DEMOTE_DESCRIPTORS_H

#include "lib/fdtable.h"
#include "lib/mappings.h"
#include "core/file_kind.h"
#include "lomac/demote/channels.h"
#include "lomac/demote/reach.h"
#include "lomac/demote/references.h"

#define TX_LEASES 1024

/* Has the open file a lease, or a directory's delegation? Whoever opens it for writing waits for its holder. */
__noinline bool tx_leased(u64 file)
{
	u64 inode = address(CAST(struct file, file)->f_inode), head;
	u64 locks = address(CAST(struct inode, inode)->i_flctx);
	struct list_head *at;
	u32 i;

	if (!locks)
		return false;
	head = locks + bpf_core_field_offset(struct file_lock_context, flc_lease);
	at = CAST(struct file_lock_context, locks)->flc_lease.next;
	bpf_for(i, 0, TX_LEASES) {
		struct file_lock_core *lease;

		if (!at || address(at) == head)
			return false;
		lease = CAST(struct file_lock_core,
			     address(at) - bpf_core_field_offset(struct file_lock_core, flc_list));
		if (address(lease->flc_file) == file)
			return true;
		at = CAST(struct list_head, at)->next;
	}
	return true;
}

static __always_inline bool is_device(struct file *f)
{
	return (CAST(struct inode, f->f_inode)->i_mode & S_IFMT) == S_IFCHR;
}

/*
 * Is it a clock (/dev/ptp0) that is open to be set? clock_settime(2) of its descriptor asks no hook. Only the top makes
 * devices, so what is called so is one.
 */
__noinline bool tx_sets_clock(u64 file)
{
	struct file *f = CAST(struct file, file);
	char name[4] = {};

	if (!(f->f_mode & FMODE_WRITE) || !is_device(f))
		return false;
	bpf_probe_read_kernel(name, sizeof(name),
			      CAST(struct dentry, address(f->f_path.dentry))->d_name.name);
	return !__builtin_memcmp(name, "ptp", 3) && name[3] >= '0' && name[3] <= '9';
}

/* Looks at one descriptor of a task that stands, or will stand, at `level`. */
__noinline u8 tx_file(u64 addr, u8 level, bool falls)
{
	struct file *f = CAST(struct file, addr);
	enum tx_kind kind = tx_kind_of(f);
	u32 mode = f->f_mode;
	u64 key = channel_key(f);

	if (!key)
		return level; /* a socket that is being closed */
	if (kind == TX_PIPE || kind == TX_MEMORY) {
		tx.channels++;
		if (kind == TX_MEMORY && mode & FMODE_WRITE &&
		    !memory_admits(key, address(f->f_path.dentry), tx.was)) {
			tx.writable += falls;
			mode &= ~FMODE_WRITE;
		}
		if (tx.stage == TX_FLOORS && falls && mode & FMODE_WRITE)
			tx_floor(key, level);
		/* what it sends outlives it, what it receives is gone, and both by the level that the queue has */
		if (tx.stage == TX_VERIFY && falls && mode & (FMODE_READ | FMODE_WRITE) &&
		    CAST(struct inode, f->f_inode)->i_sb->s_magic == MQUEUE_MAGIC)
			tx.mapping++;
		if (tx.stage == TX_VERIFY && falls && mode & FMODE_WRITE) {
			/*
			 * a writer that a pass has not met, as another thread moved the end, the
			 * next pass knows of
			 */
			channel_note_writer(key, level);
			tx_floor_needed(key);
			if (kind == TX_MEMORY)
				tx_defer_lookup(key);
			else
				tx_require_reader_seen(address(f->f_inode));
		}
		if (tx.stage != TX_SPREAD)
			return level;
		if (mode & FMODE_WRITE)
			channel_note_writer(key, level);
		/*
		 * a task that opens a pipe by a name in /proc cannot tell which of its holders
		 * filled it
		 */
		if (tx.reopen && key == tx.join_key && kind == TX_PIPE) {
			channel_note_writer(key + 1, level);
			if (addr == tx.join)
				level = channel_level_for_reader(key + 1, level);
		}
		if (mode & FMODE_READ) {
			level = channel_level_for_reader(key, level);
		}
		/* an opening counts once, in however many tables it is; of memory each is a way to read it */
		if (key == tx.join_key && addr != tx.join &&
		    (mode & FMODE_READ || kind == TX_MEMORY)) {
			u32 makes = tx.makes;

			tx.makes = 1;
			tx.join_readers += channel_first(addr);
			tx.makes = makes;
		}
	} else if (kind == TX_UNIX) {
		struct socket *sock = CAST(struct socket, f->private_data);

		tx.channels++;
		if (tx.stage == TX_SPREAD)
			level = tx_unix(CAST(struct unix_sock, sock->sk), level, falls);
		else if (falls)
			tx_require_peer_seen(CAST(struct unix_sock, sock->sk), level);
	} else if (kind == TX_SHARED && file_references(addr) > 1) {
		tx.channels++;
		if (tx.stage == TX_SPREAD || tx.stage == TX_VERIFY)
			channel_note_writer(addr, level);
		if (tx.stage == TX_SPREAD)
			level = channel_level_for_reader(addr, level);
	} else if (kind == TX_RING) {
		tx.async += falls;
		tx.rings += !falls;
	} else if (kind == TX_FAULTS) {
		struct userfaultfd_ctx *uffd = CAST(struct userfaultfd_ctx, f->private_data);

		/* it fills in the memory of the process that made it */
		tx.channels++;
		if (tx.stage == TX_SPREAD)
			channel_note_writer(address(uffd->mm), level);
	} else if (kind == TX_PROCESS && mode & FMODE_READ) {
		tx.channels++;
		if (tx.stage == TX_SPREAD)
			level = channel_level_for_reader(address(f->private_data), level);
	}
	if (kind == TX_PROCESS && falls && mode & FMODE_WRITE) {
		tx.writable++;
		/* its name is a process's that may have left the memory to others */
		if (tx.stage == TX_VERIFY && memory_owner(address(f->private_data)) > level)
			tx.mapping++;
	}
	/*
	 * the guard looks at the session that a master types for; and a device may be neutral or
	 * not
	 */
	if ((kind == TX_FILE || kind == TX_MASTER || (kind == TX_SHARED && is_device(f))) &&
	    falls && mode & FMODE_WRITE)
		tx.writable++;
	if (tx.stage == TX_VERIFY && falls) {
		if (tx_leased(addr) || tx_sets_clock(addr) ||
		    (kind == TX_FILE && pidfd_kills_above(addr, level)))
			tx.mapping++;
		if (kind == TX_SHARED)
			tx_reaches(counter_reach(addr, level));
	}
	return level;
}

/*
 * What a pass has looked at: openings, and whole tables. A task that stands the same and meets it
 * again learns what came of that and does not look once more, in however many places of however
 * many tables an opening is, and whatever number of tasks has the table. Where two are remembered
 * in one place the later one is.
 */
struct tx_seen {
	u64 at;
	u64 as; /* how the task stands: see tx_as */
	u32 low;
	u32 counted; /* the opening: see tx_count_of */
};

#define TX_OPENINGS 4096
#define TX_TABLES 1024
struct tx_seen tx_openings[TX_OPENINGS];
struct tx_seen tx_tables[TX_TABLES];

/* In which pass, and as what one looks; never 0. */
static __always_inline u64 tx_as(u8 level, bool falls)
{
	return (u64)tx.pass << 32 | 1u << 31 | (u32)level << 16 | (tx.was & 0xff) << 8 |
	       !!tx.makes << 2 | !!tx.trusted << 1 | falls;
}

/*
 * May an opening matter that a task has which does not fall? A pipe and memory are known by their
 * inodes, which have entries then. Of a directory, a named file and a device without buffers
 * nothing is asked.
 */
static __always_inline bool tx_may_matter(u64 addr)
{
	u64 inode = address(CAST(struct file, addr)->f_inode), magic;
	u16 type = CAST(struct inode, inode)->i_mode & S_IFMT;

	if (type == S_IFIFO)
		return filter_has(inode);
	if (type == S_IFCHR)
		return device_has_buffers(CAST(struct inode, inode)->i_rdev);
	if (type == S_IFDIR || type == S_IFBLK)
		return false;
	if (type != S_IFREG)
		return true;
	if (filter_has(inode))
		return true;
	magic = CAST(struct inode, inode)->i_sb->s_magic;
	return magic == ANON_INODE_MAGIC || magic == DMA_BUF_MAGIC || magic == PROC_MAGIC;
}

static __always_inline u8 tx_opening(u64 addr, u8 level, bool falls)
{
	struct tx_seen *seen = &tx_openings[BOUND(addr >> 6 ^ addr >> 18, TX_OPENINGS)];
	u64 as = tx_as(level, falls);

	if (seen->at != addr || seen->as != as) {
		if (tx.stage != TX_SPREAD || tx.makes || tx_may_matter(addr)) {
			level = tx_file(addr, level, falls);
			if (tx.makes || filter_has(address(CAST(struct file, addr)->f_inode)))
				tx_count_by(addr);
		}
		seen->at = addr;
		seen->as = as;
		seen->low = level;
		seen->counted = tx_count_of(addr, false);
	}
	if (seen->counted)
		tx_met(seen->counted, tx.table);
	return seen->low;
}

u64 tx_places[64]; /* of a table: those that are looked at, */
u64 tx_open;       /* and which of them are open, or kept for what will be */

/* Looks at 64 places of a table, by their number of 64; the level that its owner has to fall to. */
static __always_inline u8 tx_places_of(struct fdtable *fdt, u32 at, u8 level, bool falls)
{
	u32 j;

	tx_open = 0;
	bpf_probe_read_kernel(&tx_open, sizeof(tx_open), fdt->open_fds + at);
	if (!tx_open)
		return level;
	/* a table that has become another is looked at in vain; the old one is freed later */
	if (bpf_probe_read_kernel(tx_places, sizeof(tx_places), fdt->fd + at * 64)) {
		tx.failed = 1;
		return level;
	}
	bpf_for(j, 0, 64) {
		u64 f = tx_places[BOUND(j, 64)];

		/* also one that has been moved here since the bits were read */
		if (f)
			level = tx_opening(f, level, falls);
	}
	return level;
}

/* Looks at every descriptor of a task; the level it has to fall to. */
__noinline u8 tx_files(u64 table, u8 level, bool falls)
{
	struct files_struct *files = CAST(struct files_struct, table);
	struct fdtable *fdt = CAST(struct fdtable, files->fdt);
	u32 max = fdt->max_fds, i;

	tx.table = table;
	tx.look = TX_LOOK_BEGINS;
	tx.looked += max;
	if (max > FDTABLE_MAX || tx.looked > TX_LOOKS) {
		tx.failed = 1;
		return level;
	}
	bpf_for(i, 0, max / 64) {
		level = tx_places_of(fdt, i, level, falls);
		if (tx.failed)
			break;
	}
	return level;
}

/* The same of a table that other tasks may have, too: once. */
static __always_inline u8 tx_table(u64 table, u8 level, bool falls)
{
	struct tx_seen *seen = &tx_tables[BOUND(table >> 6 ^ table >> 16, TX_TABLES)];
	u64 as = tx_as(level, falls);

	if (seen->at == table && seen->as == as)
		return seen->low;
	level = tx_files(table, level, falls);
	seen->at = table;
	seen->as = as;
	seen->low = level;
	return level;
}

/* What a mapping means to a task that stands, or will stand, at `level`. */
__noinline int tx_mapping(u64 addr, u8 level)
{
	struct vm_area_struct *vma = CAST(struct vm_area_struct, addr);
	bool shared = vma->vm_flags & VM_SHARED, writable = vma->vm_flags & VM_MAYWRITE;
	struct file *f = CAST(struct file, vma->vm_file);
	struct inode *inode = CAST(struct inode, f->f_inode);
	u64 key = address(f->f_inode);
	u16 type = inode->i_mode & S_IFMT;

	if (inode_is_memory(inode)) {
		/* a private or read-only mapping shows it, too */
		if (tx.stage == TX_COUNT) {
			/* a task that reads it by a descriptor falls, too: another round */
			if (shared && writable)
				channel_note_writer(key, level);
			return channel_map(key, level);
		}
		if (tx.stage == TX_VERIFY && shared && writable) {
			tx_floor_needed(key);
			tx_defer_lookup(key);
		}
		if (tx.stage == TX_FLOORS && shared && writable)
			tx_floor(key, level);
		return 0;
	}
	if (!shared || (type == S_IFCHR && device_is_neutral(inode->i_rdev)))
		return 0;
	if (tx_kind_of(f) == TX_RING)
		tx.async++;
	else if (writable)
		tx.mapping++;
	return 0;
}

/*
 * Are the mappings of a task that falls what they were as they were counted, so that what others have of the same memory is what is
 * left? A thread in user space is at rest, and unmaps or splits what it has without a hook. These numbers only grow: their sums tell.
 */
static __always_inline void tx_mapped_as(u64 mm, bool counts)
{
	u64 sequence = mappings_sequence(mm);

	tx.overflow |= sequence & 1;
	if (counts)
		tx.sequences += sequence;
	else
		tx.sequences -= sequence;
}

/* Shared writable mappings that a falling task would keep. */
static __always_inline void tx_mappings(struct task_struct *t, u8 level)
{
	struct task_struct *fields;
	struct vm_area_struct *vma;

	tx.mapped = 0;
	tx.mapping_since = mappings_sequence(address(UNTRUSTED(t)->mm));
	bpf_for_each(task_vma, vma, t, 0) {
		tx.mapped++;
		if (UNTRUSTED(vma)->vm_file)
			tx_mapping(address(vma), level);
	}
	/*
	 * It could not have the task's lock, or passed over one that is locked; or one was moved from where it had not been yet to
	 * where it had: what is mapped is not known.
	 */
	fields = UNTRUSTED(t);
	if (!fields->mm || fields->flags & PF_EXITING)
		return;
	if (tx.mapped < fields->mm->map_count || tx.mapping_since & 1 ||
	    mappings_sequence(address(fields->mm)) != tx.mapping_since)
		tx.overflow = 1;
}

#endif
