#!/bin/bash
# The decision core by itself: the headers of kernel/ without helpers, the same source as in the kernel.
#   run.sh native   every decision against the contract; random input
#   run.sh fuzz     libFuzzer, FUZZ_SECONDS (15) for each target
#   run.sh prove    cbmc, from the lab's tree of Debian trixie
#   run.sh all      all three
# The last line is `N passed, N failed`. docs/dev/testing-core.md says what is shown.
set -eu

cd "$(dirname "$0")/../.."
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
OUT=$TARGET/core
LAB=${LAB:-$TARGET/x86_64-unknown-linux-gnu/debug/tidegate-lab}
FUZZERS="fuzz_lomac fuzz_plm"

passed=0
failed=0

pass() {
	passed=$((passed + 1))
	echo "pass: $*"
}

fail() {
	failed=$((failed + 1))
	echo "fail: $*"
}

# build PROGRAM FLAGS… SOURCES…
build() {
	local program=$1
	shift
	clang-19 -g -O1 -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-unknown-attributes \
		-Ikernel -Itests/core -fno-sanitize-recover=all "$@" -o "$OUT/$program"
}

# Runs a program that prints `pass: …` and `fail: …`, and counts those; a program
# that breaks off, or says nothing, has failed.
count() {
	local program=$1 status=0 ok bad
	"$OUT/$program" >"$OUT/$program.log" 2>&1 || status=$?
	cat "$OUT/$program.log"
	ok=$(grep -c '^pass: ' "$OUT/$program.log" || true)
	bad=$(grep -c '^fail: ' "$OUT/$program.log" || true)
	passed=$((passed + ok))
	failed=$((failed + bad))
	if [ $((ok + bad)) -eq 0 ] || { [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
		fail "$program ended with status $status"
	fi
}

native() {
	build test_lomac -O2 -fsanitize=undefined tests/core/test_lomac.c
	count test_lomac
	build test_profile -O2 -fsanitize=undefined tests/core/test_profile.c
	count test_profile
	build test_budget -O2 -fsanitize=undefined tests/core/test_budget.c
	count test_budget
	build test_sampling -O2 -fsanitize=undefined tests/core/test_sampling.c
	count test_sampling
	for target in $FUZZERS; do
		build "$target.random" -fsanitize=address,undefined "tests/core/$target.c" tests/core/random.c
		count "$target.random"
	done
}

fuzz() {
	local seconds=${FUZZ_SECONDS:-15} log runs
	for target in $FUZZERS; do
		log=$OUT/$target.log
		build "$target" -fsanitize=fuzzer,address,undefined "tests/core/$target.c"
		mkdir -p "$OUT/corpus/$target"
		if ! "$OUT/$target" -max_total_time="$seconds" -max_len=1024 -print_final_stats=1 \
			-artifact_prefix="$OUT/$target." "$OUT/corpus/$target" >"$log" 2>&1; then
			tail -n 30 "$log"
			fail "$target broke a claim"
			continue
		fi
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		if [ "${runs:-0}" -gt 1000 ]; then
			pass "$target: $runs inputs in $seconds s"
		else
			fail "$target ran ${runs:-no} inputs only"
		fi
	done
}

# One proof: every claim holds, and every witness is found.
prove_one() {
	local source=$1 proof=$2 log=$OUT/$2.log unwind=9 claims witnesses
	case $proof in
	prove_deep_walk) unwind=34 ;;
	esac
	"$LAB" cbmc -Ikernel -Itests/core "$source" --function "$proof" \
		--unwind $unwind --unwinding-assertions --drop-unused-functions </dev/null >"$log" 2>&1 || true
	claims=$(grep -c '^\[.*: SUCCESS$' "$log" || true)
	witnesses=$(grep -c '^\[.* witness: .*: FAILURE$' "$log" || true)
	if ! grep -q '^VERIFICATION FAILED$' "$log" || [ "$claims" -eq 0 ] || [ "$witnesses" -eq 0 ]; then
		tail -n 20 "$log"
		fail "$proof: no verdict"
	elif grep '^\[' "$log" | grep -v ': SUCCESS$' | grep -v ' witness: .*: FAILURE$'; then
		fail "$proof: a claim does not hold"
	elif grep '^\[.* witness: .*: SUCCESS$' "$log"; then
		fail "$proof: what it speaks of never happens"
	else
		pass "$proof: $claims claims, $witnesses witnesses"
	fi
}

prove() {
	local source proof
	while IFS=: read -r source proof; do
		prove_one "$source" "${proof#void }"
	done < <(grep -o '^void prove_[a-z_]*' tests/core/proofs_*.c)
}

case ${1:-} in
native | fuzz | prove) parts=$1 ;;
all) parts="native fuzz prove" ;;
*)
	sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac

mkdir -p "$OUT"
for part in $parts; do
	begin=$SECONDS
	"$part"
	echo "$part: $((SECONDS - begin)) s"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
