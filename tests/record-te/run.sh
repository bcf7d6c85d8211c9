#!/bin/bash
# `record` and `replay` under a SELinux policy, in a virtual machine.
#   run.sh LAB PAYLOAD KERNEL
# LAB is the lab's program, PAYLOAD a directory with tidegate. Needs secilc here. The last line is `N passed, N failed`.
set -eu
lab=$1 payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)

secilc --policyvers=33 --output="$payload/record.pol" --filecontext="$payload/record.fc" "$here/record.cil"
cp "$here/check.sh" "$here/../expect.sh" "$here/work.sh" "$here/compare.py" "$here/../te/flat.plm" "$payload"
exec "$lab" vm --kernel "$kernel" --payload "$payload" --timeout 3600 --lsm lockdown,yama,bpf -- bash /payload/check.sh
