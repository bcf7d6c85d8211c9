#!/bin/sh
# Measures in the guest, as root: cost.sh ENFORCING EXTENT, with `yes` or `no` and
# `brief` or `full`. The very same programs run in either case. Prints sections, each
# of `item<TAB>figure` lines.
set -eu
enforcing=$1
extent=$2

own=/var/lib/measured
home=/home/alice/measured
many=/home/alice/many
leaf=/srv/area-0/package-0
sizes="10 1000 100000"

mkdir -p "$own" "$home" "$many" "$leaf"
chown alice: "$home"
/payload/sight make "$many" inode- 22000
for size in $sizes; do
	/payload/sight make "$leaf" "new-$size-" 330
done

# While a demotion's guard is attached, every read and write costs more.
guard_is_idle() {
	/payload/tidegate status | grep -q '^guard: *idle'
}

until_idle() {
	[ "$enforcing" = yes ] || return 0
	for _ in $(seq 60); do
		! guard_is_idle || return 0
		sleep 1
	done
	echo "the guard stays armed" >&2
	return 1
}

# Runs a command as alice, at the level of what is hers where there are levels.
as_alice() (
	if [ "$enforcing" = yes ]; then
		read -r _ </run/tidegate/level/user
	fi
	until_idle
	exec setpriv --reuid alice --regid alice --clear-groups "$@"
)

if [ "$enforcing" = yes ]; then
	/payload/tidegate start --preset workstation >/dev/null
	# it enforces, or nothing is measured
	if (read -r _ </run/tidegate/level/untrusted && echo x >>"$home/probe") 2>/dev/null; then
		echo "an untrusted process could write to $home" >&2
		exit 1
	fi
	(read -r _ </run/tidegate/level/untrusted && : >/tmp/probe)
	until_idle
fi

# In either machine: per-CPU memory. Control groups, as systemd makes them by the hundred,
# use up the few pages that the kernel sets apart for it at boot, and mounts, whose
# counters are the smallest, the gaps between what others hold. A fork allocates there, and
# would search longer or shorter by what happens to be free.
mkdir -p /run/cgroup
mount -t cgroup2 none /run/cgroup
for i in $(seq 200); do
	mkdir "/run/cgroup/measured-$i"
done
/payload/sight mount /run/crowd 2000

echo "== top"
/payload/items "$own"
echo "== user"
as_alice /payload/items "$home"
[ "$extent" = brief ] || {
	echo "== inodes"
	as_alice /payload/sight open "$many" inode- 22000
	echo "== processes"
	as_alice /payload/sight fork 1000
	for size in $sizes; do
		[ "$enforcing" = no ] || /payload/tidegate reload --policy "/payload/rules-$size.plm" >/dev/null
		until_idle
		echo "== rules $size"
		/payload/sight open "$leaf" "new-$size-" 330
	done
}
until_idle
echo "== end"
