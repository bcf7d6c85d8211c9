#!/bin/bash
# Debian's own policy, in domains of services and users, on Debian's own files: SELinux's verdicts and Tidegate's, which
# have to be equal but for what differs/debian lists.
#   debian.sh LAB PAYLOAD KERNEL   the lab's program; a directory with te-ops, and tidegate
# TE_TWICE=1 boots SELinux twice, which has to say the same; TE_SELINUX=LOG has what it said another time. The last line is
# `N passed, N failed`.
set -eu
lab=$1 payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/te/machines.sh
. "$here/machines.sh"
image=(--image measured)

cp "$here/debian.cil" "$here/debian-selinux.sh" "$here/debian-tidegate.sh" "$here/flat.plm" "$payload"
# the domains are named once, in the module
sed -n '/^(typeattributeset te_ops_domain (/,/))$/p' "$here/debian.cil" | tr -s '()\t\n' ' ' | tr ' ' '\n' |
	sed -n 's/^\([a-zA-Z_]*_t\)$/\1 system_u:system_r:\1:s0/p' >"$payload/contexts"
play() {
	in_machine "$1" "$2" /bin/sh "/payload/debian-$1.sh"
}
if [ -n "${TE_SELINUX:-}" ]; then
	[ "$TE_SELINUX" -ef "$payload/selinux.log" ] || cp "$TE_SELINUX" "$payload/selinux.log"
else
	play selinux selinux
fi
set --
if [ "${TE_TWICE:-}" = 1 ]; then
	play selinux again
	set -- "$@" --again "$payload/again.log"
fi
play tidegate tidegate
"$here/check.py" "$payload/contexts" - "$payload/selinux.log" "$@" \
	--tidegate "$payload/tidegate.log" --differs "$here/differs/debian"
