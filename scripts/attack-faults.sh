#!/bin/bash
# Shows that the attacker of tests/suite/src/attack finds a hook that is left out (docs/testing.md): detaches the monitor's program on
# each of these hooks before the attack, which has to find something then.
#   attack-faults.sh [KERNEL [HOOK…]]
set -u
cd "$(dirname "$0")/.." || exit 1

kernel=${1:-6.12}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- inode_setattr inode_unlink capable
missed=0
for hook; do
	ATTACK_LEAVE_OUT=$hook scripts/xtask.sh test "attack-$kernel"
	if grep "^FAILED  calls" -A 3 "target/test-logs/attack-$kernel.log"; then
		echo "$hook: found"
	else
		echo "$hook: NOT found"
		missed=$((missed + 1))
	fi
done
[ $missed = 0 ]
