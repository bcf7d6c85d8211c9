#!/bin/bash
# Every system call at the lowest level, by an attacker of our own (docs/dev/testing.md). ATTACK_SEED, ATTACK_SECONDS, ATTACK_CALLS and
# ATTACK_LEAVE_OUT are what the words --seed, --seconds, --calls and --leave-out say, too.
set -u
cd "$(dirname "$0")" || exit 1
T=$PWD/tidegate
# shellcheck source=tests/expect.sh
. ./expect.sh

enforce --policy /payload/attack.plm
exec /payload/attack "$@"
