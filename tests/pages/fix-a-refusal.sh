# shellcheck shell=bash disable=SC2034
# A tool of alice's, which had fallen, has written its log. It goes on until the daemon has seen what it is.
installed
mkdir -p /home/alice/work /etc/tidegate
echo old >/home/alice/work/tool.log
chown -R alice: /home/alice
in_force --preset workstation --permissive
as_alice 'exec 9</run/tidegate/level/untrusted; echo line >>~/work/tool.log; sleep 10'
