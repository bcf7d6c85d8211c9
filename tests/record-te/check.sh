#!/bin/bash
# `replay` of a SELinux policy held against the monitor, in a machine of its own: a piece of work is recorded without a
# monitor, `replay` says what the policy would have refused of it in a domain, and then the same is done in that domain,
# permissive. Both must say the same. The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
D=u:r:work_t
te=(--policy flat.plm --te record.pol --file-contexts record.fc)
# shellcheck source=tests/expect.sh
. ./expect.sh

# What each begins with.
fresh() {
	rm -rf /root/te
	mkdir -p /root/te/secret /root/te/kept
	cd /root/te || exit 1
	for file in plain data log secret/file kept/old kept/other kept/stays; do echo text >$file; done
	cp /bin/cat helper
	cp /usr/bin/env tool
	cd - >/dev/null || exit 1
	perl -MSocket -e 'socket my $s, AF_UNIX, SOCK_STREAM, 0; bind $s, sockaddr_un("/root/te/socket"); listen $s, 9; sleep 1000' &
	served=$!
	until_ listens /root/te/socket
}
sleep 1000 &
outside=$!

fresh
expect 0 ' lines of ' timeout 300 "$T" record -o /tmp/work.jsonl -- ./work.sh $outside
kill $served
expect 0 '"filesystems":\[\{"dev":' head -n 1 /tmp/work.jsonl
expect 0 'note: nobody was in a domain' "$T" replay /tmp/work.jsonl "${te[@]}"
expect 2 'needs a SELinux policy' "$T" replay /tmp/work.jsonl --preset server --te-context $D
expect 2 'nobody_t' "$T" replay /tmp/work.jsonl "${te[@]}" --te-context u:r:nobody_t
expect 1 'work_t may not \{ .*read.* \} secret_t:file: read /root/te/secret/file' \
	"$T" replay /tmp/work.jsonl "${te[@]}" --te-context $D
cat /tmp/out
expect 1 'fix: --te-boolean may_connect=on' "$T" replay /tmp/work.jsonl "${te[@]}" --te-context $D --all
expect 0 '^newly refused: nothing' "$T" replay /tmp/work.jsonl --policy flat.plm
expect 1 '^newly refused' "$T" replay /tmp/work.jsonl "${te[@]}" --te-boolean may_connect=on --te-context $D --all
cp /tmp/out /tmp/said
expect 1 '^exit 1' grep service_port_t /tmp/said
expect 1 '"te":\{"context":"u:r:work_t"' "$T" replay /tmp/work.jsonl "${te[@]}" --te-context $D --json
grep -m1 '^{' /tmp/out >/tmp/predicted.json

echo "# the same in the domain, permissive"
expect 0 'permissive' timeout 1200 "$T" start "${te[@]}" --permissive
fresh
"$T" run --context $D -- ./work.sh $outside >/tmp/out 2>&1 </dev/null
expect 0 '' caught_up
"$T" log --json --kind would >/tmp/would.jsonl
kill $served
expect 0 '^same' python3 ./compare.py /tmp/predicted.json /tmp/would.jsonl
cat /tmp/out

echo "# what was in a domain when it was recorded needs no context to be named"
fresh
expect 0 ' lines of ' timeout 300 "$T" record -o /tmp/under.jsonl -- "$T" run --context $D -- ./work.sh $outside
kill $served
"$T" run --context $D -- sleep 1000 &
soon 0 "^ *$! .*work_t" "$T" ps -Z
expect 0 ' lines of ' timeout 60 "$T" record -o /tmp/all.jsonl --for 2s
kill %%
expect 0 '"act":"process".*"context":"u:r:work_t"' grep '"context":"u:r:work_t"' /tmp/all.jsonl
expect 0 '"act":"given".*"context":"u:object_r:' grep -m1 '"act":"given"' /tmp/all.jsonl
expect 0 'nothing is enforced' "$T" stop

kill $outside
echo "$passed passed, $failed failed"
[ $failed = 0 ]
