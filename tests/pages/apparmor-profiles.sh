# shellcheck shell=bash disable=SC2034
# A program with a profile, AppArmor's parser, and the policy of a package that is not running.
installed
install "$HERE/apparmor_parser" /usr/sbin/
printf '%s\n' '#!/bin/sh' 'exec cat /etc/nsswitch.conf' >/usr/sbin/nscd
chmod 755 /usr/sbin/nscd
rm -rf /etc/apparmor.d
mkdir -p /etc/apparmor.d /etc/tidegate
printf '%s\n' 'profile nscd /usr/sbin/nscd flags=(complain) {' '  /usr/sbin/nscd r,' '}' >/etc/apparmor.d/usr.sbin.nscd
echo 'include server' >/etc/tidegate/policy.plm
