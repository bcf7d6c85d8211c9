#!/bin/bash
# What a governed process holds when a boolean of its policy is set, in a virtual machine.
#   run.sh LAB PAYLOAD KERNEL play   the scenes; the last line is `N passed, N failed`
#   run.sh LAB PAYLOAD KERNEL cost   what revocation costs, in time
# LAB is the lab's program, PAYLOAD a directory with tidegate and te-live. Needs secilc here.
set -eu
lab=$1 payload=$2 kernel=$3 what=$4
here=$(cd "$(dirname "$0")" && pwd)

secilc --policyvers=33 --output="$payload/live.pol" --filecontext="$payload/live.fc" "$here/live.cil"
# the same, but each type has another number
sed 's/^(type kernel_t)/(type first_t) (type second_t) (type kernel_t)/' "$here/live.cil" >"$payload/other.cil"
secilc --policyvers=33 --output="$payload/other.pol" --filecontext=/dev/null "$payload/other.cil"
cp "$here/../te/flat.plm" "$payload"
# the same program, whose file leads to another domain
cp "$payload/te-live" "$payload/other-live"
cat >"$payload/live.sh" <<-'END'
	set -eu
	mkdir -p /root/live
	/payload/tidegate start --given-entries 4096 --policy /payload/flat.plm --te /payload/live.pol --file-contexts /payload/live.fc
	/payload/te-live "$1" || status=$?
	/payload/tidegate stop
	exit ${status:-0}
END
exec "$lab" vm --kernel "$kernel" --payload "$payload" --timeout 3600 --lsm lockdown,yama,bpf -- /bin/sh /payload/live.sh "$what"
