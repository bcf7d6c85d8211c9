/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: other processes, and capabilities. selinux_task_*() of security/selinux/hooks.c. */
#ifndef TIDEGATE_TE_TASK_H
#define TIDEGATE_TE_TASK_H

/* May the current task do this to another? */
static __always_inline int te_task_asked(struct task_struct *target, u32 request, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_TASK };
	struct te_who who = te_me();

	if (!who.subject)
		return 0;
	n.peer = target->tgid;
	return te_may(who.sid, te_sid_of(target), SECCLASS_PROCESS, request, &n);
}

#define SIGKILL_NUMBER 9
#define SIGCHLD_NUMBER 17
#define SIGSTOP_NUMBER 19

static __always_inline u32 te_signal_request(int sig)
{
	switch (sig) {
	case 0:
		return PROCESS__SIGNULL;
	case SIGCHLD_NUMBER:
		return PROCESS__SIGCHLD;
	case SIGKILL_NUMBER:
		return PROCESS__SIGKILL;
	case SIGSTOP_NUMBER:
		return PROCESS__SIGSTOP;
	}
	return PROCESS__SIGNAL;
}

SEC("lsm/task_kill")
int BPF_PROG(te_task_kill, struct task_struct *p, struct kernel_siginfo *info, int sig)
{
	return te_task_asked(p, te_signal_request(sig), TG_OP_SIGNAL);
}

SEC("lsm/ptrace_access_check")
int BPF_PROG(te_ptrace_access_check, struct task_struct *child, unsigned int mode)
{
	struct tg_note n = { .op = TG_OP_PTRACE, .class = TG_C_TASK };
	struct te_who who = te_me();

	if (!who.subject)
		return 0;
	n.peer = child->tgid;
	/* PTRACE_MODE_READ: what is in /proc */
	if (mode & 1)
		return te_may(who.sid, te_sid_of(child), SECCLASS_FILE, FILE__READ, &n);
	return te_may(who.sid, te_sid_of(child), SECCLASS_PROCESS, PROCESS__PTRACE, &n);
}

SEC("lsm/ptrace_traceme")
int BPF_PROG(te_ptrace_traceme, struct task_struct *parent)
{
	struct tg_note n = { .op = TG_OP_PTRACE, .class = TG_C_TASK };
	struct te_subject *s = te_subjects_current();
	u64 tracer = te_sid_of(parent);

	/* who is not governed traces as it likes */
	if (!tracer)
		return 0;
	n.peer = parent->tgid;
	return te_may(tracer, s ? s->sid : TE_UNGOVERNED, SECCLASS_PROCESS, PROCESS__PTRACE, &n);
}

SEC("lsm/task_setpgid")
int BPF_PROG(te_task_setpgid, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__SETPGID, TG_OP_SIGNAL);
}

SEC("lsm/task_getpgid")
int BPF_PROG(te_task_getpgid, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__GETPGID, TG_OP_GETATTR);
}

SEC("lsm/task_getsid")
int BPF_PROG(te_task_getsid, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__GETSESSION, TG_OP_GETATTR);
}

SEC("lsm/task_setnice")
int BPF_PROG(te_task_setnice, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__SETSCHED, TG_OP_SCHED);
}

SEC("lsm/task_setioprio")
int BPF_PROG(te_task_setioprio, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__SETSCHED, TG_OP_SCHED);
}

SEC("lsm/task_getioprio")
int BPF_PROG(te_task_getioprio, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__GETSCHED, TG_OP_GETATTR);
}

SEC("lsm/task_setscheduler")
int BPF_PROG(te_task_setscheduler, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__SETSCHED, TG_OP_SCHED);
}

SEC("lsm/task_getscheduler")
int BPF_PROG(te_task_getscheduler, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__GETSCHED, TG_OP_GETATTR);
}

SEC("lsm/task_movememory")
int BPF_PROG(te_task_movememory, struct task_struct *p)
{
	return te_task_asked(p, PROCESS__SETSCHED, TG_OP_SCHED);
}

SEC("lsm/task_setrlimit")
int BPF_PROG(te_task_setrlimit, struct task_struct *p, unsigned int resource, struct rlimit *new)
{
	u64 now = address(p->signal) + bpf_core_field_offset(struct signal_struct, rlim) +
		  BOUND(resource, TG_RLIMITS) * bpf_core_type_size(struct rlimit);

	/* of itself only a hard limit: a soft one is the program's own */
	if (p->tgid == bpf_get_current_pid_tgid() >> 32 &&
	    CAST(struct rlimit, now)->rlim_max == CAST(struct rlimit, address(new))->rlim_max)
		return 0;
	return te_task_asked(p, PROCESS__SETRLIMIT, TG_OP_SCHED);
}

#define LSM_PRLIMIT_READ 1
#define LSM_PRLIMIT_WRITE 2

/* Of another's limits only its credentials are told. */
SEC("lsm/task_prlimit")
int BPF_PROG(te_task_prlimit, const struct cred *cred, const struct cred *tcred, unsigned int flags)
{
	struct tg_note n = { .op = TG_OP_SCHED, .class = TG_C_TASK };
	struct te_who who = te_me();
	u32 request = 0;

	if (!who.subject)
		return 0;
	if (flags & LSM_PRLIMIT_WRITE)
		request |= PROCESS__SETRLIMIT;
	if (flags & LSM_PRLIMIT_READ)
		request |= PROCESS__GETRLIMIT;
	return request ?
		       te_may(who.sid, te_cred_sid(address(tcred)), SECCLASS_PROCESS, request, &n) :
		       0;
}

SEC("lsm/capget")
int BPF_PROG(te_capget, const struct task_struct *target)
{
	struct task_struct *t = bpf_task_from_pid(CAST(struct task_struct, address(target))->pid);
	int err;

	if (!t)
		return 0;
	err = te_task_asked(t, PROCESS__GETCAP, TG_OP_GETATTR);
	bpf_task_release(t);
	return err;
}

SEC("lsm/capset")
int BPF_PROG(te_capset, struct cred *new)
{
	struct tg_note n = { .op = TG_OP_SYSTEM, .class = TG_C_TASK };
	struct te_who who = te_me();

	return who.subject ? te_may(who.sid, who.sid, SECCLASS_PROCESS, PROCESS__SETCAP, &n) : 0;
}

SEC("lsm/capable")
int BPF_PROG(te_capable, const struct cred *cred, struct user_namespace *ns, int cap,
	     unsigned int opts)
{
	struct tg_note n = { .op = TG_OP_CAPABLE, .class = TG_C_SYSTEM };
	struct te_who who = te_me();
	bool initial = !CAST(struct user_namespace, address(ns))->level;
	u32 class, bit;

	if (!who.subject)
		return 0;
	if (cap & 32)
		class = initial ? SECCLASS_CAPABILITY2 : SECCLASS_CAP2_USERNS;
	else
		class = initial ? SECCLASS_CAPABILITY : SECCLASS_CAP_USERNS;
	bit = 1u << (cap & 31);
	n.port = cap;
	if (opts & CAP_OPT_NOAUDIT)
		return te_is_allowed(who.sid, who.sid, class, bit) ? 0 : -EACCES;
	return te_may(who.sid, who.sid, class, bit, &n) ? -EPERM : 0;
}

SEC("lsm/userns_create")
int BPF_PROG(te_userns_create, const struct cred *cred)
{
	struct tg_note n = { .op = TG_OP_USERNS, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	return who.subject ? te_may(who.sid, who.sid, SECCLASS_USER_NAMESPACE,
				    USER_NAMESPACE__CREATE, &n) :
			     0;
}

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
	return te_may(who.sid, te_initial_sid(TE_SID_KERNEL), SECCLASS_SYSTEM, request, &n);
}

SEC("lsm/kernel_module_request")
int BPF_PROG(te_kernel_module_request, char *name)
{
	struct tg_note n = { .op = TG_OP_MODULE, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	if (!who.subject)
		return 0;
	return te_may(who.sid, te_initial_sid(TE_SID_KERNEL), SECCLASS_SYSTEM,
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

/* Who has something loaded. Firmware is looked for by credentials of the kernel's own, whoever it is for. */
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
	return sid == TE_LATER ? -EAGAIN : te_may(who.sid, sid, SECCLASS_SYSTEM, request, &n);
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
	return te_may(who.sid, who.sid, SECCLASS_SYSTEM, request, &n);
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
		return te_may(who.sid, who.sid, SECCLASS_BPF, BPF__MAP_CREATE, &n);
	if (cmd == 5)
		return te_may(who.sid, who.sid, SECCLASS_BPF, BPF__PROG_LOAD, &n);
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
	return te_may(who.sid, te_ipc_sid(address(map)), SECCLASS_BPF, request, &n);
}

SEC("lsm/bpf_prog")
int BPF_PROG(te_bpf_prog, struct bpf_prog *prog)
{
	struct tg_note n = { .op = TG_OP_BPF, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	return who.subject ?
		       te_may(who.sid, te_ipc_sid(address(prog)), SECCLASS_BPF, BPF__PROG_RUN, &n) :
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
	return te_may(who.sid, who.sid, SECCLASS_PERF_EVENT, request, &n);
}

static __always_inline int te_perf_asked(u32 request)
{
	struct tg_note n = { .op = TG_OP_SYSTEM, .class = TG_C_SYSTEM };
	struct te_who who = te_me();

	return who.subject ? te_may(who.sid, who.sid, SECCLASS_PERF_EVENT, request, &n) : 0;
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
