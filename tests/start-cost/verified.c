/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints each BPF program that the kernel has: its name, the steps that the verifier took, and its instructions. */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

int main(void)
{
	union bpf_attr next = {};

	for (; !bpf(BPF_PROG_GET_NEXT_ID, &next); next.start_id = next.next_id) {
		struct bpf_prog_info info = {};
		union bpf_attr attr = { .prog_id = next.next_id };
		int fd = bpf(BPF_PROG_GET_FD_BY_ID, &attr);

		if (fd < 0)
			continue;
		memset(&attr, 0, sizeof(attr));
		attr.info.bpf_fd = fd;
		attr.info.info_len = sizeof(info);
		attr.info.info = (uintptr_t)&info;
		if (!bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
			printf("%s %u %u\n", info.name, info.verified_insns,
			       info.xlated_prog_len / 8);
		close(fd);
	}
	return 0;
}
