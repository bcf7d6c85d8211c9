#!/bin/bash
# `tidegate sesearch` and `tidegate seinfo` against setools' own: the same questions about Debian's policy, and about
# generated ones with every kind of statement.
#   compare.sh [DIR]     DIR: a tree as tests/te-decisions/tree.sh makes one; without it, one is made
# TE_GENERATED: how many policies are generated (5). Answers are compared sorted. The last line is `N passed, N failed`.
set -eu

cd "$(dirname "$0")/../.."
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cache=$(realpath -m "${TIDEGATE_LAB_CACHE:-$TARGET/lab}")
GENERATED=${TE_GENERATED:-5}
# shellcheck source=tests/te-decisions/tree.sh
. tests/te-decisions/tree.sh

tree=$(realpath "${1:-$cache/te-trixie}")
te_tree "$tree"
out=$TARGET/te-query
rm -rf "$out"
mkdir -p "$out"
PROGRAMS=${PROGRAMS:-$TARGET/x86_64-unknown-linux-gnu/debug}
T=$PROGRAMS/tidegate

passed=0
failed=0

# ask NAME POLICY < QUESTIONS
ask() {
	local dir=$out/$1 policy=$2 number=0 line words good bad
	echo "== $1"
	mkdir -p "$dir"
	cat >"$dir/questions"
	inside "$tree" python3 tests/te-query/ask.py "$policy" "$tree/usr/bin" "$dir" <"$dir/questions"
	while read -r line; do
		number=$((number + 1))
		eval "words=($line)"
		if ! "$T" "${words[0]}" "$policy" "${words[@]:1}" >"$dir/$number.ours" 2>"$dir/$number.errors"; then
			echo refused >"$dir/$number.ours"
		fi
	done <"$dir/questions"
	python3 tests/te-query/same.py "$dir" | tee "$dir/told"
	read -r good bad < <(tail -n 1 "$dir/told")
	passed=$((passed + good)) failed=$((failed + bad))
}

# What can be asked of any policy.
everything() {
	local rules="--allow --allowxperm --auditallow --auditallowxperm --dontaudit --dontauditxperm -T --type_change
		--type_member --role_allow --role_transition --range_transition" kind
	for kind in $rules; do
		echo "sesearch $kind"
	done
	for kind in -t -a -b -r -u --category --constrain --validatetrans --default --fs_use --genfscon --initialsid \
		--netifcon --nodecon --permissive --polcap --portcon --sensitivity --typebounds; do
		echo "seinfo $kind -x"
		echo "seinfo $kind --flat"
	done
	echo "seinfo -c"
}

for policy in "$tree"/etc/selinux/default/policy/policy.*; do
	ask "debian-${policy##*.}" "$policy" < <(everything && cat tests/te-query/debian)
done
for seed in $(seq "$GENERATED"); do
	"$PROGRAMS/tidegate-tests" te-decisions generate "$seed" >"$out/$seed.cil"
	inside "$tree" secilc -o "$out/$seed.policy" -f /dev/null "$out/$seed.cil"
	ask "generated-$seed" "$out/$seed.policy" < <(everything)
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
