#!/bin/bash
# The profiles that Debian trixie ships: all of them compile, a kernel takes all, each can be changed to, and what
# they allow and refuse is what the kernel's AppArmor says, of paths made of their own rules.
#   shipped.sh LAB PAYLOAD KERNEL   the lab's program; a directory with tidegate and profile-ops
# Profiles that are in complain mode are enforced here. Those that packages install are played first, and then in
# their place those that apparmor-profiles has for examples. The last line is `N passed, N failed`.
set -eu
lab=$(realpath "$1") payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
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
		"$parser" --config-file /dev/null --policy-features "$payload/features" --kernel-features "$payload/features" \
			--base "$copy/installed" --skip-cache "$@" "$copy/$set"
	}
	start=$(date +%s%N)
	rules --optimize=equiv --skip-kernel-load --ofile "$payload/$set.bin"
	parsed=$(date +%s%N)
	"$payload/tidegate" compile "$here/flat.plm" --profile "$copy/$set" --profile-base "$copy/installed" \
		--apparmor-parser "$parser" --output "$payload/$set.bundle" 2>&1 | tail -n 1
	end=$(date +%s%N)
	rules --names >"$payload/$set.names"
	rules --debug --skip-kernel-load >"$payload/$set.rules" 2>/dev/null
	"$here/shipped.py" list "$payload/$set.rules" "$payload/$set.names" >"$payload/$set.list"
	echo "$set: $(wc -l <"$payload/$set.names") profiles, compiled in $(((parsed - start) / 1000000)) ms by AppArmor's" \
		"parser, in $(((end - parsed) / 1000000)) by tidegate, which calls it"
done
cp "$here/shipped-play.sh" "$here/flat.plm" "$payload"

# play SYSTEM WORDS…
play() {
	local log=$payload/shipped-$1.log
	if ! "$lab" vm --kernel "$kernel" --payload "$payload" --timeout 1500 "${@:2}" -- \
		/bin/sh /payload/shipped-play.sh "$1" >"$log" 2>&1; then
		tail -n 30 "$log"
		return 1
	fi
	grep '^loaded: ' "$log"
}
# without the kernel's records, which the console would take minutes for
play apparmor --lsm lockdown,yama,apparmor --append audit=0
play tidegate
"$here/shipped.py" compare "$payload/shipped-apparmor.log" "$payload/shipped-tidegate.log" "$payload"/{installed,examples}.list
