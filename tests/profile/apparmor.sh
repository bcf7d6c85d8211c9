#!/bin/sh
# In the machine, as root: loads the profiles into the kernel's AppArmor, and plays.
set -eu
mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security
cat /payload/profiles.bin >/sys/kernel/security/apparmor/.load
xargs /payload/profile-ops play apparmor </payload/names
