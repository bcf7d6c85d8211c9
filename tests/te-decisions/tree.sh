#!/bin/bash
# A tree of Debian trixie with SELinux's own tools and policy, which tests of the `te` model ask. Sourced; or tree.sh DIR makes it.
INCLUDED=selinux-policy-default,libsepol-dev,libselinux1-dev,secilc,libc6-dev,setools

# te_tree DIR: makes it, unless it is there whole; one that comes while another makes it waits. The package has built its
# policy in it.
te_tree() {
	mkdir -p "$(dirname "$1")"
	(
		flock 9
		[ -e "$1/usr/include/selinux/label.h" ] || make_te_tree "$1"
	) 9>"$1.lock"
}

# By way of a tar file, which keeps what a user may not have: owners.
make_te_tree() {
	local new=$1.new
	rm -rf "$new" "$1"
	mkdir -p "$new"
	mmdebstrap --variant=minbase --include="$INCLUDED" --architectures=amd64 --format=tar \
		--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Check-Valid-Until "false"' \
		trixie "$new.tar"
	tar -xf "$new.tar" -C "$new" --no-same-owner --exclude=./dev
	rm "$new.tar"
	mv "$new" "$1"
}

# inside TREE PROGRAM ARG…: a program of the tree, by the tree's own libraries, which needs no root.
inside() {
	local tree=$1 program=$2
	shift 2
	PYTHONHOME="$tree/usr" PYTHONPATH="$tree/usr/lib/python3/dist-packages" \
		"$tree/lib64/ld-linux-x86-64.so.2" --library-path "$tree/usr/lib/x86_64-linux-gnu:$tree/lib/x86_64-linux-gnu" \
		"$tree/usr/bin/$program" "$@"
}

if [ "$0" = "${BASH_SOURCE[0]}" ]; then
	set -eu
	te_tree "$1"
fi
