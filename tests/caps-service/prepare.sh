#!/bin/bash
# For the service monitor under `tidegate run --caps`: its library for C.
#   prepare.sh PAYLOAD
# The library is installed into a directory, and its example built with what pkg-config says of it: against the shared library,
# which runs here, and against the static one, which runs in the machine. Needs a C compiler here.
set -eu
payload=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
installed=$payload/installed-service
example=$installed/example

# shellcheck source=tests/c-library.sh
. "$root/tests/c-library.sh"
install_library service "$installed" notes
make -s -C "$example" clean notes
notes=(env "LD_LIBRARY_PATH=$installed/usr/lib" "$example/notes")
# without a monitor, both ends
for type in "" --stream; do
	socket=$payload/notes.sock
	rm -f "$socket"
	"${notes[@]}" serve $type "$socket" &
	service=$!
	for _ in $(seq 600); do
		if "${notes[@]}" put "$socket" a text 2>"$payload/said"; then break; fi
		sleep 0.1
	done
	said=$("${notes[@]}" get "$socket" a)
	kill $service
	rm -f "$socket"
	if [ "$said" != text ]; then
		echo "FAILED  the example with the shared library says: $said"
		exit 1
	fi
done
make -s -C "$example" clean notes LDSTATIC=-static
mv "$example/notes" "$payload"
cc -O2 -Wall -Wextra -Werror -static "$here/race.c" -o "$payload/race"
rm -rf "$installed"
