# shellcheck shell=bash
# What the long runs have in common. Sourced in the guest, as root, beside the `tidegate` program.
# A run's last line is `N passed, N failed`.
# shellcheck disable=SC2086 # its places have no blanks

T=$PWD/tidegate
LOW=/srv/low          # what low subjects write: whoever reads it falls, so this shell's children do
OUT=$LOW/out          # of the command that is tried
STOP=/run/storm.stop  # whose being there ends a storm
TREE=/srv/t           # what a storm attacks
FOUND=/srv/found      # what this shell's children found there: a reader of a `user` file has fallen
LOG=/var/log/tidegate/audit.jsonl
passed=0
failed=0

# say RESULT WHAT: counts it; what the command said is shown if it failed.
say() {
	if [ "$1" = 0 ]; then
		passed=$((passed + 1))
		printf 'ok      %s\n' "$2"
	else
		failed=$((failed + 1))
		printf 'FAILED  %s\n' "$2"
		tail -n 25 "$OUT" >$LOW/shown
		sed 's/^/        /' $LOW/shown
	fi
}

# try WHAT COMMAND…: it must work.
try() {
	local what=$1 status=0
	shift
	"$@" >"$OUT" 2>&1 </dev/null || status=$?
	echo "exit $status" >>"$OUT"
	say "$status" "$what"
}

# show COMMAND…: a figure for the log of this run. Not by a pipe: on a machine so busy that this
# shell had the end that is read while the command fell, it would fall with it.
show() {
	"$@" >$LOW/shown 2>&1 </dev/null
	sed 's/^/      | /' $LOW/shown
}

# A run's last command.
finish() {
	# had this shell fallen, what it tried would have failed by that
	[ "$failed" = 0 ] || show "$T" why $$
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
}

# low COMMAND…, user COMMAND…: at that level, its output nowhere that would matter.
low() { "$T" run --level untrusted -- "$@" >/dev/null 2>&1 </dev/null; }
user() { "$T" run --level user -- "$@" >/dev/null 2>&1 </dev/null; }

# field NAME: of `status`, a number or word.
field() {
	"$T" status --json | sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p"
}

daemon() { cat /run/tidegate/pid; }

# A map of places in turn: what is kept from lower subjects, what they may make files in, and
# theirs. `$1` shifts the map's nodes by one place, so that a number of the one map's means
# another sort of place in the other; `$2` is the level of what is kept.
places() {
	local i
	cat <<-MAP
		levels system > user > untrusted
		system /
		system /tmp creator
		user $FOUND
		untrusted $LOW
	MAP
	[ -z "$1" ] || echo "user $TREE/$1"
	for i in $(seq -w 0 3 29); do
		printf '%s %s/%s\n' "$2" $TREE "${i}k" system $TREE "$(printf %02d $((10#$i + 1)))m creator" \
			untrusted $TREE "$(printf %02d $((10#$i + 2)))n"
	done
}

# The tree and the two maps, both of which forbid what a storm tries.
prepare() {
	local i place
	rm -rf $TREE
	mkdir -p $LOW $TREE $FOUND /srv/maps
	chmod 777 $LOW
	places "" system >/srv/maps/a.plm
	places 00a user >/srv/maps/b.plm
	for i in $(seq -w 0 29); do
		place=$TREE/$i$(printf 'kmn' | cut -c$((10#$i % 3 + 1)))
		mkdir -p "$place/s"
		echo trusted | tee "$place/f" "$place/s/f" >/dev/null
		chmod 777 "$place" "$place/s"
		chmod 666 "$place/f" "$place/s/f"
	done
	gcc -O1 -o $LOW/attack attack.c || exit 1
	for i in a b; do "$T" compile "/srv/maps/$i.plm" -o "/srv/maps/$i.bundle" >/dev/null || exit 1; done
}

# fingerprint NAME: what was in the kept places before anybody low came, to the second and byte.
fingerprint() {
	{
		find $TREE/*k $TREE/*m/f $TREE/*m/s/f -printf '%p %y %m %U %G %n %s %i %T@\n'
		find $TREE/*k $TREE/*m/f $TREE/*m/s/f -type f -exec sha256sum {} +
		getfattr -R -d -m - $TREE/*k 2>/dev/null
	} | sort >"$FOUND/$1"
}

unchanged() {
	fingerprint after
	diff $FOUND/before $FOUND/after
}

# victims: a process at the top that everybody may try to hurt.
victim() {
	sleep 1000000 >/dev/null 2>&1 &
	VICTIM=$!
	disown
}

# storm N [WORD…]: so many low subjects attack until $STOP is there.
storm() {
	local n=$1 i begun first=$((${#STORM[@]} + 1))
	shift
	rm -f $STOP
	mkdir -p $LOW/reports
	chmod 777 $LOW/reports
	begun=$(find $LOW/reports -name 'begun.*' | wc -l)
	for i in $(seq $first $((first + n - 1))); do
		# with a kept file open for writing since before the fall
		(
			exec 7<>"$TREE/00k/f" 8>>"$TREE/03k/f"
			# a fall may be refused for being too busy
			until [ -e $LOW/reports/begun.$i ]; do
				"$T" run --level untrusted -- python3 "$PWD/storm.py" attack "$VICTIM" "$i" "$@"
			done
		) >/dev/null 2>$LOW/storm.$i </dev/null &
		STORM+=($!)
	done
	for _ in $(seq 120); do
		[ "$(find $LOW/reports -name 'begun.*' | wc -l)" -ge $((begun + n)) ] && return
		sleep 0.5
	done
	say 1 "the storm begins"
	show head $LOW/storm.*
}

# Ends the storms, and waits for their reports.
calm() {
	touch $STOP
	wait "${STORM[@]}" 2>/dev/null
	STORM=()
}
STORM=()

# The storm tried everything, honest work went on, and nothing came through.
held() {
	try "$1: nothing came through" python3 "$PWD/storm.py" tally
	show cat $OUT
	try "$1: what is kept is as it was" unchanged
	try "$1: the victim lives" kill -0 "$VICTIM"
}

# Whatever low subjects made where they may is low: `ls` of what has another level.
made_is_low() {
	"$T" ls -d --json $TREE/*m/made.* >/root/made 2>/root/made.err
	grep -c . /root/made
	! grep -v '"level":"untrusted"' /root/made
}

# watch_levels: writes /root/levels until $STOP: no level has risen.
watch_levels() {
	python3 "$PWD/levels.py" "$T" $STOP >/root/levels 2>&1 </dev/null &
	WATCH=$!
}
levels_fell_only() {
	wait "$WATCH"
	cat /root/levels
	grep -q ', 0 rose' /root/levels
}

# accounted [SLACK]: every record that the kernel made is in the log, or counted there.
accounted() {
	# the windows of what was left out are a second long
	sleep 4
	python3 "$PWD/account.py" "$(field records)" "${1:-0}" $LOG
}
