#!/bin/bash
# In a machine, as root: has Tidegate enforce the profiles, and plays.
set -u
cd "$(dirname "$0")" || exit 1
T=$PWD/tidegate
# shellcheck source=tests/expect.sh
. ./expect.sh

# a program that the map trusts: a process that opens a raw socket falls, and the player with it
cp /payload/profile-ops /root/profile-ops
enforce --bundle /payload/profiles.bundle
# or each rename would have all paths looked up anew
[ -e /sys/fs/bpf/tidegate/links/profile_d_move ] || {
	echo "moves of directories are not counted"
	exit 1
}
# one waits for the other all the time: on one processor that takes half as long
taskset 1 xargs /root/profile-ops play tidegate </payload/names || exit 1
/root/profile-ops storm "$(cat /payload/rounds)" || exit 1
"$T" log --denied -n 3
