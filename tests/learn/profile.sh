#!/bin/bash
# A profile, learned: a program works under it in complain mode, `learn` proposes what it lacks, that
# is put into its files and enforced, the same work goes on, and something else is refused. What
# `replay` predicts of a recording of that work is what is then recorded.
#
# Runs as root in the VM, beside `tidegate`, `apparmor_parser` and `patch`; takes what it likes of
# /root, /home/alice and /etc/apparmor.d. The last line is `N passed, N failed`.
# shellcheck disable=SC2016 # what is quoted is for another shell
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
BASE=/etc/apparmor.d
PATCH=/root/learned.patch
MAP=/root/flat.plm
OUT=/root/out

# shellcheck source=tests/expect.sh
. ./expect.sh

start() { timeout 1200 "$T" start --policy "$MAP" "${these[@]}" "$@"; }
reload() { "$T" reload --policy "$MAP" "${these[@]}"; }
learn() { "$T" learn --policy "$MAP" "${these[@]}" "$@"; }
replay() { "$T" replay /root/work.jsonl --policy "$MAP" --against nothing "${these[@]}" "$@"; }
why() { "$T" why "${these[@]}" "$@"; }
# What a rule of the tool's own file and of the machine's says.
says() { cat "$BASE/root.tool" "$BASE/local/root.tool"; }
these=(--profile "$BASE" --profile-base "$BASE" --apparmor-parser "$PWD/apparmor_parser")

# A map that refuses nothing here.
printf '%s\n' 'levels system > untrusted' 'system /' 'system network 127.0.0.0/8' >"$MAP"

# The program: what it does all day, and what it does on other words.
mkdir -p /root/work /home/alice "$BASE/local"
echo secret >/root/work/secret
echo other >/root/work/other
echo 1 >/root/work/input
chown 1000 /root/work/input
echo mine >/home/alice/diary
chown -R alice: /home/alice
chmod 755 /root /home/alice
cat >/root/tool <<-'END'
	#!/bin/bash
	set -e
	cd /root/work
	case ${1:-} in
	secret) exec cat secret ;;
	other) exec cat other ;;
	helper) exec /root/helper ;;
	end) kill -TERM "$2"; exit ;;
	esac
	cat input >log
	echo line >>log
	mkdir -p made/below
	echo x >made/a.new
	echo y >made/below/y
	mv made/a.new "made/a b"
	ln made/"a b" made/c
	cat made/c >/dev/null
	rm -r made
	su alice -s /bin/cat /home/alice/diary
	# a signal to its own kind, which runs by then, and a socket
	coproc cat
	its=$COPROC_PID
	echo line >&"${COPROC[1]}"
	read -r line <&"${COPROC[0]}"
	kill -TERM "$its"
	wait "$its" || true
	exec 3<>/dev/udp/127.0.0.1/9
	chown 1 log
	chown 0 log
	/root/helper
END
# it stays until the daemon has seen it: its program is bash then
printf '#!/bin/bash\nread -r line </root/work/other && echo "helped: $line"\nsleep 1\n' >/root/helper
chmod 755 /root/tool /root/helper
cat >"$BASE/root.tool" <<-'END'
	@{HIDDEN}=/root/work/secret
	profile tool /root/tool flags=(complain) {
	  include if exists <local/root.tool>
	  audit deny @{HIDDEN} rw,
	}
END
cat >"$BASE/root.helper" <<-'END'
	profile helper /root/helper {
	  /** rmix,
	  deny capability,
	}
END

echo "# what it would be refused, of a recording"
expect 0 ' lines of ' timeout 300 "$T" record -o /root/work.jsonl -- /root/tool
expect 1 '^  1× cat \(tool\) may not read /root/work/input: no rule of its profile allows that' replay --all
expect 1 'profiles in complain mode, .*: 1$' replay
expect 1 '"profile":"tool"' replay --json
cp "$OUT" /root/predicted.json
rm /root/work/log

echo "# a day under a profile in complain mode"
expect 0 'enforcing|in force' start
expect 0 'helped: other' /root/tool
soon 0 'would be denied: .* may not' "$T" log --denied --profile tool
expect 0 '^exit 0' "$T" log --profile nobody
expect 0 '"profile":"tool"' "$T" log --json -n 1 --profile tool
named() { [ -n "$("$T" log --json --profile tool)" ] && [ -z "$("$T" log --json --profile nobody)" ]; }
expect 0 '' named

"$T" log --json --kind would --profile tool >/root/would.jsonl
expect 0 '^same' python3 ./compare.py /root/predicted.json /root/would.jsonl
cat "$OUT"

echo "# learn"
expect 0 '^#   goes to: /etc/apparmor.d/local/root.tool' learn
expect 0 '"profiles":\{"proposed":\[\{"profile":"tool"' learn --json
expect 0 'rules proposed, 0 refused' learn --patch "$PATCH"
expect 2 'force replaces it' learn --patch "$PATCH"
cp "$PATCH" /root/first
expect 0 'rules proposed' learn --patch "$PATCH" --force
expect 0 '' cmp "$PATCH" /root/first
sed 's/^/        /' "$PATCH"
for rule in '/usr/bin/cat ix,' '/root/helper Px,' 'network inet dgram,' 'capability chown,' \
	'signal \(send, receive\) set=\(term\) peer=tool,' '/root/work/log w,' \
	'/root/work/made\{,/\} rw,' 'link /root/work/made/c -> "/root/work/made/a b",' \
	'owner /home/alice/diary r,'; do
	expect 0 "^\+($rule)" cat "$PATCH"
done
expect 0 'local/root.tool' "$PWD/patch" -d / -p1 -i "$PATCH"
expect 0 'root.tool' says

echo "# enforced: the work works, and nothing else"
sed -i 's/ flags=(complain)//' "$BASE/root.tool"
expect 0 '^newly refused: nothing' replay
expect 0 'number 2' reload
expect 0 'helped: other' /root/tool
expect 1 'Permission denied' /root/tool other
soon 0 '^profile: tool \(file\).*: no rule allows it' why
expect 0 '^fix: (owner )?/root/work/other.* r,   \(in /etc/apparmor.d/local/root.tool, tried\)' why
expect 0 '^fix: /root/work/other.* r,   \(in profile tool' "$T" why
expect 0 '"amendment":\{"profile":"tool","class":"file"' "$T" why --json
expect 1 'Permission denied' /root/tool secret
soon 0 'root.tool:4: `audit deny @\{HIDDEN\} rw,` refuses it' why
expect 0 'what a `deny` refuses, no other rule allows' why
expect 0 'root.tool:4: `audit deny @\{HIDDEN\} rw,` refuses it' learn --path /root/work/secret
sleep 300 &
expect 1 'Permission denied|not permitted' /root/tool end $!
expect 0 'signal \(send\) set=\(term\) peer=unconfined,' learn --since 1m
kill $!

echo "# a profile that cannot be used is left out, and told; the others are in force"
strictly() { "$T" reload --policy "$MAP" "${these[@]}" --strict; }
left_out() { "$T" status | grep '^profiles:'; }
expect 1 '' left_out
printf 'profile bad /root/bad {\n  /x r,\n  /y nothing,\n}\n' >"$BASE/root.bad"
expect 10 'root.bad:3: left out `bad`: ' reload
expect 0 '/etc/apparmor.d/root.bad:3: left out `bad`: ' left_out
expect 0 '"left_out":\["/etc/apparmor.d/root.bad:3' "$T" status --json
expect 1 'Permission denied' /root/tool other
expect 3 'root.bad does not compile' strictly
expect 0 'root.bad:3' left_out
rm "$BASE/root.bad"
expect 0 'number' reload
expect 1 '' left_out

echo "# a reload without options keeps the profiles and the mode"
killed
expect 0 'the policy named is in force' start --permissive
named_by="--policy=$MAP --profile=$BASE --apparmor-parser=$PWD/apparmor_parser --permissive"
expect 0 "^options: +$named_by\$" "$T" status
expect 0 "^options as before: $named_by\$" "$T" reload
expect 0 '^flat is in force \(permissive\), number' "$T" reload
expect 0 'flat \(permissive\)' "$T" status
expect 0 "^options: +$named_by\$" "$T" status
expect 0 '^other' /root/tool other
soon 0 'would be denied: cat' why
expect 0 '^profile: tool \(file\).*: no rule allows it' why
expect 0 'no profile is in force any more' "$T" reload --policy "$MAP"
expect 0 "^options: +--policy=$MAP\$" "$T" status
expect 0 'nothing is enforced' "$T" stop

echo "$passed passed, $failed failed"
[ $failed = 0 ]
