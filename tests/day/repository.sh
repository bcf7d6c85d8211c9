# shellcheck shell=bash
# A signed apt repository on the other machine, with one small package.

# repository VERSION [POSTINST]: the package in this version, with this script for its end.
repository() {
	local version=$1 dir=/srv/remote/repository build=/srv/remote/build home=/srv/remote/gnupg
	mkdir -p "$dir/pool" "$build/DEBIAN" "$build/usr/bin" "$build/etc/lab-hello"
	cat >"$build/DEBIAN/control" <<-CONTROL
		Package: lab-hello
		Version: $version
		Architecture: all
		Maintainer: The lab <lab@localhost>
		Description: says hello
	CONTROL
	printf '#!/bin/sh\nset -e\nadduser --system --quiet --group lab-hello || true\nldconfig\n' >"$build/DEBIAN/postinst"
	[ -z "${2:-}" ] || cp "$2" "$build/DEBIAN/postinst"
	chmod 755 "$build/DEBIAN/postinst"
	printf '#!/bin/sh\necho hello %s\n' "$version" >"$build/usr/bin/lab-hello"
	chmod 755 "$build/usr/bin/lab-hello"
	echo "version=$version" >"$build/etc/lab-hello/conf"
	dpkg-deb --build --root-owner-group "$build" "$dir/pool/lab-hello_${version}_all.deb"
	[ -d "$home" ] || {
		mkdir -m 700 "$home"
		gpg --homedir "$home" --batch --passphrase '' --quick-gen-key lab@localhost ed25519 sign never
		gpg --homedir "$home" --export >/etc/apt/keyrings/lab.gpg
		echo "deb [signed-by=/etc/apt/keyrings/lab.gpg] http://$REMOTE:8000 lab main" >/etc/apt/sources.list
		rm -f /etc/apt/sources.list.d/*
		# shellcheck disable=SC2016 # apt's own variables
		printf 'Unattended-Upgrade::Origins-Pattern { "origin=Lab"; };\n' >/etc/apt/apt.conf.d/60lab
	}
	(
		cd "$dir" && mkdir -p dists/lab/main/binary-amd64 &&
			apt-ftparchive packages pool >dists/lab/main/binary-amd64/Packages &&
			apt-ftparchive -o APT::FTPArchive::Release::Origin=Lab -o APT::FTPArchive::Release::Suite=lab \
				-o APT::FTPArchive::Release::Codename=lab -o APT::FTPArchive::Release::Components=main \
				-o APT::FTPArchive::Release::Architectures=amd64 release dists/lab >Release &&
			mv Release dists/lab/Release && gpg --homedir "$home" --batch --yes --clearsign -o dists/lab/InRelease dists/lab/Release
	)
}

unattended() {
	apt-get update && unattended-upgrade -v && lab-hello | grep -q 'hello 1.1'
}
