#!/bin/bash
# In a machine, as root: has Tidegate enforce the policy, and plays.
set -u
cd "$(dirname "$0")" || exit 1
T=$PWD/tidegate
# shellcheck source=tests/expect.sh
. ./expect.sh

enforce --policy /payload/flat.plm --te /payload/te/policy.33 --file-contexts /payload/te/file_contexts --te-lookups
taskset 1 /payload/te-ops play tidegate /payload/contexts /payload/asked || exit 1
"$T" log --denied -n 3
