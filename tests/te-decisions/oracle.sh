#!/bin/bash
# Tidegate's decisions by SELinux policies against libsepol's: by the policy that Debian ships, and by generated ones
# with every kind of statement.
#   oracle.sh [DIR]     DIR: a tree as tree.sh makes one; without it, one is made with mmdebstrap and kept among the
#                       lab's other parts
# TE_SAMPLES: how often Debian's policy is asked (100000); TE_GENERATED: how many policies are generated (10), each asked as often.
# libsepol is trixie's, as older ones cannot read version 34. The last line is `N passed, N failed`.
set -eu

cd "$(dirname "$0")/../.."
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cache=$(realpath -m "${TIDEGATE_LAB_CACHE:-$TARGET/lab}")
PROGRAM=${PROGRAMS:-$TARGET/x86_64-unknown-linux-gnu/debug}/tidegate-tests
SAMPLES=${TE_SAMPLES:-100000}
GENERATED=${TE_GENERATED:-10}
# shellcheck source=tests/te-decisions/tree.sh
. tests/te-decisions/tree.sh

passed=0
failed=0

# compare NAME POLICY SAMPLES SEED
compare() {
	local log=$out/$1.log line
	echo "== $1"
	"$PROGRAM" te-decisions compare "$2" "$3" "$4" -- "$out/oracle" "$2" >"$log" 2>&1 || true
	cat "$log"
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" || echo "0 passed, 1 failed")
	passed=$((passed + ${line%% passed*}))
	line=${line##*, }
	failed=$((failed + ${line%% failed*}))
}

tree=${1:-$cache/te-trixie}
te_tree "$tree"
out=$TARGET/te
mkdir -p "$out"
# static, and with all of the tree's libraries: it runs outside of the tree, and any libc that is older lacks something
gcc --sysroot="$tree" -O2 -Wall -Wextra -Werror -static -o "$out/oracle" tests/te-decisions/oracle.c -l:libsepol.a

for policy in "$tree"/etc/selinux/default/policy/policy.*; do
	[ -f "$policy" ] || continue
	compare "debian-${policy##*.}" "$policy" "$SAMPLES" 1
done
for seed in $(seq "$GENERATED"); do
	"$PROGRAM" te-decisions generate "$seed" >"$out/$seed.cil"
	inside "$tree" secilc -o "$out/$seed.policy" -f /dev/null "$out/$seed.cil"
	compare "generated-$seed" "$out/$seed.policy" "$SAMPLES" "$seed"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
