#!/bin/sh
# In the machine, as root: has Tidegate enforce the policy, and plays.
set -eu
/payload/tidegate start --policy /payload/flat.plm --te /payload/te/policy.33 --file-contexts /payload/te/file_contexts --te-lookups
taskset 1 /payload/te-ops play tidegate /payload/contexts /payload/asked
/payload/tidegate log --denied -n 3
