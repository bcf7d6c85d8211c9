# shellcheck shell=bash disable=SC2034
# A server, and the exporter.
install "$HERE/tidegate-exporter" /usr/bin/
mkdir -p /var/lib/prometheus/node-exporter
with_policy 'include server'
