#!/bin/bash
# For `tidegate bench` in a machine: the workloads' programs, compiled here.
#   prepare.sh PAYLOAD KERNEL   LAB is the lab's program
set -eu
payload=$1 kernel=$2
"$LAB" setup --kernel "$kernel"
mkdir "$payload/lab"
cp -r "${TIDEGATE_LAB_CACHE:-${CARGO_TARGET_DIR:-target}/lab}"/programs-* "$payload/lab"
