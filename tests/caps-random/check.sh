#!/bin/bash
# Random sequences of what sessions do, against the reference model, and races with revocation: CAPS_SEED and CAPS_COUNT play others.
set -u
cd "$(dirname "$0")" || exit 1
T=$PWD/tidegate
# shellcheck source=tests/expect.sh
. ./expect.sh

enforce --policy /payload/flat.plm
exec /payload/caps-random "${CAPS_SEED:-1}" "${CAPS_COUNT:-6}"
