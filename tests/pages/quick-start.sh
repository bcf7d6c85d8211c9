# shellcheck shell=bash disable=SC2034
# Alice may use sudo, and has built the tree. The name that she looks up is this machine's: it has no network, but a web server.
reader=alice
built
echo '127.0.0.1 deb.debian.org' >>/etc/hosts
