#!/bin/sh
# UnixBench's Shell Scripts (8): eight copies of script.sh at once, each of which has to
# succeed.
set -eu
running=
for copy in 1 2 3 4 5 6 7 8; do
	sh "${0%/*}/script.sh" "$copy" &
	running="$running $!"
done
for one in $running; do
	wait "$one"
done
