# shellcheck shell=bash disable=SC2034
# A policy enforces. Something untrusted can be built, and a file has three lines.
reader=alice
installed
mkdir -p /home/alice/src/untrusted/thing /srv/in /srv/out
printf 'thing:\n\techo built >thing\n' >/home/alice/src/untrusted/thing/Makefile
chown -R alice: /home/alice
printf '%s\n' one two three >/srv/in/today
in_force --preset workstation
