#!/bin/bash
# For all four models at once: their policies, as one bundle.
#   prepare.sh PAYLOAD   a directory with tidegate
# Needs secilc and apparmor_parser here.
set -eu
payload=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..

# the newest version that all kernels here know
secilc --policyvers=33 --output="$payload/models.33" --filecontext="$payload/models.fc" "$root/examples/docstore/policy/base.cil" \
	"$here/models.cil"
"$payload/tidegate" compile "$here/models.plm" --profile "$here/profile" --te "$payload/models.33" --file-contexts "$payload/models.fc" \
	--output "$payload/models.bundle"
