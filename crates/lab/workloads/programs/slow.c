/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Becomes a command whose every system call is slower by a known number of
 * instructions: slow N COMMAND..., by a seccomp filter of N harmless instructions and
 * one that allows the call.
 *
 * Each loads a constant, and the JIT makes one x86 instruction of it (where it does not
 * blind constants, net.core.bpf_jit_harden 0; for root at 1 as well). It is also one
 * that the kernel does not follow when it looks for calls that a filter always allows,
 * so the filter really runs. A system call therefore costs
 *
 *	C + N instructions more than without it,
 *
 * where C is what the kernel spends on any filter: 246 on Linux 6.12, where getppid()
 * counted 323 without, 570 at N = 1, 670 at 101, 1572 at 1001 (the timer's ticks have
 * their share). `slow 1` against `slow 101` is 100 for each system call. Children
 * inherit the filter.
 */
#define _GNU_SOURCE
#include "count.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static struct sock_filter filter[BPF_MAXINSNS];
	const int n = argc > 2 ? atoi(argv[1]) : 0;
	struct sock_fprog program = { .len = n + 1, .filter = filter };

	if (n < 1 || n >= BPF_MAXINSNS)
		return 2;
	for (int i = 0; i < n; i++)
		filter[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, i + 1);
	filter[n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	must(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "seccomp");
	execvp(argv[2], argv + 2);
	must(0, argv[2]);
	return 127;
}
