/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program limits itself by a subject of a capability file, as by Landlock: from then on it may do what the subject gives, and
 * nothing else. What limits it already goes on to do so, and nothing is ever gained by it. docs/reference/capability.md.
 *
 * When a function returns 0, all threads of the process are limited, and so is whatever it starts. What is open or mapped stays
 * as it is. There is no way back; 16 layers limit a process at most.
 *
 * Functions return 0, or -1 with errno set, and tg_restrict_error() has it in words:
 *   EINVAL     the file is wrong (the words say where), or has no such subject; an argument is NULL or no UTF-8
 *   ENOENT …   the file cannot be read
 *   ENOTCONN   the daemon does not run: `tidegate start`
 *   EACCES     this process may not connect to the daemon
 *   EPERM      not root, and a thread can still get new privileges: prctl(PR_SET_NO_NEW_PRIVS), which these functions do for the
 *              calling thread, before threads are made
 *   EBUSY      another process has its memory or its descriptors (CLONE_VM, CLONE_FILES); it is limited by 16 layers; its user
 *              has too many sessions; its threads cannot be interrupted
 *   EIO        the daemon could not
 *   EFAULT     a fault of this library's
 * After EBUSY and EIO some threads may be limited and others not: end the process rather than go on.
 *
 * They may be called by several threads at once. None installs a signal handler or starts a thread.
 */
#ifndef TIDEGATE_RESTRICT_H
#define TIDEGATE_RESTRICT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Limits this process by a subject of a capability file; NULL: the file's first. */
int tg_restrict_self(const char *file, const char *subject);

/* The same by a file's text, which includes nothing; `called` is how records call it. */
int tg_restrict_self_text(const char *called, const char *text, const char *subject);

/* What the last call of this thread that failed says, in words; "" if none did. Good until the thread's next call. */
const char *tg_restrict_error(void);

#ifdef __cplusplus
}
#endif

#endif
