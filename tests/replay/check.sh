#!/bin/bash
# Random operations on a kernel, against the reference model: on newer kernels fewer and other ones, as `replay-all` many more.
# REPLAY_SEED=N and REPLAY_OPS=N play others.
set -u
cd "$(dirname "$0")" || exit 1
T=$PWD/tidegate
# shellcheck source=tests/expect.sh
. ./expect.sh

case $0,$(uname -r) in
*-all.play,*) seed=1 ops=12000 ;;
*,6.12.*) seed=1 ops=3000 ;;
*) seed=2 ops=1000 ;;
esac
enforce --policy /payload/replay.plm
exec /payload/replay --seed "${REPLAY_SEED:-$seed}" --ops "${REPLAY_OPS:-$ops}"
