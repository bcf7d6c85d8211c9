#!/bin/bash
# Fuzzes the map parser, the readers of bundles, profiles and recordings, and the decision core.
#   fuzz.sh [SECONDS]   so long in all (600), shared among the ten targets
set -eu

cd "$(dirname "$0")/.."
each=$((${1:-600} / 10))

BOLERO_RANDOM_TEST_TIME_MS=$((each * 1000)) \
	cargo test --locked --release -p tidegate-policy-fuzz -- --test-threads 1
FUZZ_SECONDS=$each tests/core/run.sh fuzz
