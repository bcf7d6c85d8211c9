# shellcheck shell=bash disable=SC2034
# A workstation, and something that was cloned.
reader=alice
mkdir -p /home/alice/src/untrusted/x /home/alice/.config/containers
echo 'print(1)' >/home/alice/src/untrusted/x/tool.py
chown -R alice: /home/alice
with_policy 'include workstation'
