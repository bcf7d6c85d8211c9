#!/bin/bash
# The profiles that Debian trixie ships: all of them compile, a kernel takes all, each can be changed to, and what
# they allow and refuse is what the kernel's AppArmor says, of paths made of their own rules.
#   shipped.sh LAB PAYLOAD KERNEL   the lab's program; a directory with tidegate and profile-ops
# Profiles that are in complain mode are enforced here. Those that packages install are played first, and then in
# their place those that apparmor-profiles has for examples. The last line is `N passed, N failed`.
set -eu
lab=$(realpath "$1") payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/profile/machines.sh
. "$here/machines.sh"
tree=$("$lab" apparmor-parser --profiles)
copy=$(realpath "$payload")/shipped

rm -rf "$copy"
mkdir "$copy"
cp -r "$tree/etc/apparmor.d" "$copy/installed"
cp -r "$tree/usr/share/apparmor" "$copy/share"
mv "$copy/share/extra-profiles" "$copy/examples"
rm "$copy/examples/README"
# what is included by a path of the whole system
grep -rlZ '"/usr/share/apparmor/' "$copy" | xargs -0 sed -i "s,\"/usr/share/apparmor/,\"$copy/share/,"
grep -rlZE '^[^#]*flags *= *\([^)]*complain' "$copy" | xargs -0 sed -i -E '/^[^#]*flags *=/s/\bcomplain\b/attach_disconnected/'

"$payload/profile-ops" features >"$payload/features"
parser=$copy/parser
printf '#!/bin/sh\nexec "%s" apparmor-parser "$@"\n' "$lab" >"$parser"
chmod +x "$parser"
for set in installed examples; do
	rules() {
		parse --base "$copy/installed" "$@" "$copy/$set"
	}
	start=$(date +%s%N)
	rules --optimize=equiv --skip-kernel-load --ofile "$payload/$set.bin"
	parsed=$(date +%s%N)
	"$payload/tidegate" compile "$here/flat.plm" --profile "$copy/$set" --profile-base "$copy/installed" \
		--apparmor-parser "$parser" --output "$payload/$set.bundle" 2>&1 | tail -n 1
	end=$(date +%s%N)
	rules --names >"$payload/$set.names"
	# of several at once it would print each where it happens to be
	rules --debug --jobs=1 --skip-kernel-load >"$payload/$set.rules" 2>/dev/null
	"$here/shipped.py" list "$payload/$set.rules" "$payload/$set.names" >"$payload/$set.list"
	"$here/shipped.py" played "$payload/$set.names" >"$payload/$set.played"
	echo "$set: $(wc -l <"$payload/$set.names") profiles, compiled in $(((parsed - start) / 1000000)) ms by AppArmor's" \
		"parser, in $(((end - parsed) / 1000000)) by tidegate, which calls it"
done
cp "$here/shipped-play.sh" "$here/flat.plm" "$payload"

for system in apparmor tidegate; do
	in_machine "$system" /bin/sh /payload/shipped-play.sh "$system"
	grep '^loaded: ' "$payload/$system.log"
done
"$here/shipped.py" compare "$payload"/{apparmor,tidegate}.log "$payload"/{installed,examples}.list
