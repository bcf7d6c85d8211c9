#!/bin/bash
# The census: this kernel's list in the tree is what this kernel offers. Where Debian has a newer build, the difference is said;
# scripts/census.sh writes the lists anew.
#
# Runs as root in the VM, beside the `tidegate` program and the lists. The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
# shellcheck source=tests/expect.sh
. ./expect.sh

series=$(uname -r | cut -d . -f 1,2)
"$T" census >/tmp/census
# the release is told by the difference, and a newer build that offers the same passes
same() { diff <(grep -v '^release ' "$series.txt") <(grep -v '^release ' /tmp/census); }
expect 0 '^release ' cat /tmp/census
expect 0 '' same
expect 0 '"rows":\[' "$T" census --undecided --json

echo "$passed passed, $failed failed"
[ $failed = 0 ]
