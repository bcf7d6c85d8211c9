#!/bin/bash
# Everything that shows Tidegate does what it says. Each part writes a log to
# target/test-logs and prints one line; the last line is `N passed, N failed`.
#   test.sh             what shows that each model holds, on 6.12 and 7.2
#   test.sh --more      the rest, which takes twice as long: commands, the lab, AppArmor's own tests, all profiles that Debian ships, the other kernel
#   test.sh --quick     the everyday loop: lint, unit, scenarios-6.12
#   test.sh PART…       those; test.sh --list names them, and those of --more
# As many parts run side by side as there are processors, up to 4, or TEST_JOBS.
# A part that is missing, or that ran nothing, counts as failed.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=scripts/test-parts.sh
. scripts/test-parts.sh

LOGS=target/test-logs
QUICK="lint unit scenarios-6.12"
# the longest first, so that all processors are busy until the end; and at the beginning one that
# compiles for release beside one that does not, as two of a kind wait for each other
ALL="unit profile-7.2 scenarios-6.12 caps-service-7.2 caps-6.12 caps-random-6.12 te-enforced-7.2 caps-models-6.12 te-live-6.12 agent-host-7.2 replay-6.12 story narrow-6.12 te-decisions te-query core fuzz"
MORE="profile-all-7.2 lab apparmor-7.2 commands-7.2 lab-more lint shipped-6.12 scenarios-7.2 caps-7.2 bench-7.2 object-manager-7.2 learn-te-7.2 learn-profile-7.2 record-7.2 apparmor-cases record-te-7.2 te-contexts replay-7.2 learn-7.2"

jobs=$(nproc)
[ "$jobs" -le 4 ] || jobs=4
jobs=${TEST_JOBS:-$jobs}

# Counts in a log: the last `N passed, N failed`, else cargo's results added up.
counts() {
	awk '
		/^test result: / { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i-1); if ($i ~ /^failed/) f += $(i-1) } }
		/^[0-9]+ passed, [0-9]+ failed$/ { lp = $1; lf = $3 }
		END { if (lp == "") print p + 0, f + 0; else print lp, lf }
	' "$1"
}

# What a log says of what failed, wherever it says it, and how it ends.
evidence() {
	grep -n -A 6 -E 'FAIL|panicked|^error|NOT AS PROMISED' "$1" | head -n 60 || true
	echo "…"
	tail -n 15 "$1"
}

# The lines that name what failed, of all parts that did: once more where they are seen, at the end.
failures() {
	local name ok bad
	for name in "$@"; do
		read -r ok bad <"$LOGS/$name.count" || continue
		[ "$bad" -eq 0 ] || grep -H -E 'FAILED|panicked' "$LOGS/$name.log" | tail -n 12 || true
	done
}

# Runs one part and prints its line.
play() {
	local name=$1 log=$LOGS/$1.log start=$SECONDS status ok bad word
	# not as part of a condition, where set -e would not hold
	set +e
	(set -e; part "$name") </dev/null >"$log" 2>&1
	status=$?
	set -e
	read -r ok bad < <(counts "$log")
	if { [ "$status" -ne 0 ] || [ "$ok" -eq 0 ]; } && [ "$bad" -eq 0 ]; then
		bad=1
	fi
	echo "$ok $bad" >"$LOGS/$name.count"
	word=ok
	[ "$bad" -eq 0 ] || word=FAILED
	# in one piece: another part may end at the same time
	printf '%s\n' "$(
		printf '%-16s %-7s %6d passed %4d failed %5d s   %s\n' \
			"$name" "$word" "$ok" "$bad" $((SECONDS - start)) "$log"
		[ "$bad" -eq 0 ] || evidence "$log" | sed 's/^/    /'
	)"
}

# shellcheck disable=SC2086 # lists of words
case ${1:-} in
--list)
	printf '%s\n' $ALL $MORE
	exit
	;;
--quick) set -- $QUICK ;;
--more) set -- $MORE ;;
"") set -- $ALL ;;
-*)
	sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac

# What runs in the background does not hear Ctrl-C by itself.
trap 'trap - INT TERM; kill -TERM 0' INT TERM

mkdir -p "$LOGS"
rm -f "$LOGS"/*.count
running=0
for name in "$@"; do
	if [ $running -ge "$jobs" ]; then
		wait -n || true
		running=$((running - 1))
	fi
	play "$name" &
	running=$((running + 1))
done
wait
failures "$@"
read -r passed failed < <(for name in "$@"; do cat "$LOGS/$name.count" || echo 0 1; done |
	awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }')
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
