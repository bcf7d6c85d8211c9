#!/bin/bash
# Counts what a start with `lomac` alone costs: the instructions that a processor executes from the command to its end, and the
# verifier's steps (docs/dev/testing.md). Instructions are no time: how long they take depends on the processor.
#   start-cost.sh KERNEL [PROGRAM…]    with a daemon beside it; this tree's release build if none is named
set -eu

cd "$(dirname "$0")/.."
kernel=${1:?which kernel: 6.12 or 7.2?}
shift
[ $# -gt 0 ] || set -- "$(scripts/build.sh static | tail -n 1)"
LAB=${LAB:-${CARGO_TARGET_DIR:-target}/x86_64-unknown-linux-gnu/debug/tidegate-lab}
[ -x "$LAB" ] || scripts/xtask.sh build tidegate-lab

payload=$(mktemp -d)
trap 'rm -rf "$payload"' EXIT
gcc -static -O1 -Wall -Wextra -o "$payload/verified" tests/start-cost/verified.c
cp tests/start-cost/check.sh "$payload"
for program; do
	cp "$program" "$payload"
	# older ones are their own daemon
	[ ! -e "${program%/*}/tidegated" ] || cp "${program%/*}/tidegated" "$payload"
	said=$("$LAB" vm --kernel "$kernel" --icount --timeout 3600 --payload "$payload" \
		-- bash /payload/check.sh 2>"$payload/said") || {
		echo "$program, $kernel: $said" >&2
		cat "$payload/said" >&2
		exit 1
	}
	echo "$program, $kernel: $said"
done
