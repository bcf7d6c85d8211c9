# shellcheck shell=bash disable=SC2034
# A program of alice's has connected to another address and then tried to change a dotfile of hers.
reader=alice
installed
ip address replace 203.0.113.7/32 dev lo
printf '%s\n' '#!/bin/bash' 'exec 3<>/dev/tcp/203.0.113.7/80' 'cp /etc/hostname ~/.bashrc' >/usr/local/bin/pkg
chmod 755 /usr/local/bin/pkg
in_force --preset workstation
as_alice 'exec bash -lc pkg'
