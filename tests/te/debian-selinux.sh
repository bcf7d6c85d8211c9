#!/bin/sh
# In the machine, as root: Debian's policy with a module more, enforced; and plays.
set -eu
semodule --noreload --install=/payload/debian.cil
load_policy -i
restorecon -R /dev /run /tmp /payload /srv
setenforce 1
test "$(getenforce)" = Enforcing
taskset 1 /payload/te-ops debian selinux /payload/contexts
