#!/bin/bash
# A policy is replaced RELOADS (1000) times by another one that forbids the same, two administrators
# at once, while low subjects attack and fork. Nothing may come through, no level may rise, no honest
# work is refused for it, and what low subjects make is low.
# shellcheck disable=SC2086 # the places of lib.sh have no blanks
set -u
cd /payload || exit
# shellcheck source=tests/long/lib.sh
. ./lib.sh
RELOADS=${RELOADS:-1000}

half() {
	local i map=(a b)
	for i in $(seq $((RELOADS / 2))); do
		"$T" reload --bundle "/srv/maps/${map[$((i % 2))]}.bundle" >"/root/reload$1" 2>&1 || {
			cat "/root/reload$1"
			return 1
		}
	done
}
reloads() {
	half 1 &
	half 2 && wait $!
}
no_labels() {
	! "$T" log --denied --json | grep '"reason":"no-label"'
}
names_known() {
	! "$T" log --json | grep '"level":"level '
}

prepare
victim
fingerprint before
try "start" "$T" start --policy /srv/maps/a.plm
storm 2
# names, where a policy's nodes decide, as fast as they can be tried
storm 1 names
watch_levels
began=$SECONDS
try "$RELOADS reloads" reloads
echo "      | $RELOADS reloads in $((SECONDS - began)) s"
calm
held "reloads"
try "no level rose" levels_fell_only
show cat /root/levels
try "what low subjects made is low" made_is_low
show cat $OUT
try "nothing was refused for want of a label" no_labels
try "every record knows its policy" names_known
try "number $((RELOADS + 1)) is in force" test "$(field seqno)" = $((RELOADS + 1))
show du -sh /run/tidegate
show grep VmRSS "/proc/$(daemon)/status"
try "every record is accounted for" accounted
show cat $OUT
finish
