#!/bin/bash
# In a machine that counts instructions, as root: what a start with `lomac` alone costs there (scripts/start-cost.sh).
set -eu

begin=$(date +%s%N)
/payload/tidegate start --preset server >/payload.said 2>&1 || {
	cat /payload.said
	exit 1
}
end=$(date +%s%N)
/payload/verified | awk -v ns=$((end - begin)) '
	# systemd and others have programs of their own
	$1 ~ /^(lomac|ps)_/ { programs++; steps += $2; code += $3; if ($2 > most) { most = $2; name = $1 } }
	END {
		printf "%d million instructions, %d programs of %d instructions, %d verifier steps, ", ns / 1e6, programs, code, steps
		printf "%d of them of %s\n", most, name
	}'
