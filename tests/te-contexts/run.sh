#!/bin/bash
# File contexts as Tidegate compiles them, against libselinux of Debian 13: its policy's own, and some made at random.
#   run.sh [SETS [SEED]]   how many sets are made (400), and by which seed (1)
# In a tree as tests/te-decisions/tree.sh makes one, among the lab's other parts. The last line is `N passed, N failed`.
set -eu

cd "$(dirname "$0")/../.."
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tree=$(realpath -m "${TIDEGATE_LAB_CACHE:-$TARGET/lab}")/te-trixie
# shellcheck source=tests/te-decisions/tree.sh
. tests/te-decisions/tree.sh

te_tree "$tree"
mkdir -p "$tree/tmp/te-contexts"
# the tree's C library is newer than this gcc's, and is found when it runs
gcc --sysroot="$tree" -O2 -Wall -Wextra -Werror -Wl,--allow-shlib-undefined -o "$tree/tmp/te-contexts/lookup" \
	tests/te-contexts/lookup.c -lselinux
exec "${PROGRAMS:-$TARGET/x86_64-unknown-linux-gnu/debug}/tidegate-tests" te-contexts "$tree" "$@"
