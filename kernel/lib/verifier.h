/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the verifier has to be told, and what keeps it from looking at everything again: an idiom each. */
#ifndef TIDEGATE_LIB_VERIFIER_H
#define TIDEGATE_LIB_VERIFIER_H

#include "lib/bpf.h"

/*
 * A word that others change meanwhile, read or written in one instruction and not again. Of two bytes beside each other:
 * READ_ONCE(*(u16 *)&first).
 */
#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))

#define CAST(type, addr) ((type *)bpf_rdonly_cast((void *)(addr), bpf_core_type_id_kernel(type)))

/*
 * The same object, to be read only. At each load of a pointer through one that the verifier trusts, 6.12's looks through all of
 * the kernel's BTF up to four times, whether that is to be trusted, too: with such loads in what walks over tasks it took twice as long
 * to load the monitor.
 */
#define UNTRUSTED(p) CAST(typeof(*(p)), p)

/* Is there a task `t`, among all threads, of which `is` holds? */
#define ANY_TASK(t, is)                                                  \
	({                                                               \
		struct task_struct *t;                                   \
		bool any = false;                                        \
		bpf_rcu_read_lock();                                     \
		bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) { \
			any = (is);                                      \
			if (any)                                         \
				break;                                   \
		}                                                        \
		bpf_rcu_read_unlock();                                   \
		any;                                                     \
	})

/*
 * In the condition of a loop whose end the verifier does not see: false after eight million turns. It
 * takes four instructions a turn, and bpf_for() twenty. What counts the turns must begin with what the
 * verifier does not know, or it looks at each turn.
 */
#define MAY_LOOP                                                     \
	({                                                           \
		__label__ over, on;                                  \
		bool may = true;                                     \
		asm goto volatile("may_goto %l[over]" : : : : over); \
		goto on;                                             \
	over:                                                        \
		may = false;                                         \
	on:;                                                         \
		may;                                                 \
	})

/* 0, but the verifier does not know. */
u32 zero;
#define UNKNOWN_ZERO READ_ONCE(zero)

/* As bpf_for(i, 0, n), at a sixth of its cost: a call of the kernel's each step. */
#define for_each_index(i, n) for (i = UNKNOWN_ZERO; i < (n) && MAY_LOOP; i++)

/*
 * A kernel pointer as a number, which alone a global function takes. Negation
 * makes the verifier forget that it was a pointer; twice, it changes nothing.
 */
static __always_inline u64 address(const void *p)
{
	u64 a = (u64)p;

	asm volatile("%0 = -%0; %0 = -%0" : "+r"(a));
	return a;
}

/* An index below a power of two, where the verifier cannot overlook the bound. */
#define BOUND(n, size)                                                      \
	({                                                                  \
		u64 bound_n = (n);                                          \
		asm volatile("%0 &= %1" : "+r"(bound_n) : "i"((size) - 1)); \
		bound_n;                                                    \
	})

/*
 * What a function with a body of its own has decided, of which the verifier does not know
 * what it can be: nothing beyond an errno.
 */
static __always_inline int verdict_of(int err)
{
	barrier_var(err);
	if (err >= 0)
		return 0;
	return err < -4095 ? -EPERM : err;
}

#endif
