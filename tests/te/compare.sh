#!/bin/bash
# The same operations in the domains of the same binary policy, on a kernel with SELinux and on one with Tidegate:
# every verdict has to be equal. What SELinux's side says is looked at, too: check.py says how.
#   compare.sh LAB PAYLOAD KERNEL   the lab's program; a directory with tidegate and te-ops
# TE_TWICE=1 boots SELinux twice, which has to say the same. Needs secilc here. The last line is
# `N passed, N failed`.
set -eu
lab=$1 payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/te/machines.sh
. "$here/machines.sh"

policy
cp "$here/asked/$kernel" "$payload/asked"
cp "$here/selinux.sh" "$here/tidegate.sh" "$here/flat.plm" "$payload"

# play SYSTEM NAME: what became of each operation, in NAME.log
play() {
	in_machine "$1" "$2" /bin/sh "/payload/$1.sh"
}
play selinux selinux
set -- "$payload/selinux.log"
if [ "${TE_TWICE:-}" = 1 ]; then
	play selinux again
	set -- "$@" --again "$payload/again.log"
fi
if "$payload/tidegate" start --help | grep -q -e ' --te\b'; then
	play tidegate tidegate
	set -- "$@" --tidegate "$payload/tidegate.log"
else
	echo "this tidegate has no te: SELinux's side alone"
fi
"$here/check.py" "$payload/contexts" "$payload/asked" "$@"
