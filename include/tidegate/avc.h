/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An access vector cache for object managers in user space, by the SELinux policy that Tidegate enforces. Functions are
 * called as libselinux calls its own (selinux/avc.h, selinux/selinux.h), with tg_ before; the cache is a handle, so that a
 * library may have one of its own.
 *
 * Functions that return int return 0, or -1 with errno set:
 *   EACCES     the policy does not allow it, or the daemon says that this process may not ask
 *   EINVAL     the policy has no such context, class or name; or an argument is none: NULL, no UTF-8, a made-up SID
 *   ENOTCONN   the daemon does not run, and what is asked is not in the cache: `tidegate start`
 *   EIO        the daemon gave no answer that can be used
 *   ENOSPC     no room for more contexts (2^20), classes (2^12), or permissions in a class (32)
 *   ENOMEM, EFAULT   no memory; a fault of this library's
 * tg_avc_error() has it in words, for the calling thread.
 *
 * All functions may be called by several threads at once, but for tg_avc_close(), after which none may use the handle. None
 * installs a signal handler, starts a thread, or writes to standard error. After fork(2) parent and child have a cache each.
 */
#ifndef TIDEGATE_AVC_H
#define TIDEGATE_AVC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cache. */
struct tg_avc;

/* A class of objects as this process declared it. It lives as long as the cache. */
struct tg_class;

/* A number for a context in this cache, from 1. It stands for the same context under any policy. */
typedef uint32_t tg_security_id_t;

/* Permissions of a class, a bit each: the first one declared is bit 0. */
typedef uint32_t tg_access_vector_t;

/* What may be done, and what of it is recorded (struct av_decision). */
struct tg_av_decision {
	tg_access_vector_t allowed;
	tg_access_vector_t auditallow;
	tg_access_vector_t auditdeny;
	uint32_t permissive; /* not 0: what is not allowed is let through */
};

/* What is in force, as the status page says (struct selinux_kernel_status). */
struct tg_status {
	uint32_t sequence;     /* another number, and no decision of before counts */
	uint32_t enforcing;    /* 0: what is not allowed is let through */
	uint32_t policyload;   /* the policy's number */
	uint32_t deny_unknown; /* what the policy does not know is refused */
	uint32_t enabled;      /* 0: no SELinux policy is in force, and all may be done */
};

/*
 * Opens a cache by the policy that Tidegate enforces here; NULL with errno set if it cannot be: ENOENT where Tidegate has
 * not been started since the machine was, EPERM if others than root could change the status page.
 */
struct tg_avc *tg_avc_open(void);

/* Ends a cache, its classes with it. NULL is nothing. */
void tg_avc_close(struct tg_avc *avc);

/* What the last call of this thread that failed says, in words; "" if none did. Good until the thread's next call. */
const char *tg_avc_error(void);

/* The number of a context. Whether the policy has it shows when it is asked about (avc_context_to_sid(3)). */
int tg_avc_context_to_sid(struct tg_avc *avc, const char *context, tg_security_id_t *sid);

/* The context of a number, to be freed by tg_freecon() (avc_sid_to_context(3)). */
int tg_avc_sid_to_context(struct tg_avc *avc, tg_security_id_t sid, char **context);

/* The number of the context of an initial SID: "unlabeled", "kernel", … (avc_get_initial_sid(3)). */
int tg_avc_get_initial_sid(struct tg_avc *avc, const char *name, tg_security_id_t *sid);

/*
 * Declares a class and its permissions, NULL after the last (selinux_set_mapping(3)); NULL with errno set if there is no
 * room. The policy need not know them: what becomes of those that it does not is its handle_unknown.
 */
const struct tg_class *tg_string_to_security_class(struct tg_avc *avc, const char *name,
						   const char *const *permissions);

/* The bit of a permission; 0 if none of that name was declared (string_to_av_perm(3)). */
tg_access_vector_t tg_string_to_av_perm(const struct tg_class *tclass, const char *permission);

/*
 * May the source do all of this to the target? A refusal is recorded in Tidegate's audit log, if the policy does not say
 * otherwise, and so is what it wants recorded; `about` says of which object, or is NULL (avc_has_perm(3)). What is in the
 * cache takes no system call.
 */
int tg_avc_has_perm(struct tg_avc *avc, tg_security_id_t source, tg_security_id_t target,
		    const struct tg_class *tclass, tg_access_vector_t requested, const char *about);

/* The same without a record; the decision goes to `decision`, if that is not NULL (avc_has_perm_noaudit(3)). */
int tg_avc_has_perm_noaudit(struct tg_avc *avc, tg_security_id_t source, tg_security_id_t target,
			    const struct tg_class *tclass, tg_access_vector_t requested,
			    struct tg_av_decision *decision);

/* The same by texts, for callers that ask seldom (selinux_check_access(3)). */
int tg_check_access(struct tg_avc *avc, const char *source, const char *target, const char *tclass,
		    const char *permission, const char *about);

/*
 * The number of the context of what the source makes by the target; `name` is what it will be called there, or NULL
 * (avc_compute_create(3), security_compute_create_name(3)).
 */
int tg_avc_compute_create(struct tg_avc *avc, tg_security_id_t source, tg_security_id_t target,
			  const struct tg_class *tclass, const char *name, tg_security_id_t *made);

/* The same of the member of a polyinstantiated object (avc_compute_member(3)), and of what is relabelled. */
int tg_avc_compute_member(struct tg_avc *avc, tg_security_id_t source, tg_security_id_t target,
			  const struct tg_class *tclass, tg_security_id_t *member);
int tg_avc_compute_relabel(struct tg_avc *avc, tg_security_id_t source, tg_security_id_t target,
			   const struct tg_class *tclass, tg_security_id_t *relabelled);

/* A context as the policy writes it, to be freed by tg_freecon() (security_canonicalize_context(3)). */
int tg_security_canonicalize_context(struct tg_avc *avc, const char *context, char **canonical);

/*
 * The context that the peer had when it connected: `fd` is what accept(2) gave of a Unix stream
 * socket (getpeercon(3)). Unlike SO_PEERCRED's pid it is nobody else's by now. EINVAL of another
 * end, such as a pair's. To be freed by tg_freecon().
 */
int tg_getpeercon(struct tg_avc *avc, int fd, char **context);

/* The context of a process by its pidfd (getpidcon(3)), and of this one (getcon(3)). To be freed by tg_freecon(). */
int tg_getpidfdcon(struct tg_avc *avc, int pidfd, char **context);
int tg_getcon(struct tg_avc *avc, char **context);

/* Frees a context (freecon(3)). NULL is nothing. */
void tg_freecon(char *context);

/* What is in force. EAGAIN: it is being changed just now (selinux_status_*(3)). */
int tg_avc_status(struct tg_avc *avc, struct tg_status *status);

/* The status page's number; after another one no decision of before is used. No system call. */
uint32_t tg_avc_sequence(struct tg_avc *avc);

/* Waits until the page has another number than this: 1. 0: it has not within so many milliseconds. */
int tg_avc_wait(struct tg_avc *avc, uint32_t sequence, uint32_t milliseconds);

#ifdef __cplusplus
}
#endif
#endif
