#!/bin/bash
# Low subjects are refused as fast as they can for FLOOD (60) seconds. Every attempt is refused, the
# daemon and honest work go on in bounded memory, each record is in the log or counted there, and
# what others are refused meanwhile is in it too.
# shellcheck disable=SC2086 # the places of lib.sh have no blanks
set -u
cd /payload || exit
# shellcheck source=tests/long/lib.sh
. ./lib.sh
FLOOD=${FLOOD:-60}

# Somebody else's refusals, one a second, each of a file of its own.
others() {
	local i
	for i in $(seq "$FLOOD"); do
		user sh -c "echo x >$TREE/others/$i"
		sleep 1
	done
}

# The flood is the lowest level's; these are not.
others_are_told() {
	local found
	found=$(cat $LOG* | grep '"kind":"denied"' | grep -o "$TREE/others/[0-9]*" | sort -u | wc -l)
	echo "$found of $FLOOD refusals of somebody else are in the log"
	[ "$found" = "$FLOOD" ]
}

resident() { awk '/VmRSS/ { print $2 }' "/proc/$(daemon)/status"; }
bounded() {
	local after
	after=$(resident)
	echo "resident: $before kB before, $after kB after the flood"
	[ "$after" -lt 65536 ]
}
answers() { timeout 20 "$T" status; }

prepare
victim
mkdir $TREE/others
for i in $(seq "$FLOOD"); do echo trusted >"$TREE/others/$i"; done
fingerprint before
try "start" "$T" start --policy /srv/maps/a.plm
before=$(resident)
for i in 1 2 3 4; do
	"$T" run --level untrusted -- python3 flood.py "$i" >/dev/null 2>$LOW/flood.$i </dev/null &
	STORM+=($!)
done
storm 1
began=$SECONDS
others
try "the daemon answers in the flood" answers
try "it goes on writing" test -s $LOG
calm
echo "      | $((SECONDS - began)) s"
try "not one of the flood came through" python3 flood.py tally
show cat $OUT
held "flood"
try "memory is bounded" bounded
show cat $OUT
try "every record is accounted for" accounted
show cat $OUT
try "others' refusals are told" others_are_told
show cat $OUT
try "status tells what was lost" test "$(field events_lost)" -gt 0
show "$T" status
finish
