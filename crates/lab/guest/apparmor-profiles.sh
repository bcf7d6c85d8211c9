set -eu
# Runs at the end of mmdebstrap; $1 is the tree: /etc/apparmor.d and /usr/share/apparmor of the packages
# of Debian trixie that ship profiles, by its list of contents
#   zgrep -E '^etc/apparmor.d/[^/ ]+ ' Contents-amd64.gz Contents-all.gz
# but for those of more than 10 MB, which are libreoffice-common, snapd and thunderbird.
packages="
akonadi-server anope aprx bind9 charon-systemd chrony clamav-daemon clamav-freshclam cockpit-ws
cups-browsed cups-daemon evince firejail font-manager fwknop-apparmor-profile geoclue-2.0
gnome-shell-extension-desktop-icons-ng gpsd guestfs-tools haveged i2pd ibus-hangul inspircd ioquake3
ioquake3-server isc-dhcp-client isc-dhcp-server kea-common kea-ctrl-agent kea-dhcp-ddns-server
kea-dhcp4-server kea-dhcp6-server keystone libapache2-mod-apparmor libcharon-extra-plugins
liblxc-common libvirt-daemon libvirt-daemon-common lightdm lightdm-remote-session-x2go
lomiri-addressbook-app lomiri-content-hub-testability lomiri-download-manager lomiri-url-dispatcher
man-db mariadb-server mediascanner2.0 msmtp ntpsec onioncircuits openiked openntpd openqa
openqa-worker papers passt pollen postsrsd privoxy qtox quassel-core redshift squid sssd-common
strongswan-charon strongswan-starter strongswan-swanctl surf tcpdump telepathy-mission-control-5 tor
unbound libhangul-data libvirt-daemon-driver-lxc libvirt-daemon-driver-qemu
"
(
	export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
	mkdir "$1/fetched"
	cd "$1/fetched"
	# shellcheck disable=SC2086 # a list of words
	apt-get download -q $packages
	for package in *.deb; do
		dpkg-deb -x "$package" files
	done
	for directory in etc/apparmor.d usr/share/apparmor; do
		cp -an "files/$directory/." "$1/$directory"
	done
	cd "$1/etc/apparmor.d"
	# as packages do when they are installed (dh_apparmor(1))
	for profile in *; do
		[ -d "$profile" ] || [ -e "local/$profile" ] || : >"local/$profile"
	done
	rm -r "$1/fetched"
)
