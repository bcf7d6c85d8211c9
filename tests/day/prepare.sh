#!/bin/bash
# For a day on a whole Debian: the packages, and a disk that comes late, as the guest cannot make one.
#   prepare.sh PAYLOAD
set -eu
packaging/build.sh deb
cp "${CARGO_TARGET_DIR:-target}"/package/*.deb "$1"
/usr/sbin/mkfs.ext4 -q "$1/disk.img" 64M
