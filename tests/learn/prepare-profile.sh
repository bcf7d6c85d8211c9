#!/bin/sh
# For a profile that is learned from complain mode: the parser and patch(1) of this machine.
#   prepare-profile.sh PAYLOAD
set -eu
cp "$(command -v apparmor_parser)" "$(command -v patch)" "$1"
