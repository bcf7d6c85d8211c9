# shellcheck shell=bash disable=SC2034
# Debian's policy, and a web server that does not run yet.
installed
mkdir -p /etc/selinux
cp -r "$HERE/selinux/default" /etc/selinux/
systemctl stop nginx
