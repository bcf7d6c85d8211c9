# shellcheck shell=bash
# What the scripts here share: sourced, with $payload set, and $parser, or $lab and $kernel.
# shellcheck disable=SC2154 # what is set there

# The parser with these words, as if the kernel were Tidegate.
parse() {
	"$parser" --config-file /dev/null --policy-features "$payload/features" --kernel-features "$payload/features" \
		--skip-cache "$@"
}

# in_machine SYSTEM COMMAND…: in a machine whose kernel has that system, apparmor or tidegate; into SYSTEM.log
in_machine() {
	local log=$payload/$1.log words=()
	# without the kernel's records, which the console would take minutes for
	[ "$1" != apparmor ] || words=(--lsm "lockdown,yama,apparmor" --append audit=0)
	if ! "$lab" vm --kernel "$kernel" --payload "$payload" --timeout 3600 "${words[@]}" -- "${@:2}" >"$log" 2>&1; then
		tail -n 30 "$log"
		return 1
	fi
}
