#!/bin/sh
# In the machine, as root: loads the profiles into the kernel's AppArmor, and plays.
set -eu
mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security
# by one write, as the parser does
dd if=/payload/profiles.bin of=/sys/kernel/security/apparmor/.load bs=64M status=none
# one waits for the other all the time: on one processor that takes half as long
taskset 1 xargs /payload/profile-ops play apparmor </payload/names
