#!/bin/bash
# A policy is replaced RELOADS (1000) times by another one that forbids the same, while low subjects
# attack and fork. Nothing may come through, no level may rise, and what they make is low.
set -u
cd /payload || exit
# shellcheck source=tests/long/lib.sh
. ./lib.sh
RELOADS=${RELOADS:-1000}

reloads() {
	local i map=(a b)
	for i in $(seq "$RELOADS"); do
		"$T" reload --bundle "/srv/maps/${map[$((i % 2))]}.bundle" >/root/reload 2>&1 || {
			cat /root/reload
			return 1
		}
	done
}

prepare
victim
fingerprint /root/before
try "start" "$T" start --policy /srv/maps/a.plm
storm 3
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
try "number $((RELOADS + 1)) is in force" test "$(field seqno)" = $((RELOADS + 1))
show du -sh /run/tidegate
show grep VmRSS "/proc/$(daemon)/status"
try "every record is accounted for" accounted
show cat $OUT
finish
