# shellcheck shell=bash
# What the scripts share that run in a machine: sourced there, in the payload. What a command says goes to $OUT.
: "${OUT:=/tmp/out}"
passed=0
failed=0

# say RESULT WHAT: counts a check, which is good if RESULT is 0; of one that is not, shows what was said.
say() {
	if [ "$1" = 0 ]; then
		passed=$((passed + 1))
		echo "ok      $2"
	else
		failed=$((failed + 1))
		echo "FAILED  $2"
		sed 's/^/        /' "$OUT" | tail -n 60
	fi
}

# as_expected CODE PATTERN COMMAND…: does it end with the exit code, and say a line that matches? $WHAT is that in words.
as_expected() {
	local code=$1 pattern=$2 status=0
	shift 2
	WHAT="${*//$PWD\//} → $code /$pattern/"
	"$@" >"$OUT" 2>&1 </dev/null || status=$?
	echo "exit $status" >>"$OUT"
	[ $status = "$code" ] && grep -qE -- "$pattern" "$OUT"
}

# expect CODE PATTERN COMMAND…: the exit code, and a line that matches.
expect() {
	as_expected "$@"
	say $? "$WHAT"
}

# soon CODE PATTERN COMMAND…: the same of what comes a moment later, as a record of the log does.
soon() {
	until_ as_expected "$@"
	say $? "$WHAT"
}

# until_ COMMAND…: until it succeeds, for five minutes of the clock: an emulated processor may be slow, and a part has to come to its
# end within its limit, so that it tells what did not come.
until_() {
	local end=$((SECONDS + 300))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# listens PATH: does somebody take connections there? SO_ACCEPTCON in /proc/net/unix: a server that has bound a socket may not listen yet, and
# one that was removed is there still.
listens() {
	[ -S "$1" ] && grep -qE " 00010000 .* $1\$" /proc/net/unix
}

# takes_connections PORT: does somebody, by TCP?
takes_connections() {
	grep -qE "$(printf ':%04X [0-9A-F]+:0000 0A ' "$1")" /proc/net/tcp /proc/net/tcp6
}

# caught_up: the log has the newest refusal, and so all that came before it
caught_up() {
	local newest
	newest=$("$T" why --json | grep -o '"id":[0-9]*' | head -n 1)
	[ -n "$newest" ] && until_ sh -c "'$T' log --json | grep -q '^{$newest,'"
}

# killed: the daemon was, and is gone
killed() {
	local daemon
	daemon=$(cat /run/tidegate/pid)
	kill -9 "$daemon"
	until_ test ! -e "/proc/$daemon"
}

# without_daemon: none runs, be it that none has yet
without_daemon() {
	[ ! -e /run/tidegate/pid ] || [ ! -e "/proc/$(cat /run/tidegate/pid)" ] || killed
}

# enforce ARG…: puts a policy in force, by these arguments of `start`; where another suite in this machine has started Tidegate, by
# those of `reload`, as each start has the kernel check all programs again. Room for what all suites give labels.
enforce() {
	if [ -d /sys/fs/bpf/tidegate ]; then
		[ -e "/proc/$(cat /run/tidegate/pid)" ] || "$T" start || exit 1
		"$T" reload "$@" || exit 1
	else
		"$T" start --given-entries 4096 "$@" || exit 1
	fi
}
