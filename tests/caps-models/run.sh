#!/bin/bash
# All four models at once, in a machine with Tidegate: check.sh there.
#   run.sh LAB PAYLOAD KERNEL   the lab's program; a directory with tidegate
# Needs secilc and apparmor_parser here. The last line is `N passed, N failed`.
set -eu
lab=$1 payload=$(realpath "$2") kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..

# the newest version that all kernels here know
secilc --policyvers=33 --output="$payload/policy.33" --filecontext="$payload/contexts" "$root/examples/docstore/policy/base.cil" \
	"$here/models.cil"
"$payload/tidegate" compile "$here/models.plm" --profile "$here/profile" --te "$payload/policy.33" --file-contexts "$payload/contexts" \
	--output "$payload/models.bundle"
cp "$here/check.sh" "$here/../expect.sh" "$payload"
exec "$lab" vm --kernel "$kernel" --payload "$payload" --timeout 3600 --lsm lockdown,yama,bpf -- bash /payload/check.sh
