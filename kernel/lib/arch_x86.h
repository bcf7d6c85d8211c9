/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All that the kernel's side has to know of x86-64. A file like this one is what another architecture needs (lib/arch.h). */
#ifndef TIDEGATE_LIB_ARCH_X86_H
#define TIDEGATE_LIB_ARCH_X86_H

#include "lib/ksyms.h"
#include "lib/memory.h"

/* Calls of 64-bit programs: asm/unistd_64.h. */
#define NR_read 0
#define NR_write 1
#define NR_poll 7
#define NR_pread64 17
#define NR_pwrite64 18
#define NR_readv 19
#define NR_writev 20
#define NR_select 23
#define NR_sched_yield 24
#define NR_dup 32
#define NR_pause 34
#define NR_nanosleep 35
#define NR_accept 43
#define NR_sendto 44
#define NR_recvfrom 45
#define NR_sendmsg 46
#define NR_recvmsg 47
#define NR_clone 56
#define NR_fork 57
#define NR_vfork 58
#define NR_execve 59
#define NR_wait4 61
#define NR_semop 65
#define NR_msgsnd 69
#define NR_msgrcv 70
#define NR_fcntl 72
#define NR_flock 73
#define NR_fsync 74
#define NR_fdatasync 75
#define NR_syslog 103
#define NR_rt_sigtimedwait 128
#define NR_rt_sigsuspend 130
#define NR_setrlimit 160
#define NR_futex 202
#define NR_io_getevents 208
#define NR_restart_syscall 219
#define NR_semtimedop 220
#define NR_clock_nanosleep 230
#define NR_epoll_wait 232
#define NR_mq_timedsend 242
#define NR_mq_timedreceive 243
#define NR_waitid 247
#define NR_keyctl 250
#define NR_pselect6 270
#define NR_ppoll 271
#define NR_unshare 272
#define NR_epoll_pwait 281
#define NR_accept4 288
#define NR_preadv 295
#define NR_pwritev 296
#define NR_recvmmsg 299
#define NR_prlimit64 302
#define NR_open_by_handle_at 304
#define NR_sendmmsg 307
#define NR_execveat 322
#define NR_preadv2 327
#define NR_pwritev2 328
#define NR_io_pgetevents 333
#define NR_clone3 435
#define NR_close_range 436
#define NR_epoll_pwait2 441
#define NR_futex_waitv 449

/* Calls of 32-bit programs: asm/unistd_32.h. */
#define NR32_restart_syscall 0
#define NR32_fork 2
#define NR32_read 3
#define NR32_write 4
#define NR32_waitpid 7
#define NR32_execve 11
#define NR32_pause 29
#define NR32_dup 41
#define NR32_fcntl 55
#define NR32_setrlimit 75
#define NR32_select 82
#define NR32_syslog 103
#define NR32_wait4 114
#define NR32_fsync 118
#define NR32_clone 120
#define NR32__newselect 142
#define NR32_flock 143
#define NR32_readv 145
#define NR32_writev 146
#define NR32_fdatasync 148
#define NR32_sched_yield 158
#define NR32_nanosleep 162
#define NR32_poll 168
#define NR32_rt_sigtimedwait 177
#define NR32_rt_sigsuspend 179
#define NR32_pread64 180
#define NR32_pwrite64 181
#define NR32_vfork 190
#define NR32_fcntl64 221
#define NR32_futex 240
#define NR32_io_getevents 247
#define NR32_epoll_wait 256
#define NR32_clock_nanosleep 267
#define NR32_mq_timedsend 279
#define NR32_mq_timedreceive 280
#define NR32_waitid 284
#define NR32_keyctl 288
#define NR32_pselect6 308
#define NR32_ppoll 309
#define NR32_unshare 310
#define NR32_epoll_pwait 319
#define NR32_preadv 333
#define NR32_pwritev 334
#define NR32_recvmmsg 337
#define NR32_prlimit64 340
#define NR32_open_by_handle_at 342
#define NR32_sendmmsg 345
#define NR32_execveat 358
#define NR32_accept4 364
#define NR32_sendto 369
#define NR32_sendmsg 370
#define NR32_recvfrom 371
#define NR32_recvmsg 372
#define NR32_clock_nanosleep_time64 407
#define NR32_pselect6_time64 413
#define NR32_ppoll_time64 414
#define NR32_io_pgetevents_time64 416
#define NR32_recvmmsg_time64 417
#define NR32_mq_timedsend_time64 418
#define NR32_mq_timedreceive_time64 419
#define NR32_semtimedop_time64 420
#define NR32_rt_sigtimedwait_time64 421
#define NR32_futex_time64 422
#define NR32_clone3 435
#define NR32_close_range 436
#define NR32_epoll_pwait2 441

#define TS_COMPAT 2 /* in a 32-bit call */
#define O_DIRECT 040000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long orig_ax;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long bx;
	unsigned long cx;
};

struct pcpu_hot {
	int preempt_count;
};

#pragma clang attribute pop

/* The registers with which a task entered the kernel. */
static __always_inline struct pt_regs *call_regs(struct task_struct *t)
{
	return (struct pt_regs *)bpf_task_pt_regs(t);
}

#define X32_CALL 0x40000000 /* in a call's number: the program has pointers of 32 bits (x32) */

/*
 * The number of the call that a task is in, or was in last; below 0: it entered the kernel by none. The kernel takes the lower
 * half of the register alone, and keeps what the program had in the other half, too (syscall_get_nr()). Most calls of x32 have
 * the numbers of 64-bit programs, and their arguments in the same registers; those from 512 on are in no table (lib/arch.h).
 */
#define CALL_NUMBER(regs)                                    \
	({                                                   \
		s32 call_nr = (regs)->orig_ax;               \
		call_nr < 0 ? call_nr : call_nr & ~X32_CALL; \
	})

/* Is a task in a 32-bit call? Its number is one of those of NR32_. */
#define CALL_IS_32(t) ((t)->thread_info.status & TS_COMPAT)

/* Arguments of a 64-bit call. */
#define CALL_FIRST(regs) ((regs)->di)
#define CALL_SECOND(regs) ((regs)->si)
#define CALL_THIRD(regs) ((regs)->dx)
/* Arguments of a 32-bit call. */
#define CALL32_FIRST(regs) ((regs)->bx)
#define CALL32_SECOND(regs) ((regs)->cx)
#define CALL32_THIRD(regs) ((regs)->dx)

/*
 * What is read or written before is read or written before, on every processor. x86 keeps reads in order, and writes: only the
 * compiler has to be told.
 */
static __always_inline void in_order(void)
{
	asm volatile("" ::: "memory");
}

#define IN_INTERRUPT 0xff0100 /* serving one in software, or in hardware, of whichever kind */

/* Where the kernel counts that of a processor: until Linux 6.15 in its hottest line. Of another kernel it is not known. */
extern const struct pcpu_hot pcpu_hot __ksym __weak;

extern const int __preempt_count __ksym __weak;

static __always_inline bool in_interrupt(void)
{
	if (&__preempt_count)
		return *(const int *)bpf_this_cpu_ptr(&__preempt_count) & IN_INTERRUPT;
	if (&pcpu_hot)
		return ((const struct pcpu_hot *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count &
		       IN_INTERRUPT;
	return false;
}

/* Of an address of a struct page these highest bits are not all set. */
#define PAGE_MASK_TOP 24

/* Where the memory of a struct page is, in place of its address; false: that is not known. */
static __always_inline bool page_memory(u64 *page)
{
	if (!symbols.page_offset_base || !symbols.vmemmap_base || *page & 1)
		return false;
	*page = (*page - read_kernel_u64(symbols.vmemmap_base)) / bpf_core_type_size(struct page)
		<< 12;
	*page += read_kernel_u64(symbols.page_offset_base);
	return true;
}

#endif
