# shellcheck shell=bash
# What the scripts here share: sourced in the machine, with $T, the program, and $OUT, a file for what a command says, set.
# shellcheck disable=SC2154 # what is set there
passed=0
failed=0

# expect CODE PATTERN COMMAND…: the exit code, and a line that matches.
expect() {
	local code=$1 pattern=$2 status=0
	shift 2
	"$@" >"$OUT" 2>&1 </dev/null || status=$?
	echo "exit $status" >>"$OUT"
	if [ $status = "$code" ] && grep -qE -- "$pattern" "$OUT"; then
		passed=$((passed + 1))
		echo "ok      ${*//$T/tidegate} → $code /$pattern/"
	else
		failed=$((failed + 1))
		echo "FAILED  ${*//$T/tidegate} → $code /$pattern/"
		sed 's/^/        /' "$OUT"
	fi
}
