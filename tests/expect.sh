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

# expect CODE PATTERN COMMAND…: the exit code, and a line that matches.
expect() {
	local code=$1 pattern=$2 status=0
	shift 2
	"$@" >"$OUT" 2>&1 </dev/null || status=$?
	echo "exit $status" >>"$OUT"
	[ $status = "$code" ] && grep -qE -- "$pattern" "$OUT"
	say $? "${*//$PWD\//} → $code /$pattern/"
}

# until_ COMMAND…: until it succeeds, for a minute.
until_() {
	for _ in $(seq 600); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	return 1
}

# listens PATH: does somebody take connections there? SO_ACCEPTCON in /proc/net/unix: who has bound a socket may not listen yet, and
# one that was removed is there still.
listens() {
	[ -S "$1" ] && grep -qE " 00010000 .* $1\$" /proc/net/unix
}
