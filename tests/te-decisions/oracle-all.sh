#!/bin/sh
# As oracle.sh, with five times as many questions of each policy.
TE_SAMPLES=100000 exec "$(dirname "$0")/oracle.sh" "$@"
