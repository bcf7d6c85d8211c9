#!/bin/bash
# For the same operations under the same profiles, on a kernel with AppArmor and on one with Tidegate: the profiles, compiled for both.
#   prepare.sh PAYLOAD KERNEL   a directory with tidegate and profile-ops; EACH=N: each how manieth profile (3; 1: all);
#                               ROUNDS=N: how often each change of a storm of names is made (12)
# Needs apparmor_parser here.
set -eu
payload=$1
here=$(cd "$(dirname "$0")" && pwd)
parser=apparmor_parser
# shellcheck source=tests/profile/machines.sh
. "$here/machines.sh"

profiles=("$here/profiles")
major=$(apparmor_parser --version | sed -n 's/^AppArmor parser version \([0-9]*\).*/\1/p')
[ "$major" -lt 4 ] || profiles+=("$here/profiles-4")

"$payload/profile-ops" features >"$payload/features"
# for_apparmor FILE PROFILES…, with a table of the bytes that mean the same
for_apparmor() {
	parse --optimize=equiv --skip-kernel-load --ofile "$1" "${@:2}"
}
for_apparmor "$payload/profiles.bin" "${profiles[@]}"
for_apparmor "$payload/unix.bin" "$here/profiles-unix"
"$payload/profile-ops" v9 "$payload/unix.bin" "$payload/unix-v9.bin"
cat "$payload/unix-v9.bin" >>"$payload/profiles.bin"
profiles+=("$here/profiles-unix")
"$payload/tidegate" compile "$here/flat.plm" "${profiles[@]/#/--profile=}" --output "$payload/profiles.bundle"
sed -n 's/^profile \([^ ]*\).*/\1/p' "${profiles[@]}" | awk -v each="${EACH:-3}" 'NR % each == 1 % each' >"$payload/names"
# so many verdicts at least
echo $((15000 / ${EACH:-3})) >"$payload/least"
echo "${ROUNDS:-12}" >"$payload/rounds"
cp "$here/apparmor.sh" "$payload"
