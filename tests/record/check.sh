#!/bin/bash
# `record` and `replay` in a machine of their own: a piece of work is recorded without a
# monitor, `replay` says what a policy would have refused of it, and then the same work
# is done under that policy, permissive. Both must say the same.
#
# Runs as root in the VM, beside the `tidegate` program. The last line is
# `N passed, N failed`.
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
W=/root/recorded
mkdir -p $W
# shellcheck source=tests/expect.sh
. ./expect.sh

alice() { su alice -s /bin/bash -c "$1"; }

# What both runs begin with.
mkdir -p /home/alice/.ssh
echo secret >/home/alice/.ssh/id_test
chown -R alice: /home/alice/.ssh
cp -a /home/alice $W/alice
restore() {
	find /home/alice -mindepth 1 -delete
	cp -a $W/alice/. /home/alice
}

echo "# the command line"
expect 7 'takes root' alice "$T record -o /tmp/x.jsonl"
expect 2 'required' "$T" record
expect 2 'not a time' "$T" record -o $W/x.jsonl --for nonsense
expect 2 'No such file' "$T" replay $W/nothing --preset workstation
expect 2 'not a recording' "$T" replay /etc/passwd --preset workstation

echo "# without a monitor"
expect 2 'cannot run /nothing' "$T" record -o $W/no.jsonl -- /nothing
expect 0 ' lines of ' timeout 300 "$T" record -o $W/work.jsonl.zst -- ./work.sh all
expect 2 'is there already' "$T" record -o $W/work.jsonl.zst
restore
expect 0 '"lost":0' timeout 300 "$T" record --json -o $W/plain.jsonl -- ./work.sh all
restore
expect 0 ' lines of ' timeout 60 "$T" record -o $W/all.jsonl --for 2s
expect 1 '^newly refused:' "$T" replay $W/work.jsonl.zst --preset workstation --all
cat /tmp/out
expect 1 '"op":"open-write"' "$T" replay $W/plain.jsonl --preset workstation --json
cp /tmp/out $W/predicted.json
expect 1 'lownoopen\)|from below' "$T" replay $W/plain.jsonl --preset workstation --all
expect 0 '^newly refused: nothing' "$T" replay $W/plain.jsonl --preset workstation --against workstation
expect 1 '^newly allowed:' "$T" replay $W/plain.jsonl --preset server --against workstation
head -c 20000 $W/plain.jsonl >$W/cut.jsonl
expect 0 'cut.jsonl:[0-9]+: the recording is cut off here' "$T" replay $W/cut.jsonl --preset workstation
{ head -n 500 $W/plain.jsonl; echo '{"act":"nonsense"}'; tail -n +501 $W/plain.jsonl; } >$W/broken.jsonl
expect 1 'broken.jsonl:501: not a line of a recording' "$T" replay $W/broken.jsonl --preset workstation

echo "# the same under the policy, permissive"
expect 0 'permissive' timeout 1200 "$T" start --preset workstation --permissive
./work.sh all >/tmp/out 2>&1 </dev/null # to where the recorded one wrote
expect 0 '' caught_up
"$T" log --json --kind would >$W/would.jsonl
"$T" log --json --kind demoted >$W/demoted.jsonl
restore
expect 0 '^same' python3 ./compare.py $W/predicted.json $W/would.jsonl
cat /tmp/out

echo "# with the monitor"
expect 0 ' lines of ' timeout 300 "$T" record -o $W/under.jsonl -- ./work.sh all
expect 0 '"bundle":"[0-9a-f]{1000}' head -n 1 $W/under.jsonl
expect 0 '"act":"process".*"level":"system"' grep -m1 '"act":"process".*"level":"system"' $W/under.jsonl
expect 0 '^newly refused: nothing' "$T" replay $W/under.jsonl --preset workstation
expect 1 '^newly refused:' "$T" replay $W/under.jsonl --preset workstation --against nothing
restore
"$T" stop >/dev/null
"$T" start --preset workstation >/dev/null
low() { "$T" run --level untrusted -- "$T" record -o /tmp/low.jsonl; } # its words reach nobody above it
expect 7 '^exit 7' low
expect 0 'enforcing' "$T" status
"$T" stop >/dev/null

echo "$passed passed, $failed failed"
[ $failed = 0 ]
