#!/bin/bash
# The daemon is killed KILLS (100) times under load and started anew. Nothing may come through
# with it or without it; what was given is kept, and every record is accounted for.
# shellcheck disable=SC2086 # the places of lib.sh have no blanks
set -u
cd /payload || exit
# shellcheck source=tests/long/lib.sh
. ./lib.sh
KILLS=${KILLS:-100}

kills() {
	local i
	for i in $(seq "$KILLS"); do
		kill -9 "$(daemon)" || return
		# some of the time nobody is there
		[ $((i % 3)) = 0 ] && sleep 1
		"$T" start >/root/start 2>&1 || {
			echo "start $i: $(cat /root/start)"
			return 1
		}
		[ $((i % 4)) = 0 ] && sleep 0.$((RANDOM % 10))
		# a reload is cut off by the next one's death now and then
		if [ $((i % 5)) = 0 ]; then
			"$T" reload --bundle /srv/maps/b.bundle >/dev/null 2>&1 &
			sleep 0.$((RANDOM % 5))
		fi
	done
}

prepare
victim
fingerprint before
try "start" "$T" start --policy /srv/maps/a.plm
try "a low file in a kept place" low touch "$TREE/01m/early"
try "another, promoted" low touch "$TREE/01m/promoted"
try "promote" "$T" promote "$TREE/01m/promoted" --level user
storm 3
watch_levels
began=$SECONDS
try "$KILLS deaths and starts" kills
echo "      | $KILLS deaths in $((SECONDS - began)) s"
calm
held "deaths"
try "no level rose" levels_fell_only
show cat /root/levels
try "what low subjects made is low" made_is_low
is_at() { "$T" ls -d "$2" | grep "^$1 "; }
try "what was low before is low" is_at untrusted "$TREE/01m/early"
try "what was promoted is promoted" is_at user "$TREE/01m/promoted"
# a kill between two steps of writing a record counts it twice, and one between reading it and
# saying so has it read again
try "every record is accounted for" accounted $((2 * KILLS))
show cat $OUT
try "stop" "$T" stop
try "start from nothing" "$T" start --policy /srv/maps/a.plm
try "what was low is still low" is_at untrusted "$TREE/01m/early"
try "what was promoted is still promoted" is_at user "$TREE/01m/promoted"
try "what the storm made is still low" made_is_low
finish
