#!/bin/bash
# The daemon is stopped (SIGSTOP) while more is refused, and more subjects fall, than the ring
# buffer holds. Decisions stay what they are, falls are told before refusals, what found no room is
# counted exactly, and the daemon takes up again.
# shellcheck disable=SC2086 # the places of lib.sh have no blanks
set -u
cd /payload || exit
# shellcheck source=tests/long/lib.sh
. ./lib.sh
FALLS=${FALLS:-200}
REFUSALS=15000 # the ring buffer holds some 8000 below the part that is kept for falls

# Falls while nobody reads: each is a record too.
falls() {
	local i
	for i in $(seq "$FALLS"); do
		(exec 9</run/tidegate/level/untrusted && ! echo x >"$TREE/00k/f") 2>/dev/null || return
	done
}
falls_are_told() {
	local found
	found=$(grep -c '"kind":"demoted".*"path":"/run/tidegate/level/untrusted"' $LOG)
	echo "$found of $1 falls are in the log"
	[ "$found" -ge "$1" ]
}
# By the kernel's own count: the daemon is asked for nothing while it is stopped.
refused() { "$T" stats --json | grep -o '"denied":[0-9]*' | awk -F: '{ n += $2 } END { print n }'; }
fills() {
	local i start
	start=$(refused)
	for i in $(seq 600); do
		[ $(($(refused) - start)) -gt $REFUSALS ] && return
		sleep 1
	done
	return 1
}
takes_up() {
	low sh -c "echo x >$TREE/06k/s/f"
	sleep 3
	tail -n 20000 $LOG | grep "$TREE/06k/s/f"
}

prepare
victim
fingerprint before
try "start" "$T" start --policy /srv/maps/a.plm
storm 3 quick
try "the daemon is stopped" kill -STOP "$(daemon)"
began=$SECONDS
try "$REFUSALS refusals that nobody reads" fills
echo "      | in $((SECONDS - began)) s"
try "$FALLS processes fall, and are refused" falls
calm
try "the daemon goes on" kill -CONT "$(daemon)"
sleep 3
try "records were lost" test "$(field events_lost)" -gt 0
held "overrun"
try "it takes up again" takes_up
try "every record is accounted for" accounted
show cat $OUT
echo "      | $(field events_lost) found no room in the kernel"
try "no fall was lost" falls_are_told "$FALLS"
show cat $OUT
try "the daemon answers" "$T" why
finish
