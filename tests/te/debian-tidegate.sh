#!/bin/sh
# In the machine, as root: the same policy, enforced by Tidegate; and plays.
set -eu
semodule --noreload --install=/payload/debian.cil
/payload/tidegate start --policy /payload/flat.plm --te /etc/selinux/default --te-lookups
taskset 1 /payload/te-ops debian tidegate /payload/contexts
/payload/tidegate log --denied -n 3
