#!/bin/bash
# The service monitor under `tidegate run --caps`, in a virtual machine, and its library for C.
#   run.sh LAB PAYLOAD KERNEL   the lab's program; a directory with tidegate
# The library is installed into a directory, and its example built with what pkg-config says of it: against the shared library,
# which runs here, and against the static one, which runs in the machine. Needs a C compiler here. The last line is `N passed, N
# failed`.
set -eu
lab=$1 payload=$(realpath "$2") kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
example=$root/examples/notes

cp "$here"/*.py "$here/check.sh" "$here/../expect.sh" "$here/../ask.sh" "$here/../te/flat.plm" "$example/notes.caps" "$payload"

installed=$payload/installed
rm -rf "$installed"
"$root/scripts/build.sh" install "$installed" service >&2
# as an administrator would have it, but for the directory before it
export PKG_CONFIG_SYSROOT_DIR=$installed PKG_CONFIG_LIBDIR=$installed/usr/lib/pkgconfig
make -s -C "$example" clean notes
# without a monitor, both ends
for type in "" --stream; do
	socket=$payload/notes.sock
	rm -f "$socket"
	LD_LIBRARY_PATH=$installed/usr/lib "$example/notes" serve $type "$socket" &
	service=$!
	timeout 60 sh -c "until [ -e '$socket' ]; do sleep 0.1; done"
	LD_LIBRARY_PATH=$installed/usr/lib "$example/notes" put "$socket" a text
	said=$(LD_LIBRARY_PATH=$installed/usr/lib "$example/notes" get "$socket" a)
	kill $service
	rm -f "$socket"
	if [ "$said" != text ]; then
		echo "FAILED  the example with the shared library says: $said"
		exit 1
	fi
done
# what is exported is what the header has, and nothing else
nm -D --defined-only "$installed/usr/lib/libtidegate-service.so" | awk '{ print $3 }' | sort >"$payload/exported"
grep -oE '\btg_[a-z_]+\(' "$root/include/tidegate/service.h" | tr -d '(' | sort -u >"$payload/declared"
comm -23 "$payload/declared" "$payload/exported" | grep . && { echo "FAILED  declared and not exported"; exit 1; }
comm -13 "$payload/declared" "$payload/exported" | grep . && { echo "FAILED  exported and not declared"; exit 1; }
make -s -C "$example" clean notes LDSTATIC=-static
mv "$example/notes" "$payload"
cc -O2 -Wall -Wextra -Werror -static "$here/race.c" -o "$payload/race"
rm -rf "$installed"

exec "$lab" vm --kernel "$kernel" --payload "$payload" --timeout 2400 --lsm lockdown,yama,bpf -- /bin/bash /payload/check.sh
