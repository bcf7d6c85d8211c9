# shellcheck shell=bash
# Libraries for C as an administrator has them: sourced where they are built, in a directory below tests/.

# install_library NAME DIR EXAMPLE: installed below DIR, where pkg-config finds it from now on; what it exports is what its header has,
# and nothing else. DIR/example is a copy of that of the examples, to be built there: another part may do the same at this moment.
install_library() {
	local name=$1 installed=$2 example=$3 root
	root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
	rm -rf "$installed"
	ARCHIVES=${PROGRAMS:-} "$root/scripts/build.sh" install "$installed" "$name" >&2
	cp -r "$root/examples/$example" "$installed/example"
	# but for the directory before it
	export PKG_CONFIG_SYSROOT_DIR=$installed PKG_CONFIG_LIBDIR=$installed/usr/lib/pkgconfig
	nm -D --defined-only "$installed/usr/lib/libtidegate-$name.so" | awk '{ print $3 }' | sort >"$installed/exported"
	grep -oE '\btg_[a-z_]+\(' "$root/include/tidegate/$name.h" | tr -d '(' | sort -u >"$installed/declared"
	# what documents mention
	diff "$installed/declared" "$installed/exported" || { echo "FAILED  declared and exported differ"; return 1; }
}
