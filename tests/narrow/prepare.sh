#!/bin/bash
# For programs that limit themselves: the library for C.
#   prepare.sh PAYLOAD
# The library for C is installed into a directory, and its example built with what pkg-config says of it: against the shared
# library, which runs here, and against the static one, which runs in the machine. Needs a C compiler here.
set -eu
payload=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
installed=$payload/installed-restrict
example=$installed/example

# shellcheck source=tests/c-library.sh
. "$here/../c-library.sh"
install_library restrict "$installed" narrow
make -s -C "$example" clean narrow
status=0
LD_LIBRARY_PATH=$installed/usr/lib "$example/narrow" /nowhere.caps tool /dev/null 2>"$payload/said" || status=$?
if [ $status != 1 ] || ! grep -q 'cannot read /nowhere.caps' "$payload/said"; then
	echo "FAILED  the example with the shared library: $status: $(cat "$payload/said")"
	exit 1
fi
make -s -C "$example" clean narrow LDSTATIC=-static
mv "$example/narrow" "$payload"
# shellcheck disable=SC2046 # words
cc -O2 -Wall -Wextra -Werror "$here/ops.c" -o "$payload/ops" -static $(pkg-config --cflags --libs --static tidegate-restrict)
rm -rf "$installed"

# what the catalogue of bypasses says is played
sed -n '/^## Programs that limit themselves/,$p' "$here/../../docs/dev/bypasses.md" | grep '^| B' | cut -d'|' -f5 | grep -o '[a-z-]\+' >"$payload/scenes"
while read -r scene; do
	if ! grep -q "strcmp(how, \"$scene\")" "$here/ops.c" || ! grep -q "\"\$O\" $scene " "$here/check.sh"; then
		echo "FAILED  nothing plays $scene"
		exit 1
	fi
done <"$payload/scenes"
[ -s "$payload/scenes" ]
