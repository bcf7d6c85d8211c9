#!/bin/sh
# What deny.toml asks of the crates: licences, sources, versions; advisories where their list can be had.
set -eu

cd "$(dirname "$0")/.."
deny=${CARGO_TARGET_DIR:-target}/tools/bin/cargo-deny
if ! "$deny" --version; then
	echo "there is no cargo-deny: scripts/setup.sh installs it, where it can be had"
	exit 1
fi
"$deny" --locked check bans licenses sources
if "$deny" fetch db; then
	"$deny" --locked check --disable-fetch advisories
else
	echo "the list of advisories cannot be had: they were not checked"
fi
