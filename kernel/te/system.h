/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: the kernel's log, modules, maps and programs of BPF, performance counters. */
#ifndef TIDEGATE_TE_SYSTEM_H
#define TIDEGATE_TE_SYSTEM_H

#include "lib/file.h"
#include "te/cred.h"
#include "te/inode_sid.h"
#include "te/ipc.h"

SEC("lsm/syslog")
int BPF_PROG(te_syslog, int type)
{
	struct tg_note n = { .op = TG_OP_SYSTEM, .class = TG_C_SYSTEM };
	struct te_who who = te_me();
	u32 request = SYSTEM__SYSLOG_MOD;

	if (!who.subject)
		return 0;
	/* SYSLOG_ACTION_READ_ALL, SIZE_BUFFER; CONSOLE_OFF, CONSOLE_ON, CONSOLE_LEVEL */
	if (type == 3 || type == 10)
		request = SYSTEM__SYSLOG_READ;
	else if (type >= 6 && type <= 8)
		request = SYSTEM__SYSLOG_CONSOLE;
	return te_avc_has_perm(who.sid, te_initial_sid(TE_SID_KERNEL), SECCLASS_SYSTEM, request,
			       &n);
}

SEC("lsm/kernel_module_request")
int BPF_PROG(te_kernel_module_request, char *name)
{
	struct tg_note n = { .op = TG_OP_MODULE, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	if (!who.subject)
		return 0;
	return te_avc_has_perm(who.sid, te_initial_sid(TE_SID_KERNEL), SECCLASS_SYSTEM,
			       SYSTEM__MODULE_REQUEST, &n);
}

/* What is loaded, by the numbers of enum kernel_read_file_id and of enum kernel_load_data_id, which are the same. */
static const u32 te_load_requests[8] = {
	[1] = SYSTEM__FIRMWARE_LOAD,    [2] = SYSTEM__MODULE_LOAD,
	[3] = SYSTEM__KEXEC_IMAGE_LOAD, [4] = SYSTEM__KEXEC_INITRAMFS_LOAD,
	[5] = SYSTEM__POLICY_LOAD,      [6] = SYSTEM__X509_CERTIFICATE_LOAD,
};

/* Since Linux 7.0: a module that the kernel decompresses. */
enum kernel_read_file_id { READING_MODULE_COMPRESSED = 7 };
#define HAS_MODULE_COMPRESSED \
	bpf_core_enum_value_exists(enum kernel_read_file_id, READING_MODULE_COMPRESSED)
#define MODULE_COMPRESSED bpf_core_enum_value(enum kernel_read_file_id, READING_MODULE_COMPRESSED)

/* Since Linux 6.15 SELinux asks about all that is loaded, before that about modules. A newer one may be without SELinux. */
extern int selinux_kernel_load_from_file(struct file *file, u32 requested) __ksym __weak;

/* The permission that loading takes; 0: it is not asked for. */
static __always_inline u32 te_load_request(u32 id)
{
	u32 request;

	if (HAS_MODULE_COMPRESSED && id == MODULE_COMPRESSED)
		return SYSTEM__MODULE_LOAD;
	request = id < 8 ? te_load_requests[BOUND(id, 8)] : 0;
	if (request != SYSTEM__MODULE_LOAD && !HAS_MODULE_COMPRESSED &&
	    !bpf_ksym_exists(selinux_kernel_load_from_file))
		return 0;
	return request;
}

/*
 * The subject that has something loaded. Firmware is looked for by credentials of the kernel's own,
 * whichever task it is for.
 */
static __always_inline struct te_who te_loader(void)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct te_who who = te_me();

	if (!who.subject || address(me->cred) == address(me->real_cred))
		return who;
	who.sid = te_cred_sid(address(me->cred));
	if (!who.sid && !te_everyone)
		who.subject = NULL;
	return who;
}

/* selinux_kernel_read_file() */
SEC("lsm/kernel_read_file")
int BPF_PROG(te_kernel_read_file, struct file *file, int id)
{
	struct tg_note n = { .op = TG_OP_MODULE, .class = TG_C_SYSTEM };
	u32 request = te_load_request(id);
	struct te_who who = te_loader();
	u64 sid;

	if (!request || !who.subject || !file)
		return 0;
	n.inode = address(file->f_inode);
	n.dentry = file_dentry(file);
	sid = te_inode_sid(file->f_inode, file_dentry(file));
	return sid == TE_LATER ? -EAGAIN :
				 te_avc_has_perm(who.sid, sid, SECCLASS_SYSTEM, request, &n);
}

/* What comes from memory, as by init_module(2): selinux_kernel_load_data() */
SEC("lsm/kernel_load_data")
int BPF_PROG(te_kernel_load_data, int id)
{
	struct tg_note n = { .op = TG_OP_MODULE, .class = TG_C_SYSTEM };
	u32 request = te_load_request(id);
	struct te_who who = te_loader();

	if (!request || !who.subject)
		return 0;
	return te_avc_has_perm(who.sid, who.sid, SECCLASS_SYSTEM, request, &n);
}

SEC("lsm/bpf")
int BPF_PROG(te_bpf, int cmd)
{
	struct tg_note n = { .op = TG_OP_BPF, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	if (!who.subject)
		return 0;
	/* BPF_MAP_CREATE, BPF_PROG_LOAD */
	if (cmd == 0)
		return te_avc_has_perm(who.sid, who.sid, SECCLASS_BPF, BPF__MAP_CREATE, &n);
	if (cmd == 5)
		return te_avc_has_perm(who.sid, who.sid, SECCLASS_BPF, BPF__PROG_LOAD, &n);
	return 0;
}

/* BPF_F_RDONLY_PROG and its like apart: what a descriptor of a map is for. bpf_fd_pass() */
SEC("lsm/bpf_map")
int BPF_PROG(te_bpf_map, struct bpf_map *map, unsigned int mode)
{
	struct tg_note n = { .op = TG_OP_BPF, .class = TG_C_SYSTEM };
	struct te_who who = te_me();
	u32 request = 0;

	if (!who.subject)
		return 0;
	if (mode & FMODE_READ)
		request |= BPF__MAP_READ;
	if (mode & FMODE_WRITE)
		request |= BPF__MAP_WRITE;
	return te_avc_has_perm(who.sid, te_ipc_sid(address(map)), SECCLASS_BPF, request, &n);
}

SEC("lsm/bpf_prog")
int BPF_PROG(te_bpf_prog, struct bpf_prog *prog)
{
	struct tg_note n = { .op = TG_OP_BPF, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	return who.subject ? te_avc_has_perm(who.sid, te_ipc_sid(address(prog)), SECCLASS_BPF,
					     BPF__PROG_RUN, &n) :
			     0;
}

/* Maps and programs are their makers', by their addresses. */
static __always_inline int te_bpf_made(u64 at)
{
	struct te_who who = te_me();

	return who.subject ? te_ipc_label(at, who.sid, SECCLASS_BPF) : 0;
}

SEC("lsm/bpf_map_create")
int BPF_PROG(te_bpf_map_create, struct bpf_map *map)
{
	return te_bpf_made(address(map));
}

SEC("lsm/bpf_prog_load")
int BPF_PROG(te_bpf_prog_load, struct bpf_prog *prog)
{
	return te_bpf_made(address(prog));
}

SEC("lsm/bpf_map_free")
int BPF_PROG(te_bpf_map_free, struct bpf_map *map)
{
	return te_ipc_forget(address(map));
}

SEC("lsm/bpf_prog_free")
int BPF_PROG(te_bpf_prog_free, struct bpf_prog *prog)
{
	return te_ipc_forget(address(prog));
}

SEC("lsm/perf_event_open")
int BPF_PROG(te_perf_event_open, int type)
{
	struct tg_note n = { .op = TG_OP_SYSTEM, .class = TG_C_SYSTEM };
	struct te_who who = te_me();
	u32 request = PERF_EVENT__OPEN;

	if (!who.subject)
		return 0;
	/* PERF_SECURITY_CPU, _KERNEL, _TRACEPOINT */
	if (type == 1)
		request = PERF_EVENT__CPU;
	else if (type == 2)
		request = PERF_EVENT__KERNEL;
	else if (type == 3)
		request = PERF_EVENT__TRACEPOINT;
	return te_avc_has_perm(who.sid, who.sid, SECCLASS_PERF_EVENT, request, &n);
}

static __always_inline int te_perf_asked(u32 request)
{
	struct tg_note n = { .op = TG_OP_SYSTEM, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	return who.subject ? te_avc_has_perm(who.sid, who.sid, SECCLASS_PERF_EVENT, request, &n) :
			     0;
}

SEC("lsm/perf_event_read")
int BPF_PROG(te_perf_event_read)
{
	return te_perf_asked(PERF_EVENT__READ);
}

SEC("lsm/perf_event_write")
int BPF_PROG(te_perf_event_write)
{
	return te_perf_asked(PERF_EVENT__WRITE);
}

#endif
