# shellcheck shell=sh disable=SC2034 # the names are used by the scripts that source this
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

scene() {
	printf '\n%s== %s%s\n' "$BOLD" "$*" "$PLAIN"
}

# Wraps each line of its input for 80 columns: the first one is indented by $1
# blanks, what does not fit by $2 blanks more.
wrap() {
	awk -v first="$1" -v more="$2" -v width=80 '
		function flush_line() {
			printf "%*s%s\n", line == "" ? 0 : indent, "", line
			line = ""
			indent = first + more
		}
		{
			indent = first
			line = ""
			# runs of blanks are kept, for tables
			while (match($0, /^ *[^ ]+/)) {
				word = substr($0, 1, RLENGTH)
				$0 = substr($0, RLENGTH + 1)
				if (line != "" && indent + length(line) + length(word) > width) {
					flush_line()
					sub(/^ +/, "", word)
				}
				line = line word
			}
			flush_line()
		}'
}

# A paragraph between the steps; an empty line without words.
say() {
	[ "$MODE" = bare ] || echo "$*" | wrap 2 0
}

# Runs a command for the reader to see.
show() {
	printf '  %s# %s%s\n' "$DIM" "$*" "$PLAIN"
	"$@" 2>&1 | wrap 4 4
}

# The same for one that takes its time, which is counted on a terminal.
show_slowly() {
	printf '  %s# %s%s\n' "$DIM" "$*" "$PLAIN"
	"$@" >"$ASIDE/slow" 2>&1 &
	seconds=0
	while kill -0 $! 2>/dev/null; do
		[ "$COLOUR" = no ] || printf '\r    %s s ' "$seconds"
		seconds=$((seconds + 1))
		sleep 1
	done
	[ "$COLOUR" = no ] || printf '\r'
	wrap 4 4 <"$ASIDE/slow"
	wait $! && echo "    after $seconds s"
}

good() {
	steps=$((steps + 1))
	printf '  %s✓%s %s\n' "$GREEN" "$PLAIN" "$*"
}

bad() {
	steps=$((steps + 1))
	broken=$((broken + 1))
	echo "$RED✗ NOT AS PROMISED: $*$PLAIN" | wrap 2 4
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
	printf '%s' "$DIM"
	tidegate why last | sed 's/^denied: /why: /; s/ ← /\n   ← /g' | wrap 6 5
	printf '%s' "$PLAIN"
}

# attack NAME REFUSED WHAT COMMAND…: the command plays it; it has come off if the
# package's result file says so. With Tidegate the newest refusal has to be about
# REFUSED, a pattern.
attack() {
	name=$1 expected=$2 what=$3
	shift 3
	rm -f "$APP/result" "$APP/job" /tmp/job /tmp/jobs /tmp/jobs.sock /tmp/ready
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
		good "$what: ${BOLD}refused${PLAIN}, by the program itself"
		said
	elif [ "$(newest_refusal)" = "$before" ]; then
		bad "$what: it failed, but nothing was refused"
		said
	elif ! tidegate why last | grep -q "$expected"; then
		bad "$what: something else was refused than $expected"
		explain
		said
	else
		good "$what: ${BOLD}refused${PLAIN}"
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
	sh -c "tail -n 8 '$OUTPUT' | cut -c 1-70 | sed 's/^/      | /'"
}

verdict() {
	echo
	if [ "$broken" -gt 0 ]; then
		printf '%s%s of %s steps were NOT as promised%s\n' "$RED" "$broken" "$steps" "$PLAIN"
		exit 1
	fi
	printf '%s%s steps, all as promised%s\n' "$BOLD" "$steps" "$PLAIN"
}
