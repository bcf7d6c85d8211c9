/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the `capability` model: Linux capabilities. A governed task has those that only pass over
 * a file's owner and mode.
 */
#ifndef TIDEGATE_CAPS_CAPABLE_H
#define TIDEGATE_CAPS_CAPABLE_H

#include "caps/ask.h"

/* CAP_CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE */
#define CAPS_LINUX 0x5ffu

SEC("lsm/capable")
int BPF_PROG(caps_capable, const struct cred *cred, struct user_namespace *ns, int cap,
	     unsigned int opts)
{
	if (!caps_me() || (cap < 32 && CAPS_LINUX >> (cap & 31) & 1))
		return 0;
	if (opts & CAP_OPT_NOAUDIT)
		return -EPERM;
	return caps_deny(CAPS_NOBODYS, TG_OP_CAPABLE, TG_C_SYSTEM) ? -EPERM : 0;
}

#endif
