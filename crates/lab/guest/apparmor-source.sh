set -eu
# Runs at the end of mmdebstrap; $1 is the tree: AppArmor's source package, with Debian's
# patches, as /usr/src/apparmor. apt checks it by the lists that the suite's key signs.
(
	export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
	list=$1/etc/apt/sources.list.d/sources.list
	sed 's/^deb /deb-src /' "$1/etc/apt/sources.list" > "$list"
	apt-get update -q
	mkdir -p "$1/usr/src"
	cd "$1/usr/src"
	apt-get source -q apparmor
	rm "$list" apparmor_*
	mv apparmor-* apparmor
)
