#!/bin/bash
# As check.sh, of which it plays the beginning: longer.
set -u
cd "$(dirname "$0")" || exit 1
T=$PWD/tidegate
# shellcheck source=tests/expect.sh
. ./expect.sh

enforce --policy /payload/replay.plm
exec /payload/replay --seed "${REPLAY_SEED:-1}" --ops "${REPLAY_OPS:-12000}"
