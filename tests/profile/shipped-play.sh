#!/bin/sh
# In the machine, as root: has one of them enforce what Debian ships, and asks.
#   shipped-play.sh apparmor|tidegate
set -eu
system=$1
now() {
	cut -d' ' -f1 /proc/uptime
}
mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security
# a program that the map trusts
cp /payload/profile-ops /root/profile-ops
[ "$system" = apparmor ] || /payload/tidegate start --policy /payload/flat.plm
for set in installed examples; do
	began=$(now)
	case $system in
	# by one write, as the parser does
	apparmor) dd if=/payload/$set.bin of=/sys/kernel/security/apparmor/.load bs=256M status=none ;;
	tidegate) /payload/tidegate reload --bundle /payload/$set.bundle ;;
	esac
	echo "loaded: $set by $system, from second $began to $(now)"
	taskset 1 /root/profile-ops survey /payload/$set.list
	taskset 1 xargs /root/profile-ops play either </payload/$set.played
	umount -l /srv/ops
	# others take their place; those within others go with these
	[ "$system" = tidegate ] || grep -v // /payload/$set.names | while read -r name; do
		printf %s "$name" >/sys/kernel/security/apparmor/.remove
	done
done
[ "$system" = apparmor ] || /payload/tidegate stop
