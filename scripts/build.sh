#!/bin/sh
# Builds what is installed: programs and libraries in their release form. What tests need, crates/xtask builds.
#   build.sh static              the static programs, the command line and the daemon beside it; the path of the first is the last line
#   build.sh lab                 the lab's program, static too; beside the other
#   build.sh install DIR [NAME]  the libraries for C (avc, restrict, service) or one, with header and what pkg-config reads, as in DIR;
#                                PREFIX=/usr, LIBDIR=PREFIX/lib. ARCHIVES=DIR takes those that are built there
#   build.sh man                 the manual's pages, of commands and of documents, and completions
#   build.sh clean               all of target/ but target/lab
set -eu

cd "$(dirname "$0")/.."
TARGET=${CARGO_TARGET_DIR:-target}
RELEASE=$TARGET/x86_64-unknown-linux-gnu/release
LIBRARIES="avc restrict service"

# The release form of one program.
static() {
	cargo build --release --workspace --locked --bin "$1"
}

# The version that the workspace says.
version() {
	sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml
}

man() {
	command -v go-md2man >/dev/null || {
		echo "build: there is no go-md2man: \`make setup\` installs it" >&2
		exit 1
	}
	rm -rf "$TARGET/man"
	mkdir -p "$TARGET/man" "$TARGET/completions"
	# it has no page of its own: `tidegate start` starts it
	static tidegated
	for name in tidegate tidegate-exporter tidegate-lab; do
		static "$name"
		program=$RELEASE/$name
		"$program" man "$TARGET/man"
		for shell in bash fish zsh; do
			"$program" completions "$shell" >"$TARGET/completions/$name.$shell"
		done
	done
	python3 scripts/man.py "$(version)" "$TARGET/man"
	echo "$TARGET/man and $TARGET/completions"
}

# shared NAME ARCHIVE FILE: the shared library, of the same objects as the static one. It exports what its header declares.
shared() {
	symbols=$(grep -oE '\btg_[a-z_]+\(' "include/tidegate/$1.h" | sed 's/($/;/' | sort -u)
	printf '{ global: %s local: *; };\n' "$symbols" >"$3.map"
	cc -shared -o "$3" -Wl,-soname,"libtidegate-$1.so.0" -Wl,--version-script="$3.map" -Wl,--gc-sections -Wl,-z,defs,-z,relro,-z,now \
		-Wl,--whole-archive "$2" -Wl,--no-whole-archive -lgcc_s -lpthread -ldl -lm -lc
	rm "$3.map"
}

# install_library DIR NAME: as packages have it, and `make install`.
install_library() {
	root=$1 name=$2
	prefix=${PREFIX:-/usr}
	libdir=${LIBDIR:-$prefix/lib}
	version=$(version)
	archives=${ARCHIVES:-$RELEASE}
	[ -n "${ARCHIVES:-}" ] || cargo build --release --workspace --locked --lib
	install -D -m 644 "include/tidegate/$name.h" "$root$prefix/include/tidegate/$name.h"
	install -D -m 644 "$archives/libtidegate_${name}_c.a" "$root$libdir/libtidegate-$name.a"
	shared "$name" "$archives/libtidegate_${name}_c.a" "$root$libdir/libtidegate-$name.so.$version"
	strip "$root$libdir/libtidegate-$name.so.$version"
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
	static tidegated
	echo "$RELEASE/tidegate"
	;;
lab)
	static tidegate-lab
	echo "$RELEASE/tidegate-lab"
	;;
install)
	for name in ${3:-$LIBRARIES}; do
		install_library "${2:-}" "$name"
	done
	;;
man) man ;;
clean) clean ;;
*)
	sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
