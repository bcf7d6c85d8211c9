# shellcheck shell=bash
# What the days have in common. Sourced in the guest, at each boot of its day: what was
# counted before a restart is in /payload/state.

STATE=/payload/state
REMOTE=192.0.2.2 # another machine, in a network namespace of its own
HERE=192.0.2.1
mkdir -p "$STATE"

# Which boot of its day this is, from 0 on.
boot=$(cat "$STATE/boot" 2>/dev/null || echo 0)
echo $((boot + 1)) >"$STATE/boot"
echo "boot $boot: Linux $(uname -r)"

# What a piece of the day prints or keeps has the lowest level, and what passes it on to the lab is
# trusted; the other machine's disk is not one of ours. Nothing else is different here from a
# machine that takes the preset.
harness_rules() {
	cat <<-'RULES'
		untrusted /payload/out
		untrusted /payload/kept
		untrusted /srv/remote
		system /usr/lib/tidegate-lab-guest/run nodemote
	RULES
}

# Installs the package and takes a preset, for the next start of the unit.
take_preset() {
	dpkg -i ./tidegate_*.deb || return
	sed -i "/^mode permissive/d; s/^include .*/include $1/" /etc/tidegate/policy.plm
	harness_rules >>/etc/tidegate/policy.plm
}

# try WHAT COMMAND…: a piece of the day; its output is shown if it fails.
try() {
	local what=$1 out=/payload/out start=$SECONDS
	shift
	# what falls in there is a shell of its own
	if ("$@") >"$out" 2>&1 </dev/null; then
		echo ok >>"$STATE/passed"
		printf 'ok    %s (%d s)\n' "$what" $((SECONDS - start))
	else
		echo no >>"$STATE/failed"
		printf 'FAIL  %s\n' "$what"
		tail -n 25 "$out" | sed 's/^/      | /'
	fi
}

# The same, for what must not work.
refuse() {
	try "$1" fails "${@:2}"
}

fails() {
	! "$@"
}

# From here on refusals count.
mark() {
	sleep 1
	date -u +%FT%TZ >"$STATE/mark"
}

# Since the mark, which is set anew, that was refused and nothing else: each EXPECTED, as the
# log has it without numbers of processes, random names and rules, was, once or more often.
refusals() {
	local denied
	denied=$(tidegate log --denied --since "$(cat "$STATE/mark")" | sed -E '
		s/^[^ ]+ [^ ]+ @[0-9]+ +denied: ([^(]*)\([0-9]+\)/\1/
		s/ \((system|user|service|untrusted)[,)].*//
		s/ process [0-9]+$/ process N/; s/[0-9a-f]{64}/ID/; s/compat[0-9]+/compat/; s/(\/tmp\/pip-.*-)[a-z0-9_]{8}$/\1RANDOM/' | sort -u)
	mark
	[ -z "$denied$*" ] || diff - <(printf '%s\n' "$@" | sort -u) <<<"$denied"
}

no_failed_units() {
	local failed
	failed=$(systemctl --failed --no-legend --plain)
	[ -z "$failed" ] || {
		echo "$failed"
		systemctl status --no-pager --lines 15 --failed
		return 1
	}
}

enforcing() {
	tidegate status | tee /dev/stderr | grep -q '(enforcing)'
}

# Was Tidegate up before this unit began?
before() {
	local us them
	us=$(systemctl show -p ActiveEnterTimestampMonotonic --value tidegate.service)
	them=$(systemctl show -p ExecMainStartTimestampMonotonic --value "$1")
	[ "${them:-0}" -gt 0 ] || them=$(systemctl show -p ActiveEnterTimestampMonotonic --value "$1")
	echo "tidegate at $us, $1 at $them"
	[ "$us" -gt 0 ] && [ "$us" -lt "$them" ]
}

# Another machine and the wire to it. What runs there counts for nothing here: it is a
# stranger's, and its files are at the lowest level.
other_machine() {
	ip netns add remote
	ip link add wire type veth peer name wire netns remote
	ip address add "$HERE/24" dev wire
	ip link set wire up
	ip -n remote address add "$REMOTE/24" dev wire
	ip -n remote link set wire up
	ip -n remote link set lo up
	mkdir -p /srv/remote
}

# Runs a command over there.
remote() {
	ip netns exec remote env HOME=/srv/remote "$@"
}

# Serves a directory over there.
serve() {
	local port=$1 dir=$2
	(cd "$dir" && remote python3 -m http.server --bind "$REMOTE" "$port" >/dev/null 2>&1 </dev/null &)
	until curl -s -o /dev/null "http://$REMOTE:$port/"; do sleep 0.2; done
}

# at LEVEL FILE…: that is where they stand.
at() {
	local level=$1
	shift
	tidegate ls -d "$@" | tee /dev/stderr | awk -v level="$level" '$1 != level { wrong = 1 } END { exit wrong || !NR }'
}

# Counts, and the machine's end.
finish() {
	local passed failed
	passed=$(wc -l <"$STATE/passed" 2>/dev/null || echo 0)
	failed=$(wc -l 2>/dev/null <"$STATE/failed" || echo 0)
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
	exit
}
