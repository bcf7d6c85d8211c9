#!/bin/bash
# The same operations in the domains of the same binary policy, on a kernel with SELinux and on one with Tidegate:
# every verdict has to be equal, but for what differs/KERNEL lists. What SELinux's side says is looked at, too: check.py
# says how.
#   compare.sh LAB PAYLOAD KERNEL   the lab's program; a directory with tidegate and te-ops
# TE_TWICE=1 boots SELinux twice, which has to say the same. TE_EVERY=N plays the first of every N domains alone,
# TE_DOMAINS='NAME…' these; TE_SELINUX=LOG has what SELinux said another time. Needs secilc here. The last line is
# `N passed, N failed`.
set -eu
lab=$1 payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/te/machines.sh
. "$here/machines.sh"

policy
cp "$here/asked/$kernel" "$payload/asked"
cp "$here/selinux.sh" "$here/flat.plm" "$here/../expect.sh" "$payload"
cp "$here/check.sh" "$payload/tidegate.sh"
set --
if [ -n "${TE_EVERY:-}${TE_DOMAINS:-}" ]; then
	awk -v every="${TE_EVERY:-0}" -v names=" ${TE_DOMAINS:-} " \
		'index(names, " " $1 " ") || every && NR % every == 1 % every' "$payload/contexts" >"$payload/some"
	mv "$payload/some" "$payload/contexts"
	set -- --some
fi

# play SYSTEM NAME: what became of each operation, in NAME.log
play() {
	in_machine "$1" "$2" /bin/bash "/payload/$1.sh"
}
if [ -n "${TE_SELINUX:-}" ]; then
	[ "$TE_SELINUX" -ef "$payload/selinux.log" ] || cp "$TE_SELINUX" "$payload/selinux.log"
else
	play selinux selinux
fi
if [ "${TE_TWICE:-}" = 1 ]; then
	play selinux again
	set -- "$@" --again "$payload/again.log"
fi
play tidegate tidegate
"$here/check.py" "$payload/contexts" "$payload/asked" "$payload/selinux.log" "$@" \
	--tidegate "$payload/tidegate.log" --differs "$here/differs/$kernel"
