#!/bin/bash
# Plays on a kernel with AppArmor what was played on one with Tidegate: every verdict has to be equal.
#   judge.sh PAYLOAD KERNEL LOG   what prepare.sh has made; what was said with Tidegate. LAB is the lab's program
# What Tidegate decides otherwise by design has to be decided so (OTHERWISE of the operations), and what it remembers of a path has to
# be what the rules say of it (the storm). The last line is `N passed, N failed`, a verdict each.
set -eu
payload=$1 kernel=$2 said=$3 lab=$LAB
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/profile/machines.sh
. "$here/machines.sh"

# verdicts LOG: what became of each operation, sorted
verdicts() {
	tr -d '\r' <"$1" | sed -n 's/^verdict: //p' | sort
}
in_machine apparmor /bin/sh /payload/apparmor.sh
verdicts "$payload/apparmor.log" >"$payload/apparmor.verdicts"
verdicts "$said" >"$payload/tidegate.verdicts"
least=$(cat "$payload/least")

# of an operation that one of them did not come to there is no verdict to compare
passed=$(comm -12 "$payload/apparmor.verdicts" "$payload/tidegate.verdicts" | wc -l)
all=$(cut -d= -f1 "$payload/apparmor.verdicts" "$payload/tidegate.verdicts" | sort -u | wc -l)
for verdict in ok EACCES EPERM "signal 9"; do
	echo "$(grep -c "=$verdict\$" "$payload/apparmor.verdicts" || true) times $verdict"
done
diff --unchanged-line-format= --old-line-format='FAILED AppArmor:  %L' --new-line-format='FAILED Tidegate:  %L' \
	"$payload/apparmor.verdicts" "$payload/tidegate.verdicts" | head -n 60 || true
# own WORD N: what Tidegate alone played, N lines at least
own() {
	local found=$payload/$1.found
	tr -d '\r' <"$said" | sed -n "s/^$1: //p" >"$found"
	grep -v '=ok$' "$found" | sed "s/^/FAILED  $1: /" || true
	passed=$((passed + $(grep -c '=ok$' "$found" || true)))
	all=$((all + $(wc -l <"$found")))
	[ "$(wc -l <"$found")" -ge "$2" ] || { echo "FAILED  $1: too little was played" && all=$((all + 1)); }
}
own otherwise 10
own storm 5
grep ' looks as the path says' "$said" || true
[ "$passed" -gt "$least" ] || echo "FAILED  too few verdicts to compare"
echo "$passed passed, $((all - passed + (passed <= least))) failed"
[ "$passed" -gt "$least" ] && [ "$all" -eq "$passed" ]
