# shellcheck shell=bash disable=SC2034
# A workstation, and a package that alice has downloaded.
mkdir -p /srv/tool/DEBIAN /srv/tool/usr/bin /home/alice/Downloads
printf '%s\n' 'Package: tool' 'Version: 1.2' 'Architecture: amd64' 'Maintainer: Example <example@example.org>' \
	'Description: a tool' >/srv/tool/DEBIAN/control
printf '#!/bin/sh\necho tool\n' >/srv/tool/usr/bin/tool
chmod 755 /srv/tool/usr/bin/tool
dpkg-deb --root-owner-group -b /srv/tool /home/alice/Downloads/tool_1.2_amd64.deb >/dev/null
chown -R alice: /home/alice
with_policy 'include workstation'
