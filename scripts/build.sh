#!/bin/sh
# Builds what the Makefile's targets name.
#   build.sh static              the static program; its path is the last line
#   build.sh lab                 the lab's program, static too; beside the other
#   build.sh payload DIR BIN…    static programs, in DIR for a VM
#   build.sh library             libtidegate-avc for C; the directory it is in is the last line
#   build.sh install DIR         the same, its header and what pkg-config reads, as in DIR; PREFIX=/usr, LIBDIR=PREFIX/lib
#   build.sh man                 manual pages and completions
#   build.sh clean               all of target/ but target/lab
set -eu

cd "$(dirname "$0")/.."
TARGET=${CARGO_TARGET_DIR:-target}
TRIPLE=x86_64-unknown-linux-gnu

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
		static "$program"
		install -m 755 "$(static_program "$program")" "$dir/$program"
	done
}

# The library for C: unlike the programs it goes with the machine's C library.
library() {
	cargo build --release --locked -p tidegate-avc-c
	echo "$TARGET/release"
}

# As packages have it, and `make install`.
install_library() {
	root=$1
	prefix=${PREFIX:-/usr}
	libdir=${LIBDIR:-$prefix/lib}
	version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
	library
	install -D -m 644 include/tidegate/avc.h "$root$prefix/include/tidegate/avc.h"
	install -D -s -m 644 "$TARGET/release/libtidegate_avc_c.so" "$root$libdir/libtidegate-avc.so.$version"
	install -D -m 644 "$TARGET/release/libtidegate_avc_c.a" "$root$libdir/libtidegate-avc.a"
	ln -sf "libtidegate-avc.so.$version" "$root$libdir/libtidegate-avc.so.0"
	ln -sf libtidegate-avc.so.0 "$root$libdir/libtidegate-avc.so"
	mkdir -p "$root$libdir/pkgconfig"
	sed "s|@PREFIX@|$prefix|; s|@LIBDIR@|$libdir|; s|@VERSION@|$version|" packaging/tidegate-avc.pc.in \
		>"$root$libdir/pkgconfig/tidegate-avc.pc"
}

clean() {
	[ -d "$TARGET" ] || return 0
	find "$TARGET" -mindepth 1 -maxdepth 1 ! -name lab -exec rm -rf {} +
}

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
library) library ;;
install)
	install_library "${2:-}"
	;;
man) man ;;
clean) clean ;;
*)
	sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
