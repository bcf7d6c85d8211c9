#!/bin/bash
# In a machine, as root: plays suites one after another, each by its script NAME.play in the payload.
#   machine.sh NAME… [-- WORD…]   with these words for each script
# The runner on the other side cuts what is said here into logs: a suite begins with a line `== part NAME`, and ends with
# `== end STATUS`. What a suite leaves behind would meet the next one, so it is removed, and a session that is left is a failure.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=/dev/null
. ./settings

T=$PWD/tidegate
names=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	names+=("$1")
	shift
done
[ $# -eq 0 ] || shift

running() { find /proc -maxdepth 1 -name '[0-9]*' -printf '%f\n' | sort; }

# end_of NAME: ends what it has started; the daemon stays.
end_of() {
	local pid daemon left
	daemon=$(cat /run/tidegate/pid 2>/dev/null)
	for _ in 1 2 3 4 5; do
		left=$(comm -13 <(echo "$before") <(running) | grep -vx "${daemon:-none}")
		for pid in $left; do
			# a thread of the kernel has no program
			if [ "$pid" != $$ ] && readlink -q "/proc/$pid/exe" >/dev/null; then
				kill -9 "$pid" 2>/dev/null
			fi
		done
	done
	# what is mounted below goes first, the innermost before the others: nothing behind it is to be removed
	tac /proc/mounts | awk '$2 ~ "^/(srv|tmp|dev/shm)/" { print $2 }' | xargs -r -n 1 umount -l
	rm -rf /srv/* /tmp/* /dev/shm/*
	if [ -n "$daemon" ] && [ -e "/proc/$daemon" ]; then
		# a session goes with its last process, a moment after
		for _ in $(seq 600); do
			"$T" sessions --json | grep -q '"number"' || return 0
			sleep 0.1
		done
		echo "FAILED  $1 leaves sessions behind:"
		"$T" sessions
		return 1
	fi
}

# A Debian that systemd runs plays one suite alone, and ends as Debian does: what is started there is systemd's.
systemd=no
[ ! -d /run/systemd/system ] || systemd=yes

for name in "${names[@]}"; do
	before=$(running)
	echo "== part $name"
	bash "$name.play" "$@"
	status=$?
	[ $systemd = yes ] || end_of "$name" || status=1
	echo "== end $status"
done
[ $systemd = yes ] || [ ! -d /sys/fs/bpf/tidegate ] || "$T" stop
