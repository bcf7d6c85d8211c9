#!/bin/bash
# Object managers in user space, in a machine with Tidegate: check.sh there.
#   run.sh LAB PAYLOAD KERNEL   the lab's program; a directory with tidegate and docstore
# The library for C is installed into a directory, and its example built with what pkg-config says of it: against the
# shared library, which runs here, and against the static one, which runs in the machine. Needs secilc and a C compiler
# here. The last line is `N passed, N failed`.
set -eu
lab=$1 payload=$(realpath "$2") kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
policy=$root/examples/docstore/policy

# compiled LINE NAME: the policy with another first line
compiled() {
	sed "s/^(handleunknown .*/$1/" "$policy/base.cil" >"$payload/base.cil"
	# the newest version that all kernels here know
	secilc --policyvers=33 --output="$payload/$2" --filecontext="$payload/contexts" "$payload/base.cil" "$policy/docstore.cil"
}

compiled '(handleunknown allow)' open.33
compiled '(handleunknown deny)' strict.33
cp "$here/check.sh" "$root/tests/expect.sh" "$here/forge.py" "$root/tests/te/flat.plm" "$payload"

installed=$payload/installed
example=$installed/example
# shellcheck source=tests/c-library.sh
. "$root/tests/c-library.sh"
install_library avc "$installed" check-access
make -s -C "$example" clean check-access
status=0
LD_LIBRARY_PATH=$installed/usr/lib "$example/check-access" --context x 2>"$payload/said" || status=$?
if [ $status != 2 ] || ! grep -q 'open: map /run/tidegate/status' "$payload/said"; then
	echo "FAILED  the example with the shared library: $status: $(cat "$payload/said")"
	exit 1
fi
make -s -C "$example" clean check-access LDSTATIC=-static
mv "$example/check-access" "$payload"
rm -rf "$installed"

"$lab" vm --kernel "$kernel" --payload "$payload" --timeout 3600 -- bash /payload/check.sh
