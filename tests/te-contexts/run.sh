#!/bin/bash
# File contexts as Tidegate compiles them, against libselinux of Debian 13: its policy's own, and some made at random.
#   run.sh [TREE [SETS [SEED]]]   as root; TREE is a Debian 13 tree with gcc, libselinux1-dev and selinux-policy-default
# Without a tree, mmdebstrap makes one for the time being. The last line is `N passed, N failed`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=${1:-}
if [ -z "$tree" ]; then
	tree=$(mktemp -d)
	trap 'rm -rf "$tree"' EXIT
	mmdebstrap --quiet --variant=minbase --include=gcc,libc6-dev,libselinux1-dev,selinux-policy-default trixie "$tree" >&2
fi
mkdir -p "$tree/tmp/te-contexts"
cp "$here/lookup.c" "$tree/tmp/te-contexts/"
chroot "$tree" gcc -O2 -Wall -Wextra -Werror -o /tmp/te-contexts/lookup /tmp/te-contexts/lookup.c -lselinux
shift $(($# > 0))
cargo run --quiet --release --manifest-path "$here/Cargo.toml" -- "$tree" "$@"
