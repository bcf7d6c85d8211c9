#!/bin/bash
# For what a SELinux policy refused, explained and learned: the policy of tests/te.
#   prepare-te.sh PAYLOAD   a directory with te-ops
set -eu
payload=$1
here=$(cd "$(dirname "$0")/../te" && pwd)
# shellcheck source=tests/te/machines.sh
. "$here/machines.sh"
policy
