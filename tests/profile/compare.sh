#!/bin/bash
# The same operations under the same profiles, on a kernel with AppArmor and on one with Tidegate:
# every verdict has to be equal.
#   compare.sh LAB PAYLOAD KERNEL [EACH]   the lab's program; a directory with tidegate and profile-ops; each how manieth profile, 1: all
# What Tidegate decides otherwise by design has to be decided so (OTHERWISE of src/ops.rs), and what it
# remembers of a path has to be what the rules say of it (src/storm.rs).
# Needs apparmor_parser here, and nothing of AppArmor where Tidegate enforces. The last line is
# `N passed, N failed`, a verdict each.
set -eu
lab=$1 payload=$2 kernel=$3 each=${4:-1}
here=$(cd "$(dirname "$0")" && pwd)
parser=apparmor_parser
# shellcheck source=tests/profile/machines.sh
. "$here/machines.sh"

profiles=("$here/profiles")
major=$(apparmor_parser --version | sed -n 's/^AppArmor parser version \([0-9]*\).*/\1/p')
[ "$major" -lt 4 ] || profiles+=("$here/profiles-4")

"$payload/profile-ops" features >"$payload/features"
# for_apparmor FILE PROFILES…, with a table of the bytes that mean the same
for_apparmor() {
	parse --optimize=equiv --skip-kernel-load --ofile "$1" "${@:2}"
}
for_apparmor "$payload/profiles.bin" "${profiles[@]}"
for_apparmor "$payload/unix.bin" "$here/profiles-unix"
"$payload/profile-ops" v9 "$payload/unix.bin" "$payload/unix-v9.bin"
cat "$payload/unix-v9.bin" >>"$payload/profiles.bin"
profiles+=("$here/profiles-unix")
"$payload/tidegate" compile "$here/flat.plm" "${profiles[@]/#/--profile=}" --output "$payload/profiles.bundle"
sed -n 's/^profile \([^ ]*\).*/\1/p' "${profiles[@]}" | awk -v each="$each" 'NR % each == 1 % each' >"$payload/names"
least=$((15000 / each))
cp "$here/apparmor.sh" "$here/tidegate.sh" "$payload"

# play SYSTEM: what became of each operation, sorted.
play() {
	in_machine "$1" /bin/sh "/payload/$1.sh"
	tr -d '\r' <"$payload/$1.log" | sed -n 's/^verdict: //p' | sort >"$payload/$1.verdicts"
}
play apparmor
play tidegate

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
	tr -d '\r' <"$payload/tidegate.log" | sed -n "s/^$1: //p" >"$found"
	grep -v '=ok$' "$found" | sed "s/^/FAILED  $1: /" || true
	passed=$((passed + $(grep -c '=ok$' "$found" || true)))
	all=$((all + $(wc -l <"$found")))
	[ "$(wc -l <"$found")" -ge "$2" ] || { echo "FAILED  $1: too little was played" && all=$((all + 1)); }
}
own otherwise 10
own storm 5
grep ' looks as the path says' "$payload/tidegate.log" || true
[ "$passed" -gt "$least" ] || echo "FAILED  too few verdicts to compare"
echo "$passed passed, $((all - passed + (passed <= least))) failed"
[ "$passed" -gt "$least" ] && [ "$all" -eq "$passed" ]
