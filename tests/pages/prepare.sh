#!/bin/bash
# For the pages on profiles and on SELinux policies: AppArmor's parser of this machine, and Debian's policy.
#   prepare.sh PAYLOAD
set -eu
cp "$(command -v apparmor_parser)" "$1"
cache=${TIDEGATE_LAB_CACHE:-${CARGO_TARGET_DIR:-target}/lab}
mkdir "$1/selinux"
cp -r "$cache/te-trixie/etc/selinux/default" "$1/selinux"
