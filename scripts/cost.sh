#!/bin/sh
# Measures what mandatory access control costs. The figures go to cost.json below target/cost, or
# below the directory that OUT names, and the whole report to cost.md and cost.html beside it; its
# summary is docs/dev/cost.md. What is in cost.json and still holds is not measured again:
# cost.sh [6.12|7.2] [ARGUMENTS of `tidegate lab run`]
set -eu

cd "$(dirname "$0")/.."
kernel=${1:-6.12}
[ $# -eq 0 ] || shift
OUT=${OUT:-${CARGO_TARGET_DIR:-target}/cost}

# The commit that the sources are, or nothing if they are not just that.
source_commit() {
	changed=$(git status --porcelain -- . ':!docs' 2>/dev/null) || return 0
	[ -n "$changed" ] || git rev-parse --short=12 HEAD
}

good=yes
commit=$(source_commit)
lab=$(scripts/build.sh lab | tail -n 1)
program=$(scripts/build.sh static | tail -n 1)
# somebody else may have changed them meanwhile
[ "$commit" = "$(source_commit)" ] || commit=
mkdir -p "$OUT"
"$lab" run --kernel "$kernel" --systems all --items all --boots 3 --tidegate "$program" \
	--json "$OUT/cost.json" ${commit:+--commit "$commit"} "$@" >/dev/null || good=no
"$lab" report "$OUT/cost.json" --markdown "$OUT/cost.md" --html "$OUT/cost.html" \
	--summary docs/dev/cost.md
echo "$OUT/cost.html, and docs/dev/cost.md in short"
[ "$good" = yes ]
