#!/bin/bash
# In the machine, as root: what runs, with its contexts under Debian's policy.
#   debian-guest.sh selinux|tidegate    the last lines are `context: PROGRAM CONTEXT`
# A shell stands where systemd does, and starts services as that would. SELinux has labelled its files and begins first;
# Tidegate is started when all runs.
set -eu
cp /bin/bash /usr/lib/systemd/systemd
if [ "$1" = selinux ]; then
	load_policy -i
	restorecon -R /dev /run /tmp /usr/lib/systemd
fi
mkdir -p /run/services
cat >/run/services/start <<-'END'
	nginx -g 'daemon off;' &
	dmesg -w >/dev/null &
	sleep 1000 &
	(cd /; python3 -c 'import time; time.sleep(1000)') &
	setsid stress-ng --cpu 1 --cpu-load 1 --timeout 1000 >/dev/null 2>&1 &
	wait
END
/usr/lib/systemd/systemd /run/services/start &
for name in nginx dmesg sleep python3 stress-ng; do
	until grep -qsx "$name" /proc/[0-9]*/comm; do sleep 0.2; done
done
if [ "$1" = tidegate ]; then
	timeout 1200 /payload/tidegate start --policy /payload/flat.plm --te /etc/selinux/default --te-system --permissive
	/payload/tidegate ps -Z
	/payload/tidegate ps --json | sed -n 's/.*"context":"\([^"]*\)","comm":"\([^"]*\)".*/context: \2 \1/p' | grep -v ': tidegated\? '
else
	for process in /proc/[0-9]*; do
		if [ "$process" != /proc/$$ ] && readlink "$process/exe" >/dev/null && read -r name <"$process/comm"; then
			echo "context: $name $(tr -d '\0' <"$process/attr/current")"
		fi
	done
fi
