#!/bin/sh
# Measures what mandatory access control costs and writes it down: docs/dev/cost.json, and from
# it docs/dev/cost.md and docs/dev/cost.html. What is in docs/dev/cost.json and still holds is not
# measured again: cost.sh [6.12|7.2] [ARGUMENTS of `tidegate lab run`]
set -eu

cd "$(dirname "$0")/.."
kernel=${1:-6.12}
[ $# -eq 0 ] || shift

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
"$lab" run --kernel "$kernel" --systems all --items all --boots 3 --tidegate "$program" \
	--json docs/dev/cost.json ${commit:+--commit "$commit"} "$@" >/dev/null || good=no
"$lab" report docs/dev/cost.json --markdown docs/dev/cost.md --html docs/dev/cost.html
[ "$good" = yes ]
