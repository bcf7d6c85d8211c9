#!/bin/bash
# The story: a stock Debian kernel in a virtual machine under this build, and what
# that costs. Installs and builds what is missing, and asks nothing.
#   run.sh [--kernel 6.12|7.2] [--no-cost]
# Fails if any step does not come out as promised.
set -eu

cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
TARGET=${CARGO_TARGET_DIR:-target}
LAB=${LAB:-$TARGET/x86_64-unknown-linux-gnu/debug/tidegate-lab}
OUT=$TARGET/story
kernel=6.12
cost=yes

while [ $# -gt 0 ]; do
	case $1 in
	--kernel)
		kernel=${2:?which kernel?}
		shift
		;;
	--no-cost) cost=no ;;
	*)
		sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
	shift
done

# What runs in the background does not hear Ctrl-C by itself.
trap 'trap - INT TERM; kill -TERM 0' INT TERM

say() {
	echo "run: $*"
}

colour=()
[ ! -t 1 ] || [ -n "${NO_COLOR:-}" ] || colour=(--colour)

# Waits for the job $1 and tells the seconds on a terminal: wait_for PID WHAT.
wait_for() {
	local start=$SECONDS
	while kill -0 "$1" 2>/dev/null; do
		[ ! -t 1 ] || printf '\r%s: %d s ' "$2" $((SECONDS - start))
		sleep 1
	done
	[ ! -t 1 ] || printf '\r\033[K'
	wait "$1"
}

# The machine's parts are fetched and put together while the program is compiled.
build() {
	local parts
	scripts/xtask.sh build tidegate-lab
	"$LAB" setup --kernel "$kernel" >"$OUT/setup" 2>&1 &
	parts=$!
	scripts/xtask.sh payload "$OUT/payload" tidegate tidegated
	wait_for "$parts" "kernel and image" || {
		cat "$OUT/setup"
		return 1
	}
}

# The player in a machine; what else is given are its arguments.
play() {
	"$LAB" vm --kernel "$kernel" --payload "$OUT/payload" --timeout 3600 -- /payload/story/play.sh "$@"
}

# The same attacks where nothing is enforced: each has to come off, or its refusal
# would show nothing. And what enforcement costs, counted once for a build.
alongside() {
	renice -n 10 $BASHPID >/dev/null
	play --bare >"$OUT/control"
	[ "$cost" = no ] || measure
}

# What was counted earlier of the very same build is not counted again.
measure() {
	"$LAB" run --kernel "$kernel" --image root --systems tidegate,tidegate-user --items micro --boots 1 \
		--jobs 1 --tidegate "$OUT/payload/tidegate" --json "$TARGET/cost-$kernel.json" >/dev/null
	"$LAB" report "$TARGET/cost-$kernel.json" --width 80 >"$OUT/cost"
}

start_alongside() {
	alongside 2>"$OUT/errors" &
	other=$!
}

tell_control() {
	local all off
	all=$(grep -c . "$OUT/control")
	off=$(grep -c " done\$" "$OUT/control" || true)
	echo "The same attacks on the same machine without Tidegate: $off of $all come off."
	[ "$off" = "$all" ] || { grep -v ' done$' "$OUT/control" && false; }
}

tell_cost() {
	cat <<-'END'

		What enforcement costs: instructions of one operation on this kernel without
		Tidegate, and how many more with it, for a subject at the top level that has
		touched nothing lower, and for one at the level user. Instructions, not time;
		docs/dev/cost.md compares with SELinux, AppArmor and others.

	END
	cat "$OUT/cost"
}

rm -rf "$OUT"
mkdir -p "$OUT/payload"
if [ -n "${PROGRAMS:-}" ]; then
	# the test run has built everything
	for program in tidegate tidegated; do
		strip "$PROGRAMS/$program" -o "$OUT/payload/$program"
	done
else
	scripts/setup.sh
	say "building"
	build
fi
tests/story/build.sh "$OUT/payload/story"
say "booting Debian's $kernel kernel, under this build"

good=yes
several=$([ "$(nproc)" -gt 1 ] && echo yes || echo no)
[ "$several" = no ] || start_alongside
play "${colour[@]}" || good=no
[ "$several" = yes ] || start_alongside
if wait_for "$other" "the same without Tidegate"; then
	tell_control || good=no
	[ "$cost" = no ] || tell_cost
else
	say "the machine without Tidegate, or counting there, failed:"
	cat "$OUT/errors"
	good=no
fi
[ "$good" = yes ]
# as each suite of the test run does
[ -z "${PROGRAMS:-}" ] || echo "1 passed, 0 failed"
