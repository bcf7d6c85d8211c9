/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel types the monitor reads, and no more of each than it reads.
 * CO-RE moves every access to where the running kernel keeps the field, so
 * one object serves 6.12 and later; a field that was renamed between kernels
 * is a `___` flavour beside its type.
 */
#ifndef TIDEGATE_LIB_KERNEL_TYPES_H
#define TIDEGATE_LIB_KERNEL_TYPES_H

#include <linux/version.h>

#include "abi/types.h"

typedef unsigned int fmode_t;
typedef unsigned short umode_t;

/* The kernel's own headers have it since then. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next, *prev;
};
struct hlist_node {
	struct hlist_node *next;
};
struct hlist_head {
	struct hlist_node *first;
};
struct hlist_bl_node {
	struct hlist_bl_node *next, **pprev;
};
struct rb_node {
	struct rb_node *rb_right, *rb_left;
};
struct rb_root {
	struct rb_node *rb_node;
};
struct rb_root_cached {
	struct rb_root rb_root;
};
typedef struct {
	int counter;
} atomic_t;
typedef struct {
	u32 val;
} kuid_t;

struct seqcount {
	unsigned int sequence;
};

struct ns_common {
	unsigned int inum;
};
struct user_namespace {
	struct user_namespace *parent;
	int level;
	kuid_t owner;
};
/* Since it has the field, global functions may be called while preemption is off. */
struct bpf_subprog_info {
	u32 might_sleep : 1;
};
struct mnt_namespace {
	struct ns_common ns;
	struct user_namespace *user_ns;
};

struct uts_namespace {
	struct user_namespace *user_ns;
};

struct pid_namespace {
	struct user_namespace *user_ns;
};

struct ipc_ids {
	int in_use;
};

struct ipc_namespace {
	struct ipc_ids ids[3];
	int sem_ctls[4];
	unsigned int msg_ctlmni;
	int shm_ctlmni;
	unsigned int mq_queues_count;
	unsigned int mq_queues_max;
};

struct net;
struct nsproxy {
	struct uts_namespace *uts_ns;
	struct ipc_namespace *ipc_ns;
	struct mnt_namespace *mnt_ns;
	struct net *net_ns;
};

struct qstr {
	union {
		struct {
			u32 hash;
			u32 len;
		};
		u64 hash_len;
	};
	const unsigned char *name;
};

struct file_system_type {
	const char *name;
	int fs_flags;
};

struct super_block {
	unsigned int s_dev;
	unsigned long s_flags;
	unsigned long s_magic;
	struct dentry *s_root;
	struct file_system_type *s_type;
	struct user_namespace *s_user_ns;
	void *s_fs_info;  /* of POSIX queues their namespace */
	void *s_encoding; /* with CONFIG_UNICODE */
	struct list_head s_mounts;
};
/* Since 6.18 a superblock's mounts are a plain singly linked list. */
struct super_block___6_18 {
	struct mount *s_mounts;
};

struct inode;
struct address_space {
	struct inode *host;
	struct rb_root_cached i_mmap;
};

struct pipe_inode_info {
	unsigned int readers;
	unsigned int writers;
};

struct file;
struct file_lock_core {
	struct list_head flc_list;
	struct file *flc_file;
};
struct file_lock_context {
	struct list_head flc_lease;
};

struct rw_semaphore {
	struct {
		s64 counter;
	} owner; /* the task that has it for writing, and a bit or two */
};

struct inode {
	umode_t i_mode;
	kuid_t i_uid;
	unsigned int i_flags;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	unsigned int i_nlink;
	unsigned int i_rdev;
	u32 i_generation;
	struct pipe_inode_info *i_pipe;
	struct file_lock_context *i_flctx;
	void *i_private;
	struct hlist_head i_dentry;
	struct rw_semaphore i_rwsem;
	atomic_t i_readcount;
	atomic_t i_writecount;
};
/* The state flags: an integer in 6.12, then an enumeration, then wrapped in a structure. */
struct inode___6_12 {
	u32 i_state;
};
enum inode_state_flags_t { I_NEW_ = 1 };
struct inode___6_18 {
	enum inode_state_flags_t i_state;
};
enum inode_state_flags_enum { I_NEW__ = 1 };
struct inode_state_flags {
	enum inode_state_flags_enum __state;
};
struct inode___7_0 {
	struct inode_state_flags i_state;
};

/* Until Linux had this as an enum it was 0x10000; what else the two bits were then is no harm where it is asked for. */
enum dentry_flags { DCACHE_MOUNTED = 0x8000 };
#define DENTRY_IS_MOUNTED                                                 \
	(bpf_core_enum_value_exists(enum dentry_flags, DCACHE_MOUNTED) ?  \
		 bpf_core_enum_value(enum dentry_flags, DCACHE_MOUNTED) : \
		 0x18000)
struct lockref {
	int count;
};
struct dentry {
	struct lockref d_lockref;
	unsigned int d_flags;
	struct {
		struct seqcount seqcount;
	} d_seq;
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	struct super_block *d_sb;
	void *d_fsdata;
	union {
		struct hlist_node d_alias;
	} d_u;
};
/* No member of a union any more. */
struct dentry___7_2 {
	struct hlist_node d_alias;
};

struct mnt_idmap;
struct vfsmount {
	struct dentry *mnt_root;
	struct super_block *mnt_sb;
	int mnt_flags;
	struct mnt_idmap *mnt_idmap;
};
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct list_head mnt_mounts;
	struct list_head mnt_child;
	struct list_head mnt_instance;
	struct list_head mnt_share;
	struct list_head mnt_slave_list; /* a struct hlist_head since Linux 6.17, */
	struct list_head mnt_slave;      /* and its nodes */
	struct mount *mnt_master;
	struct mnt_namespace *mnt_ns;
	u64 mnt_id_unique;
};
struct mount___6_18 {
	struct mount *mnt_next_for_sb;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	fmode_t f_mode;
	unsigned int f_flags;
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
	const struct cred *f_cred;
};

struct file___6_12 {
	struct {
		s64 counter;
	} f_count;
};
struct file___6_13 {
	struct {
		struct {
			s64 counter;
		} refcnt;
	} f_ref;
};

/* What is behind another's file, and that one's path. */
struct backing_file {
	struct file file;
	struct path user_path;
};

struct io_uring_cmd {
	struct file *file;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *open_fds;
};
struct files_struct {
	atomic_t count;
	struct fdtable *fdt;
};
struct io_context {
	atomic_t active_ref;
};
typedef struct {
	atomic_t refs;
} refcount_t;
struct sem_undo_list {
	refcount_t refcnt;
};
struct sysv_sem {
	struct sem_undo_list *undo_list;
};
struct fs_struct {
	int users;
	struct path root;
	struct path pwd;
};

/* A look-up of a path. */
struct filename {
	const char *name;
};
struct nameidata {
	struct filename *name;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	void *anon_vma;
	unsigned long vm_flags;
	void *vm_ops;
	struct file *vm_file;
	struct mm_struct *vm_mm;
	struct {
		struct rb_node rb;
	} shared;
};
struct kioctx;
struct kioctx_table {
	unsigned int nr;
	struct kioctx *table[];
};
struct mm_struct {
	atomic_t mm_count;
	atomic_t mm_users;
	int map_count;
	struct seqcount mm_lock_seq; /* with CONFIG_PER_VMA_LOCK */
	unsigned long arg_start;
	unsigned long start_brk;
	unsigned long brk;
	unsigned long start_stack;
	struct kioctx_table *ioctx_table;
	struct task_struct *owner; /* with CONFIG_MEMCG */
};
/* Until that was a seqcount. */
struct mm_struct___6_12 {
	struct {
		struct {
			s64 counter;
		} count;
	} mmap_lock;
	int mm_lock_seq;
};
struct completion;

struct key_type {
	const char *name;
};
struct key {
	s32 serial;
	kuid_t uid;
	struct key_type *type;
};
struct kern_ipc_perm;
struct msg_queue {
	struct list_head q_messages;
};
struct sockaddr {
	unsigned short sa_family;
};
/* Until Linux did without DCCP. */
struct dccp_hdr {
	u16 dccph_sport;
};
struct kernel_siginfo;
struct rlimit {
	unsigned long rlim_max;
};
struct bpf_map {
	u32 id;
};
struct bpf_prog;
struct iattr {
	unsigned int ia_valid;
};
struct bio_vec;
struct iovec {
	void *iov_base;
	u64 iov_len;
};
struct iov_iter {
	u8 iter_type;
	u64 iov_offset;
	const struct iovec *__iov;
	const struct bio_vec *bvec;
	void *ubuf;
	u64 count;
	u64 nr_segs;
};
struct msghdr {
	void *msg_name;
	int msg_namelen;
	struct iov_iter msg_iter;
	void *msg_control;
	unsigned int msg_flags;
	u64 msg_controllen;
};
struct timespec64;
struct perf_event_attr;
struct linux_binprm;
struct msg_msg;
struct sembuf;

struct perf_event {
	struct {
		struct task_struct *target; /* none: a counter of whatever runs on a processor */
	} hw;
	struct list_head owner_entry; /* its place among those that a task has opened */
	struct list_head child_list;  /* its copies, of the task's children; in a copy its place */
};
struct userfaultfd_ctx {
	struct mm_struct *mm;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};
struct proc_inode {
	struct pid *pid;
	struct inode vfs_inode;
};
struct xarray {
	void *xa_head;
};
struct io_uring_task {
	struct xarray xa;
};

struct mutex {
	struct {
		s64 counter;
	} owner;
};
struct signal_struct {
	int nr_threads;
	struct list_head thread_head;
	struct mutex cred_guard_mutex;
	atomic_t live;
	unsigned int flags;
	struct pid *pids[4];
	struct rlimit rlim[16];
};
struct tty_struct {
	struct {
		struct pid *session;
	} ctrl;
	struct tty_struct *link; /* the other end of a pty */
	void *driver_data;       /* of a console: struct vc_data */
};
struct vc_data {
	struct {
		struct tty_struct *tty; /* none: nobody has it open */
	} port;
	unsigned char vc_mode;
	struct vc_data **vc_display_fg; /* where the console that is shown is noted */
};
struct tty_file_private {
	struct tty_struct *tty;
};
struct cred;
struct thread_info {
	u32 status;
};
struct sigpending {
	struct {
		unsigned long sig[1];
	} signal;
};

struct bpf_local_storage;

struct seccomp_filter {
	struct seccomp_filter *prev;
	struct notification *notif;
};

struct seccomp {
	struct seccomp_filter *filter;
};
struct task_struct {
	struct thread_info thread_info;
	void *stack;
	unsigned int flags;
	int exit_state;
	int pdeath_signal;
	int pid;
	int tgid;
	unsigned int personality;
	unsigned long atomic_flags;
	u64 start_boottime;
	struct mm_struct *mm;
	struct fs_struct *fs;
	struct io_context *io_context;
	struct sysv_sem sysvsem;
	struct nameidata *nameidata;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct bpf_local_storage *bpf_storage;
	struct io_uring_task *io_uring;
	int on_cpu; /* since Linux 7 a byte: by its offset only */
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	unsigned int __state;
	unsigned int frozen : 1; /* with CONFIG_CGROUPS */
	struct task_struct *real_parent;
	struct task_struct *parent;
	unsigned int ptrace;
	struct list_head ptraced;
	struct list_head tasks;
	struct list_head thread_node;
	struct completion *vfork_done;
	struct signal_struct *signal;
	int exit_code;
	struct sigpending pending;
	const struct cred *real_cred;
	const struct cred *cred;
	struct seccomp seccomp;
	struct list_head perf_event_list; /* of the counters that it has opened */
	char comm[16];
};

struct cred {
	kuid_t uid;
	kuid_t suid;
	kuid_t euid;
	kuid_t fsuid;
	struct {
		u64 val;
	} cap_effective;
	struct user_namespace *user_ns;
};

struct linux_binprm {
	struct file *executable;
	struct file *interpreter;
	struct file *file;
	struct cred *cred;
	unsigned int unsafe; /* LSM_UNSAFE_* */
	const char *filename;
	const char *interp; /* of a script its interpreter's */
};

#pragma clang attribute pop

#endif
