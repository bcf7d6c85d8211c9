/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the kernel has variables that its BTF does not tell of. User space has them looked up once, before anything is
 * attached. libbpf's way, `__ksym`, reads and parses all of /proc/kallsyms at every load.
 */
#ifndef TIDEGATE_LIB_KSYMS_H
#define TIDEGATE_LIB_KSYMS_H

#include "lib/bpf.h"

struct tg_symbols {
	u64 rename_lock;
	u64 mount_lock;
	u64 nop_mnt_idmap;
	u64 page_offset_base; /* 0: these two are constants of this kernel, which are not known */
	u64 vmemmap_base;
	s64 error; /* 0, or why one of the first three is not known: nothing may be decided then */
};

struct tg_symbols symbols;

#define LOOK_UP(name) bpf_kallsyms_lookup_name(#name, sizeof(#name), 0, &symbols.name)

SEC("syscall")
int ps_symbols(void *ctx)
{
	symbols.error = LOOK_UP(rename_lock);
	if (!symbols.error)
		symbols.error = LOOK_UP(mount_lock);
	if (!symbols.error)
		symbols.error = LOOK_UP(nop_mnt_idmap);
	LOOK_UP(page_offset_base);
	LOOK_UP(vmemmap_base);
	return 0;
}

#endif
