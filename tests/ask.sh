# shellcheck shell=bash
# Programs in Python that do what they are asked, each limited by a subject of a capability file, or not governed: sourced in the
# payload, behind expect.sh. $OPS is the program, which reads a line for each request and answers with one; $T is tidegate.

# a process that is killed hears nothing any more
trap '' PIPE
declare -A IN ANSWERS PID
# begin NAME ARG…: the program $OPS, run with these arguments of `tidegate run`; none: not governed
begin() {
	local name=$1
	shift
	rm -f "/tmp/$name.in" "/tmp/$name.out"
	mkfifo "/tmp/$name.in" "/tmp/$name.out"
	if [ $# -gt 0 ]; then
		"$T" run "$@" -- /usr/bin/python3 -IBSu "$OPS" <"/tmp/$name.in" >"/tmp/$name.out" 2>"/tmp/$name.err" &
	else
		/usr/bin/python3 -IBSu "$OPS" <"/tmp/$name.in" >"/tmp/$name.out" 2>"/tmp/$name.err" &
	fi
	PID[$name]=$!
	exec {fd}>"/tmp/$name.in"
	IN[$name]=$fd
	exec {fd}<"/tmp/$name.out"
	ANSWERS[$name]=$fd
	# what it does first takes its time
	expect 0 '^ok' ask "$name" stat /
}
# ask NAME WORD…: has it do something; what came of it
ask() {
	local name=$1 answer
	shift
	echo "$*" >&"${IN[$name]}" || return 1
	if ! read -r -t 300 -u "${ANSWERS[$name]}" answer; then
		echo "no answer"
		cat "/tmp/$name.err"
		return 1
	fi
	echo "$answer"
}
end() {
	local fd=${IN[$1]}
	exec {fd}>&-
	fd=${ANSWERS[$1]}
	exec {fd}<&-
	# others that began later have its input open, too
	kill "${PID[$1]}"
	wait "${PID[$1]}" 2>/dev/null
}
# the number of NAME's session
session_of() { "$T" ps --caps --json | grep "\"pid\":${PID[$1]}," | sed 's/.*"session":\([0-9]*\).*/\1/'; }
