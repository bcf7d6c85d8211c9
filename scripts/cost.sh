#!/bin/sh
# Counts what enforcement costs and writes it down, in docs/cost-lomac.md and
# docs/cost-lomac.json: cost.sh [6.12|7.2]. Fails if a budget is exceeded.
set -eu

cd "$(dirname "$0")/.."
TARGET=${CARGO_TARGET_DIR:-target}
figures=docs/cost-lomac.json

# The commit that the sources are, or nothing if they are not just that.
source_commit() {
	changed=$(git status --porcelain -- . ':!docs' 2>/dev/null) || return 0
	[ -n "$changed" ] || git rev-parse --short=12 HEAD
}

commit=$(source_commit)
cargo build --locked --release -p tidegate-lab
program=$(scripts/build.sh static | tail -n 1)
# somebody else may have changed them meanwhile
[ "$commit" = "$(source_commit)" ] || commit=
exec "$TARGET/release/tidegate-lab" cost --kernel "${1:-6.12}" --tidegate "$program" \
	--json "$figures" --document "${figures%.json}.md" ${commit:+--commit "$commit"}
