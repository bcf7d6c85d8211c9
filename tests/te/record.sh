#!/bin/bash
# Records anew what SELinux asks at each operation: tests/te/asked/KERNEL.
#   record.sh LAB PAYLOAD KERNEL   the lab's program; a directory with te-ops
# Needs secilc here.
set -eu
lab=$1 payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/te/machines.sh
. "$here/machines.sh"

policy
in_machine selinux record taskset 1 /payload/te-ops record /payload/te/policy.33
tr -d '\r' <"$payload/record.log" | sed -n 's/^asked: //p' >"$here/asked/$kernel"
grep FAILED "$payload/record.log" || true
grep -c -P '^[^\t]' "$here/asked/$kernel"
