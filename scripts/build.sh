#!/bin/sh
# Builds what the Makefile's targets name.
#   build.sh static              the static program; its path is the last line
#   build.sh lab                 the lab's program, static too; beside the other
#   build.sh payload DIR NAME…   static programs, in DIR for a VM; the tests' own by their names in tests/suite
#   build.sh library [NAME]      libtidegate-avc and libtidegate-service for C, or one; the directory they are in is the last line
#   build.sh install DIR [NAME]  the same, its header and what pkg-config reads, as in DIR; PREFIX=/usr, LIBDIR=PREFIX/lib
#   build.sh man                 manual pages and completions
#   build.sh clean               all of target/ but target/lab
set -eu

cd "$(dirname "$0")/.."
TARGET=${CARGO_TARGET_DIR:-target}
TRIPLE=x86_64-unknown-linux-gnu
LIBRARIES="avc restrict service"

# The release form of one program.
static() {
	cargo static --locked --bin "$1"
}

static_program() {
	echo "$TARGET/$TRIPLE/release/$1"
}

man() {
	mkdir -p "$TARGET/man" "$TARGET/completions"
	for name in tidegate tidegate-exporter tidegate-lab; do
		static "$name"
		program=$(static_program "$name")
		"$program" man "$TARGET/man"
		for shell in bash fish zsh; do
			"$program" completions "$shell" >"$TARGET/completions/$name.$shell"
		done
	done
	echo "$TARGET/man and $TARGET/completions"
}

payload() {
	dir=$1
	shift
	mkdir -p "$dir"
	for program in "$@"; do
		case $program in
		# one program, which is what it is called (tests/suite)
		scenarios | te-ops | te-live | profile-ops | caps-random | replay) built=tidegate-tests ;;
		*) built=$program ;;
		esac
		static "$built"
		install -m 755 "$(static_program "$built")" "$dir/$program"
	done
}

# library NAME: for C. Unlike the programs it goes with the machine's C library.
library() {
	cargo build --release --locked -p "tidegate-$1-c"
	echo "$TARGET/release"
}

# install_library DIR NAME: as packages have it, and `make install`.
install_library() {
	root=$1 name=$2
	prefix=${PREFIX:-/usr}
	libdir=${LIBDIR:-$prefix/lib}
	version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
	library "$name"
	install -D -m 644 "include/tidegate/$name.h" "$root$prefix/include/tidegate/$name.h"
	install -D -s -m 644 "$TARGET/release/libtidegate_${name}_c.so" "$root$libdir/libtidegate-$name.so.$version"
	install -D -m 644 "$TARGET/release/libtidegate_${name}_c.a" "$root$libdir/libtidegate-$name.a"
	ln -sf "libtidegate-$name.so.$version" "$root$libdir/libtidegate-$name.so.0"
	ln -sf "libtidegate-$name.so.0" "$root$libdir/libtidegate-$name.so"
	mkdir -p "$root$libdir/pkgconfig"
	sed "s|@PREFIX@|$prefix|; s|@LIBDIR@|$libdir|; s|@VERSION@|$version|" "packaging/tidegate-$name.pc.in" \
		>"$root$libdir/pkgconfig/tidegate-$name.pc"
}

clean() {
	[ -d "$TARGET" ] || return 0
	find "$TARGET" -mindepth 1 -maxdepth 1 ! -name lab -exec rm -rf {} +
}

# shellcheck disable=SC2086 # names
case ${1:-} in
static)
	static tidegate
	static_program tidegate
	;;
lab)
	static tidegate-lab
	static_program tidegate-lab
	;;
payload)
	shift
	payload "$@"
	;;
library)
	for name in ${2:-$LIBRARIES}; do
		library "$name"
	done
	;;
install)
	for name in ${3:-$LIBRARIES}; do
		install_library "${2:-}" "$name"
	done
	;;
man) man ;;
clean) clean ;;
*)
	sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
