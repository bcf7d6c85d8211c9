#!/bin/sh
# Builds the test runner as everything is built for tests, and becomes it: xtask.sh ARG… (crates/xtask; `xtask.sh --help`)
set -eu

cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
if clippy-driver --version >/dev/null 2>&1; then
	export RUSTC_WORKSPACE_WRAPPER=clippy-driver
fi
# what is built once is not built in pieces
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0
cargo build --quiet --workspace --locked --examples --bin xtask
exec "${CARGO_TARGET_DIR:-target}/x86_64-unknown-linux-gnu/debug/xtask" "$@"
