#!/bin/bash
# The system-wide start of the `te` model, and labels that outlive it, in a virtual machine.
#   run.sh LAB PAYLOAD KERNEL
# LAB is the lab's program, PAYLOAD a directory with tidegate. Needs secilc here. The last line is `N passed, N failed`.
set -eu
lab=$1 payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)

# compile NAME SED: the policy, changed so
compile() {
	sed "$2" "$here/system.cil" >"$payload/$1.cil"
	secilc --policyvers=33 --output="$payload/$1.pol" --filecontext="$payload/$1.fc" "$payload/$1.cil"
}
compile system ''
# one that does not know what the daemon's files are, and has other numbers for the rest
compile less '/made_t/d; s/^(type kernel_t)/(type first_t) &/'
# one under which the first process could not go on
compile tight 's/^(allow kernel_t self (capability (all)))/(allow kernel_t self (capability (setuid setgid sys_admin)))/'
cp "$here/check.sh" "$here/../expect.sh" "$here/daemon.pl" "$here/../te/flat.plm" "$payload"
exec "$lab" vm --kernel "$kernel" --payload "$payload" --timeout 3600 --lsm lockdown,yama,bpf -- bash /payload/check.sh
