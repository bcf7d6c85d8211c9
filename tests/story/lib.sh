# shellcheck shell=sh disable=SC2034 # the names are used by who sources this
# Words and outcomes. Sourced by play.sh.
#
# The player itself stays at the top level, so it reads nothing that lower
# processes wrote: it learns from exit statuses, of children where need be.

MODE=enforced
COLOUR=no
ASIDE=/run/story
# What the attacks print. Made by an untrusted process, so that they may write it.
OUTPUT=/tmp/output
# In place of what the refusal is about: the program asked says no by itself.
ITSELF="top level"
for word in "$@"; do
	case $word in
	--bare) MODE=bare ;;
	--colour) COLOUR=yes ;;
	*)
		echo "play.sh: unknown option $word" >&2
		exit 2
		;;
	esac
done

steps=0
broken=0

if [ "$COLOUR" = yes ]; then
	BOLD=$(printf '\033[1m') DIM=$(printf '\033[2m') RED=$(printf '\033[31m')
	GREEN=$(printf '\033[32m') PLAIN=$(printf '\033[0m')
else
	BOLD='' DIM='' RED='' GREEN='' PLAIN=''
fi

say() {
	[ "$MODE" = bare ] || echo "  $*"
}

scene() {
	printf '\n%s== %s%s\n' "$BOLD" "$*" "$PLAIN"
}

# Runs a command for the reader to see.
show() {
	printf '  %s# %s%s\n' "$DIM" "$*" "$PLAIN"
	"$@" 2>&1 | sed 's/^/    /'
}

good() {
	steps=$((steps + 1))
	printf '  %s✓%s %s\n' "$GREEN" "$PLAIN" "$*"
}

bad() {
	steps=$((steps + 1))
	broken=$((broken + 1))
	printf '  %s✗ NOT AS PROMISED: %s%s\n' "$RED" "$*" "$PLAIN"
}

# What has to work.
must() {
	what=$1
	shift
	if "$@"; then good "$what"; else bad "$what ($*)"; fi
}

# The newest refusal's number; 0 if there is none.
newest_refusal() {
	tidegate why --json last 2>/dev/null | sed -n '/"id"/{s/.*"id": *\([0-9]*\).*/\1/p;q}' | grep . || echo 0
}

no_refusals() {
	[ "$(newest_refusal)" = 0 ] || { explain && false; }
}

# The newest refusal and how it came to that, a link a line.
explain() {
	tidegate why last | sed "s/^denied: /      ${DIM}why: /; s/ ← /\n         ← /g; s/\$/${PLAIN}/"
}

# attack NAME REFUSED WHAT COMMAND…: the command plays it; it has come off if the
# package's result file says so. With Tidegate the newest refusal has to be about
# REFUSED, a pattern.
attack() {
	name=$1 expected=$2 what=$3
	shift 3
	rm -f "$APP/result"
	if [ "$MODE" = bare ]; then
		"$@" >"$OUTPUT" 2>&1 || true
		if came_off; then echo "$name done"; else echo "$name failed" && said >&2; fi
		restore
		return
	fi
	before=$(newest_refusal)
	"$@" >"$OUTPUT" 2>&1 || true
	if came_off; then
		bad "it could $what"
		restore
	elif [ "$expected" = "$ITSELF" ] && grep -q "$ITSELF" "$OUTPUT"; then
		good "$what: ${BOLD}refused${PLAIN} by itself"
		said
	elif [ "$(newest_refusal)" = "$before" ]; then
		bad "$what: it failed, but nothing was refused"
		said
	elif ! tidegate why last | grep -q "$expected"; then
		bad "$what: something else was refused than $expected"
		explain
		said
	else
		good "$what: ${BOLD}refused${PLAIN}$(without "$name")"
		explain
	fi
}

came_off() {
	# a child reads the file, and falls
	grep -qx "done" "$APP/result" 2>/dev/null
}

# What the attack printed, for whoever has to find out why.
said() {
	# in a shell of its own, which falls: whoever forks a pipe's ends may share them
	sh -c "tail -n 8 '$OUTPUT' | sed 's/^/      | /'"
}

# How the same went on a machine without Tidegate.
without() {
	[ -f "$STORY/without.txt" ] || return 0
	if grep -qx "$1 done" "$STORY/without.txt"; then
		echo " ${DIM}(without Tidegate: done)${PLAIN}"
	else
		echo " (on its own)"
	fi
}

verdict() {
	echo
	if [ "$broken" -gt 0 ]; then
		printf '%s%s of %s steps were NOT as promised%s\n' "$RED" "$broken" "$steps" "$PLAIN"
		exit 1
	fi
	printf '%s%s steps, all as promised%s\n' "$BOLD" "$steps" "$PLAIN"
}
