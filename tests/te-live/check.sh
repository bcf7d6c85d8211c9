#!/bin/bash
# What a governed process holds when a boolean of its policy is set, in a machine; the last line is `N passed, N failed`.
#   check.sh        the scenes
#   check.sh cost   what revocation costs, in time
set -u
cd "$(dirname "$0")" || exit 1
T=$PWD/tidegate
# shellcheck source=tests/expect.sh
. ./expect.sh

mkdir -p /root/live
enforce --policy /payload/flat.plm --te /payload/live.pol --file-contexts /payload/live.fc
exec /payload/te-live "${@:-play}"
