/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object manager of the `te` model: quotas. */
#ifndef TIDEGATE_TE_QUOTA_H
#define TIDEGATE_TE_QUOTA_H

#include "te/mount.h"
#include "te/names.h"

SEC("lsm/quota_on")
int BPF_PROG(te_quota_on, struct dentry *dentry)
{
	return te_me().subject ? te_named_asked(dentry, FILE__QUOTAON, TG_OP_MOUNT) : 0;
}

SEC("lsm/quotactl")
int BPF_PROG(te_quotactl, int cmd, int type, int id, struct super_block *sb)
{
	if (!sb)
		return 0;
	switch (cmd) {
	case 0x800001: /* Q_SYNC */
	case 0x800002: /* Q_QUOTAON */
	case 0x800003: /* Q_QUOTAOFF */
	case 0x800006: /* Q_SETINFO */
	case 0x800008: /* Q_SETQUOTA */
	case 0x5801:   /* Q_XQUOTAON, Q_XQUOTAOFF, Q_XSETQLIM */
	case 0x5802:
	case 0x5804:
		return te_super_asked(address(sb), FILESYSTEM__QUOTAMOD);
	case 0x800004: /* Q_GETFMT */
	case 0x800005: /* Q_GETINFO */
	case 0x800007: /* Q_GETQUOTA */
	case 0x800009: /* Q_GETNEXTQUOTA */
	case 0x5803:   /* Q_XGETQUOTA, Q_XGETQSTAT, Q_XGETQSTATV, Q_XGETNEXTQUOTA */
	case 0x5805:
	case 0x5808:
	case 0x5809:
		return te_super_asked(address(sb), FILESYSTEM__QUOTAGET);
	}
	return 0;
}

#endif
