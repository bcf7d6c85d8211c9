#!/bin/bash
# Debian's own policy, in domains of services and users, on Debian's own files: SELinux's verdicts.
#   debian.sh LAB PAYLOAD KERNEL   the lab's program; a directory with te-ops, and tidegate
# TE_TWICE=1 boots twice, which has to say the same. The last line is `N passed, N failed`.
set -eu
lab=$1 payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/te/machines.sh
. "$here/machines.sh"
image=(--image measured)

cp "$here/debian.cil" "$here/debian-selinux.sh" "$payload"
# the domains are named once, in the module
sed -n '/^(typeattributeset te_ops_domain (/,/))$/p' "$here/debian.cil" | tr -s '()\t\n' ' ' | tr ' ' '\n' |
	sed -n 's/^\([a-zA-Z_]*_t\)$/\1 system_u:system_r:\1:s0/p' >"$payload/contexts"
play() {
	in_machine selinux "$1" /bin/sh /payload/debian-selinux.sh
}
play selinux
set -- "$payload/selinux.log"
if [ "${TE_TWICE:-}" = 1 ]; then
	play again
	set -- "$@" --again "$payload/again.log"
fi
"$here/check.py" "$payload/contexts" - "$@"
