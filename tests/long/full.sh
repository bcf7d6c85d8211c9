#!/bin/bash
# The filesystems of the log and of /var/lib/tidegate are full while low subjects attack. Refusals
# stay refusals, the daemon lives and says so, nothing is cut off or forgotten, what is not written
# is counted, and all goes on when there is room.
# shellcheck disable=SC2086 # the places of lib.sh have no blanks
set -u
cd /payload || exit
# shellcheck source=tests/long/lib.sh
. ./lib.sh
STATE=/var/lib/tidegate

fill() {
	local dir
	for dir in "$STATE" "$(dirname $LOG)"; do
		cat /dev/zero >"$dir/ballast" 2>/dev/null
		# to the last byte
		[ "$(stat -f -c %a "$dir")" = 0 ] || return
	done
}
empty() { rm "$STATE/ballast" "$(dirname $LOG)/ballast"; }
kernel_log() { dmesg | grep "tidegate: $1"; }
is_at() { "$T" ls -d "$2" | grep "^$1 "; }
fails() { ! "$@"; }
saved() { tail -n 1 $STATE/given | grep '^blake3 '; }
as_before() { cmp $STATE/given /root/given; }

prepare
victim
mkdir -p $STATE /var/log/tidegate
# with room for the program that `start` leaves there
mount -t tmpfs -o size=16m,mode=700 tmpfs $STATE
mount -t tmpfs -o size=20m,mode=700 tmpfs /var/log/tidegate
fingerprint before
# so small that it is rotated, and so large that the nine files hold the whole run
try "start" "$T" start --policy /srv/maps/a.plm --log-size 1500000
try "a low file" low touch "$TREE/01m/early"
try "one that is promoted" low touch "$TREE/01m/promoted"
try "promote" "$T" promote "$TREE/01m/promoted" --level user
storm 1
sleep 10
# twice: what the daemon was writing has failed by then
fill
sleep 1
try "both are full" fill
cp $STATE/given /root/given
# over the minute in which the given levels are written
sleep 75
try "the daemon lives" kill -0 "$(daemon)"
try "it says that the log cannot be written" kernel_log 'the audit log cannot be written'
try "it says that the given levels cannot be" kernel_log "cannot write $STATE/given"
try "it says so once for the log" test "$(dmesg | grep -c 'log cannot be written')" -le 3
try "what was written of given levels is whole" saved
try "and is as it was" as_before
try "a reload is in force all the same" "$T" reload --bundle /srv/maps/b.bundle
try "a promotion says that it cannot be written" fails "$T" promote "$TREE/01m/early" --level user
kill -9 "$(daemon)"
try "a daemon starts on a full disk" "$T" start --log-size 1500000
sleep 5
try "there is room again" empty
sleep 70
try "the log goes on" kernel_log 'the audit log is written again'
calm
held "full"
try "what low subjects made is low" made_is_low
try "given levels are written again" saved
try "the log was rotated" test -e $LOG.1
try "every record is accounted for" accounted 2
show cat $OUT
show ls -l /var/log/tidegate
try "stop" "$T" stop
try "start from nothing" "$T" start --policy /srv/maps/a.plm
try "what was promoted is promoted" is_at user "$TREE/01m/promoted"
try "what low subjects made is still low" made_is_low
finish
