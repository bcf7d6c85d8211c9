#!/bin/bash
# Writes the lists of crates/census/kernels anew, by what the machines' kernels offer (docs/dev/census.md).
#   census.sh [SERIES…]   6.12 and 7.2 if none is given
set -eu
cd "$(dirname "$0")/.."

payload=$(mktemp -d)
trap 'rm -rf "$payload"' EXIT
scripts/xtask.sh payload "$payload" tidegate tidegate-lab
mv "$payload/tidegate-lab" "$payload/lab"
[ $# -gt 0 ] || set -- 6.12 7.2
for series; do
	"$payload/lab" vm --kernel "$series" --payload "$payload" -- /payload/tidegate census |
		tr -d '\r' >"$payload/list"
	mv "$payload/list" "crates/census/kernels/$series.txt"
done
git --no-pager diff --stat -- crates/census/kernels
