#!/bin/bash
# Shows that the attacker of tests/suite/src/attack finds a hook that is left out (docs/dev/testing.md): detaches the monitor's program on
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
	log=target/test-logs/attack-$kernel.log
	# it has begun, and does not end with nothing found; a machine that a call has ended says nothing more
	if grep -q '^seed ' "$log" && ! grep -q ' passed, 0 failed$' "$log"; then
		grep -A 3 '^FAILED  calls' "$log" || echo 'the machine has ended'
		echo "$hook: found"
	else
		echo "$hook: NOT found"
		missed=$((missed + 1))
	fi
done
[ $missed = 0 ]
