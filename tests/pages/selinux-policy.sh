# shellcheck shell=bash disable=SC2034
# Debian's policy, and a web server that does not run yet. It has a configuration where the policy lets it read none.
installed
mkdir -p /etc/selinux
cp -r "$HERE/selinux/default" /etc/selinux/
systemctl stop nginx
mkdir -p /root/sites
echo 'server { listen 8080; }' >/root/sites/own.conf
echo 'include /root/sites/*.conf;' >/etc/nginx/conf.d/own.conf
