#!/bin/bash
# The clock is set forward and back by days while low subjects are refused and given levels are
# written. Records keep their order, `why` and `log` work, and no level is lost.
# shellcheck disable=SC2086 # the places of lib.sh have no blanks
set -u
cd /payload || exit
# shellcheck source=tests/long/lib.sh
. ./lib.sh

set_clock() { date -u -s "$1" >/dev/null; }
is_at() { "$T" ls -d "$2" | grep "^$1 "; }
# By number, not by time: the log is in the order in which things happened.
in_order() {
	# what was left out is told when its second is over, with the number of the last of it
	sed -n '/"kind":"dropped"/d; s/^{"id":\([1-9][0-9]*\),.*/\1/p' $LOG >/root/ids
	wc -l </root/ids
	# records of two processors may change places with their neighbours
	awk '$1 < last - 64 { print last, $1; bad = 1 } $1 > last { last = $1 } END { exit bad || !NR }' /root/ids
}
refused_there() {
	low sh -c "echo x >$TREE/00k/s/f"
	# the newest may be the storm's
	"$T" why | tee /dev/stderr | grep -q 'denied: .* untrusted may not .*demoted to untrusted'
}
tells() { "$T" log --denied --since "$1" -n 1 --path "$TREE" | grep denied; }
fast() { timeout 5 "$@"; }

prepare
victim
fingerprint before
try "start" "$T" start --policy /srv/maps/a.plm
storm 2
watch_levels
try "a low file" low touch "$TREE/01m/early"
now=$(date +%s)
for days in 3 -5 400 -3000 30; do
	try "the clock is set by $days days" set_clock "@$((now + days * 86400))"
	for _ in 1 2 3 4; do set_clock "@$((now + days * 86400 - RANDOM))"; done
	try "why tells of a refusal" refused_there
	sleep 8
	try "log finds it as just now" tells 1m
	try "a promotion is written down" "$T" promote "$TREE/01m/early" --level user
	try "and holds" is_at user "$TREE/01m/early"
	try "the daemon answers at once" fast "$T" status
	kill -9 "$(daemon)"
	try "a daemon takes over" "$T" start
done
# a saving that is due by the clock of a minute ago
sleep 65
try "given levels are saved by a clock of their own" test -n "$(find /var/lib/tidegate/given -newermt "@$(($(date +%s) - 120))")"
calm
held "clock"
try "no level rose" levels_fell_only
try "what low subjects made is low" made_is_low
try "the log is in order" in_order
try "every record is accounted for" accounted 10
show cat $OUT
try "stop" "$T" stop
set_clock "@$((now - 30 * 86400))"
try "start a month before what was saved" "$T" start --policy /srv/maps/a.plm
try "what was promoted is" is_at user "$TREE/01m/early"
try "what low subjects made is still low" made_is_low
finish
