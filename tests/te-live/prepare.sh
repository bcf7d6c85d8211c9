#!/bin/bash
# For what a governed process holds when a boolean of its policy is set: the policy.
#   prepare.sh PAYLOAD
# Needs secilc here.
set -eu
payload=$1
here=$(cd "$(dirname "$0")" && pwd)

secilc --policyvers=33 --output="$payload/live.pol" --filecontext="$payload/live.fc" "$here/live.cil"
# the same, but each type has another number
sed 's/^(type kernel_t)/(type first_t) (type second_t) (type kernel_t)/' "$here/live.cil" >"$payload/other.cil"
secilc --policyvers=33 --output="$payload/other.pol" --filecontext=/dev/null "$payload/other.cil"
