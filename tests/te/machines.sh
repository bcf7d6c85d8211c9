# shellcheck shell=bash
# What compare.sh and record.sh share: sourced, with $here, $lab, $payload and $kernel set.
# shellcheck disable=SC2154 # what is set there

# The policy and the domains for what operations ask on any kernel, into the payload.
policy() {
	rm -rf "$payload/te"
	mkdir "$payload/te"
	"$payload/te-ops" policy "$payload" "$here"/asked/*
	# the newest version that all kernels here know
	secilc --policyvers=33 --output="$payload/te/policy.33" --filecontext="$payload/te/file_contexts" "$payload/ops.cil"
	rm "$payload/ops.cil"
}

image=()

# in_machine SYSTEM NAME COMMAND…: in a machine whose kernel has selinux or tidegate; into NAME.log
in_machine() {
	local log=$payload/$2.log lsm
	case $1 in
	selinux) lsm=lockdown,capability,yama,selinux,bpf ;;
	tidegate) lsm=lockdown,yama,bpf ;;
	esac
	if ! "$lab" vm --kernel "$kernel" "${image[@]}" --payload "$payload" --timeout 3600 --lsm "$lsm" \
		--append "enforcing=0 audit=1 audit_backlog_limit=8192" -- "${@:3}" >"$log" 2>&1; then
		tail -n 30 "$log"
		return 1
	fi
}
