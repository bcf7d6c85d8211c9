#!/bin/sh
# Counts what enforcement costs and writes it down, in docs/cost-lomac.md and
# docs/cost-lomac.json: cost.sh [6.12|7.2]. Fails if a budget is exceeded.
set -eu

cd "$(dirname "$0")/.."
TARGET=${CARGO_TARGET_DIR:-target}
figures=docs/cost-lomac.json

cargo build --locked --release -p tidegate-lab
program=$(scripts/build.sh static | tail -n 1)
exec "$TARGET/release/tidegate-lab" cost --kernel "${1:-6.12}" --tidegate "$program" \
	--json "$figures" --document "${figures%.json}.md"
