#!/bin/bash
# Memory runs out: for the labels themselves, for low subjects, for the whole machine, for the daemon.
# What cannot be labelled is refused, nothing comes through, and all goes on when there is memory.
# shellcheck disable=SC2086 # the places of lib.sh have no blanks
set -u
cd /payload || exit
# shellcheck source=tests/long/lib.sh
. ./lib.sh
CG=/sys/fs/cgroup

# The kernel's memory for the monitor is charged to the group it was started in.
started_in() { sh -c "echo \$\$ >$CG/$1/cgroup.procs && exec $T start --policy /srv/maps/a.plm"; }
moved_out() { daemon >$CG/cgroup.procs; }
limit() { echo "$2" >"$CG/$1/memory.max"; }
# What it has, without what it could do without.
no_more() {
	echo 1G >"$CG/$1/memory.reclaim"
	limit "$1" "$(cat "$CG/$1/memory.current")"
} 2>/dev/null
hit() { ! grep -x 'max 0' "$CG/$1/memory.events"; }
# Fresh processes at the top, which need room for a label to fall: they read low data and have
# fallen, or they do not read. fallers [N]: at most so many do not.
fallers() {
	local i fell=0 kept=0 wrong=0
	for i in $(seq 100); do
		(
			exec 2>/dev/null
			read -r _ <$LOW/bait || exit 3
			echo x >>$TREE/00k/s/f && exit 4
			exit 5
		)
		case $? in
		3) kept=$((kept + 1)) ;;
		5) fell=$((fell + 1)) ;;
		*) wrong=$((wrong + 1)) ;;
		esac
	done
	echo "$fell fell, $kept could not read, $wrong read and wrote"
	[ $wrong = 0 ] && [ $kept -le "${1:-100}" ]
}
hold() { low timeout 300 python3 memory.py hold "$1"; }
works() { low sh -c "echo x >$TREE/01m/afterwards && rm $TREE/01m/afterwards"; }
killed() { dmesg | grep -c "Memory cgroup out of memory: Killed process\|Out of memory: Killed process"; }
hog() { low python3 memory.py hog "$1"; }
hog_in() { sh -c "echo \$\$ >$CG/$1/cgroup.procs && exec $T run --level untrusted -- python3 memory.py hog 500" >/dev/null 2>&1; }
no_daemon() { ! kill -0 "$1"; }
# without a daemon there is no `tidegate run`
refused() { (exec 9</run/tidegate/level/untrusted && ! echo x >$TREE/00k/f); }

prepare
victim
echo low >$LOW/bait
echo +memory >$CG/cgroup.subtree_control
mkdir $CG/monitor $CG/low
fingerprint before

echo "# no memory for labels"
try "start" started_in monitor
try "the daemon is moved out" moved_out
storm 2
try "at first all fall who read" fallers 0
show cat $OUT
try "the monitor has no more memory" no_more monitor
try "many need labels" hold 1500
try "none reads without falling" fallers
try "the storm goes on" sleep 10
try "there is memory again" limit monitor max
try "all who read fall again" fallers 0
show cat $OUT
try "low subjects work again" works
show python3 memory.py report
# Linux 6.12's allocator for BPF finds memory beyond the limit
case $(uname -r) in
6.12*) try "the limit was hit" hit monitor ;;
*) try "storage failed" python3 memory.py failed ;;
esac
try "what low subjects made is low" made_is_low

echo "# low subjects out of memory"
limit low 40M
before=$(killed)
for _ in 1 2 3; do hog_in low; done
try "they are killed" test "$(killed)" -gt "$before"
try "the daemon lives" kill -0 "$(daemon)"

echo "# the machine out of memory"
before=$(killed)
hog 500
try "the hog is killed" test "$(killed)" -gt "$before"
try "the daemon lives still" kill -0 "$(daemon)"

echo "# the daemon out of memory"
pid=$(daemon)
echo 1000 >"/proc/$pid/oom_score_adj"
hog 0
try "the daemon is killed" no_daemon "$pid"
try "what is refused is refused" refused
try "a daemon takes over" "$T" start
calm
held "memory"
try "what low subjects made is still low" made_is_low
try "every record is accounted for" accounted 2
show cat $OUT
finish
