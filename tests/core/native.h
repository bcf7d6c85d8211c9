/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel headers under test, compiled for this machine instead of BPF. */
#ifndef CORE_NATIVE_H
#define CORE_NATIVE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A map's declaration becomes a structure that nobody uses. */
#define SEC(name)
#define __uint(name, value)
#define __type(name, type) type *name
#define __array(name, type) type *name[2]

/* libbpf's helpers are not for this machine. */
#define TIDEGATE_LIB_BPF_H
#include "lib/kernel_types.h"
#include "lib/kernel_net.h"
#include "lib/iterators.h"
#include "lib/uapi.h"
#include "abi/policy.h"
#include "abi/record.h"
#include "abi/ps.h"
#include "core/maps.h"
#include "lomac/maps.h"
#include "lomac/rules.h"

/* A claim that is broken ends the program: the sanitizers and the fuzzer report it. */
#define CLAIM(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

/* Decisions taken from a string of bytes; after its end all are 0. */
struct bytes {
	const u8 *at;
	size_t left;
};

static inline u8 take(struct bytes *b)
{
	if (!b->left)
		return 0;
	b->left--;
	return *b->at++;
}

#endif
