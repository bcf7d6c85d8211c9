#!/bin/bash
# Capability files enforced, in a virtual machine.
#   run.sh LAB PAYLOAD KERNEL   the lab's program; a directory with tidegate
# The last line is `N passed, N failed`.
set -eu
lab=$1 payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)

cp "$here/check.sh" "$here/ops.py" "$here"/attacks.* "$here/sessions.pl" "$here/../expect.sh" "$here/../ask.sh" "$here/../te/flat.plm" "$payload"
exec "$lab" vm --kernel "$kernel" --payload "$payload" --timeout 3600 --lsm lockdown,yama,bpf -- /bin/bash /payload/check.sh
