#!/bin/bash
# All that runs under Debian's policy: the contexts that SELinux gave from the beginning, and those that `--te-system` gives.
#   debian.sh LAB PAYLOAD KERNEL
# The last line is `N passed, N failed`.
set -eu
lab=$1 payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/te/machines.sh
. "$here/../te/machines.sh"
image=(--image measured)

cp "$here/debian-guest.sh" "$here/../te/flat.plm" "$payload"
passed=0 failed=0
for system in selinux tidegate; do
	in_machine $system $system /bin/bash /payload/debian-guest.sh $system
	# of programs that run: not of what the test itself is
	sed -n 's/^context: //p' "$payload/$system.log" | tr -d '\r' |
		grep -E '^(systemd|nginx|dmesg|sleep|python3|stress-ng)' | sort -u >"$payload/$system.contexts"
done
while read -r line; do
	if grep -qxF "$line" "$payload/tidegate.contexts"; then
		passed=$((passed + 1))
		echo "ok      $line"
	else
		failed=$((failed + 1))
		echo "FAILED  $line"
		grep "^${line%% *} " "$payload/tidegate.contexts" || true
	fi
done <"$payload/selinux.contexts"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 4 ]
