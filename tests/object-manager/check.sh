#!/bin/bash
# Object managers in user space, in the machine, as root: the document store and its clients in domains of a small policy,
# a policy that changes under them, a daemon that is killed, and somebody who forges.
# The last line is `N passed, N failed`.
# shellcheck disable=SC2016 # what is quoted is for another shell
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
D=$PWD/docstore
A=$PWD/check-access
F=$PWD/forge.py
OUT=/root/out
# shellcheck source=tests/expect.sh
. ./expect.sh

# as WHO COMMAND…: in the domain of somebody
as() {
	local who=$1
	shift
	"$T" run --context "system_u:system_r:${who}_t:s0" -- "$@"
}
# as_put WHO NAME TEXT: the same, with something to write
as_put() { echo "$3" | as "$1" "$D" put "$2"; }
# alice is an ordinary user, and low somebody whom the map has below the top, though root
alice() { su alice -s /bin/bash -c "$1"; }
low() { bash -c "exec 9</run/tidegate/level/untrusted; $1"; }
# the store asked while there is no daemon, which `run` would need
as_down() { "$D" get report; }
# until_said PATTERN: until the log has it
until_said() { until_ sh -c "'$T' log | grep -qE '$1'" && "$T" log | grep -E "$1"; }
# what has ended
ended() { ! kill -0 "$1"; }
sequence() { "$F" words | sed 's/.*sequence=\([0-9]*\).*/\1/'; }
reload() { "$T" reload --policy /root/flat.plm --te "$PWD/$1" "${@:2}"; }

cat >/root/flat.plm <<-'MAP'
	levels system > untrusted
	system /
	system network 0.0.0.0/0
	system network ::/0
MAP
BOSS=system_u:system_r:boss_t:s0 CLERK=system_u:system_r:clerk_t:s0
REPORT=system_u:object_r:report_t:s0 PLAN=system_u:object_r:plan_t:s0 COLLECTION=system_u:object_r:collection_t:s0

echo "# before anything is in force"
expect 2 'open: map /run/tidegate/status: No such file' "$A" $CLERK $REPORT document read

expect 0 'enforcing' timeout 1200 "$T" start --policy /root/flat.plm --te "$PWD/open.33"
expect 0 '444 0 4096' stat -c '%a %u %s' /run/tidegate/status
expect 0 'version=1 sequence=[0-9]*[02468] enforcing=1 policyload=1 deny_unknown=0 enabled=1' "$F" words

SECONDS=0
echo "# questions, by the library for C"
expect 0 '^allowed' "$A" $CLERK $REPORT document read
expect 1 "clerk_t:s0 may not \{ delete \} $REPORT:document" "$A" $CLERK $REPORT document delete
expect 0 "^$PLAN\$" "$A" --create $BOSS $COLLECTION document
expect 0 '^system_u:object_r:draft_t:s0$' "$A" --create $CLERK $COLLECTION document draft
expect 0 "^$CLERK\$" "$A" --context system_u:system_r:clerk_t:s0-s0
expect 2 'the policy has no type `nobody_t`' "$A" --context system_u:system_r:nobody_t:s0
expect 2 'the policy has no type `nobody_t`' "$A" system_u:system_r:nobody_t:s0 $REPORT document read
expect 0 '^allowed' "$A" $CLERK $REPORT parcel send
expect 0 '^allowed' "$A" $CLERK $REPORT document burn
expect 1 'clerk_t:s0 may not \{ compute_av \} system_u:object_r:security_t:s0:security' as clerk "$A" $CLERK $REPORT document read
expect 1 'may not \{ check_context \}' as clerk "$A" --context $CLERK

echo "# the store"
"$T" run --context system_u:system_r:docstore_t:s0 -- "$D" serve /srv/docs --collection $COLLECTION >/root/store 2>&1 &
store=$!
expect 0 '' until_ listens /run/docstore.sock
expect 0 'docstore_t:s0' "$T" ps -Z
expect 0 '' as_put boss plan 'to the moon'
expect 0 "^$PLAN\$" as boss "$D" label plan
expect 0 "^$PLAN\$" head -n 1 /srv/docs/plan
expect 0 '' as_put clerk report one
expect 0 "^$REPORT\$" as boss "$D" label report
expect 0 '' as_put clerk draft none
expect 0 '^system_u:object_r:draft_t:s0$' as clerk "$D" label draft
expect 0 '^one$' as clerk "$D" get report
expect 1 '403 Forbidden: .*clerk_t:s0 may not \{ read \} .*plan_t:s0:document' as clerk "$D" get plan
expect 1 'boss_t:s0 may not \{ write \}' as_put boss report two
expect 1 'boss_t:s0 may not \{ read \}' as boss "$D" get draft
expect 0 'to the moon' as intern "$D" get plan
# the context of a process that is not governed is the kernel's
expect 1 'kernel_t:s0 may not \{ read \}' "$D" get plan
expect 1 '404 Not Found' as clerk "$D" get nothing
expect 1 '400 Bad Request' as clerk "$D" get ../../etc/passwd
expect 0 '' as_put boss gone x
expect 0 '' as boss "$D" delete gone

echo "# what the log and why say"
soon 0 '@u[0-9]+ +denied by docstore\([0-9]+\): clerk_t may not \{ read \} document=plan \(plan_t:document\)' "$T" log --denied
soon 0 'would be denied by docstore\([0-9]+\): intern_t may not \{ read \} document=plan' "$T" log --denied
soon 0 'allowed by docstore\([0-9]+\): boss_t used \{ delete \} document=gone \(plan_t:document\)' "$T" log
expect 0 '"kind":"user-denied".*"manager":\{"number":[0-9]+,"context":"system_u:system_r:docstore_t:s0","about":"document=plan"\}' \
	"$T" log --kind user-denied --json
expect 0 '^denied by docstore\([0-9]+\): kernel_t may not \{ read \}' "$T" why
expect 0 'fix: .*lacks \(allow kernel_t plan_t \(document \(read\)\)\)' "$T" why
number=$("$T" log --json --kind user-denied | sed -n 's/.*clerk_t.*"number":\([0-9]*\),.*document=plan.*/\1/p' | head -n 1)
expect 0 'clerk_t may not \{ read \} document=plan' "$T" why "@u$number"
expect 1 'no record @u99999' "$T" why @u99999

echo "# who connected counts, not who uses the connection"
expect 0 'HTTP/1.1 403' "$F" inherit "$T" $BOSS

echo "# another value of a boolean"
as clerk "$D" follow report >/root/followed 2>/root/follower &
follower=$!
"$A" --wait $CLERK $REPORT document read >/root/waited 2>&1 &
waiter=$!
expect 0 '' until_ grep -q one /root/followed
expect 0 '' as_put clerk report two
expect 0 '' until_ grep -q two /root/followed
before=$(sequence)
expect 0 'number 2' reload open.33 --te-boolean reports_are_open=off
expect 1 '403 Forbidden' as clerk "$D" get report
# writing is allowed still; a follower must not see it
expect 0 '' as_put clerk report secret
expect 0 '' test "$(sequence)" -gt "$before"
expect 0 '' until_ ended $follower
expect 0 'the store has ended the stream' cat /root/follower
expect 1 '' grep secret /root/followed
expect 0 '' until_ ended $waiter
expect 0 'may not \{ read \}' cat /root/waited
expect 0 'number 3' reload open.33
expect 0 '^secret$' as clerk "$D" get report

echo "# how soon a stream ends"
for _ in 1 2 3; do
	as clerk "$D" follow report >/root/followed 2>&1 &
	follower=$!
	until_ grep -q secret /root/followed
	reload open.33 --te-boolean reports_are_open=off >/dev/null
	began=$(date +%s%N)
	while kill -0 $follower 2>/dev/null; do :; done
	echo "        $((($(date +%s%N) - began) / 1000)) µs after reload had returned"
	expect 0 'number' reload open.33
done

echo "# a daemon that is killed"
as clerk "$D" follow report >/root/followed 2>/root/follower &
follower=$!
expect 0 '' until_ grep -q secret /root/followed
before=$(sequence)
killed
expect 1 '503 Service Unavailable: the daemon is not running' as_down
expect 0 "sequence=$before enforcing=1" "$F" words
expect 0 'took over' timeout 1200 "$T" start
# nothing has changed, so what is cached counts on
expect 0 "sequence=$before enforcing=1" "$F" words
expect 0 '^secret$' as clerk "$D" get report
expect 0 '' kill -0 $follower
expect 0 'number' reload open.33 --te-boolean reports_are_open=off
expect 1 '403' as clerk "$D" get report
expect 0 '' until_ ended $follower
expect 0 'number' reload open.33

echo "# forgers"
expect 0 '^done:$' alice "$F page"
# it could not even say so
expect 0 '' low "$F page >/dev/null 2>&1"
expect 0 'not a question' "$F" ask '{"ask":"security","question":{"what":"record","kind":"denied"}}'
expect 0 'not a question' "$F" ask '{"ask":"security","question":{"what":"nothing"}}'
expect 0 'no descriptor came along' "$F" ask '{"ask":"security","question":{"what":"peer"}}'
expect 0 'not the end of a Unix socket that accept' "$F" pair
expect 0 '"governed":false' "$F" ask '{"ask":"security","question":{"what":"own"}}'
began=$SECONDS
expect 0 '' alice "$F flood"
took=$((SECONDS - began))
# what one user may have recorded is counted by the second; once that is over, the next one tells how many were left out
sleep 1.2
expect 0 'recorded' alice "$F record 'flood, the last'"
expect 0 'flood, the last' until_said 'flood, the last'
expect 0 'denied by python3\([0-9]+\): boss_t may not \{ read \} flood [0-9]+\\nforged: line' "$T" log --denied
expect 1 '' sh -c "'$T' log --json --kind denied | grep flood"
expect 1 '' sh -c "'$T' log --json | grep flood | grep -v '\"uid\":1000'"
flood() { "$T" log --json | grep '"about":"flood'; }
lines=$(flood | wc -l)
left=$(flood | sed -n 's/.*"count":\([0-9]*\).*/\1/p' | paste -sd+)
left=$((${left:-0}))
echo "        $lines records in $took s, $left left out"
expect 0 '' test "$lines" -le $((20 * (took + 2) + 1))
expect 0 '' test $((lines + left)) = 201
alice "$F stall /tmp/stalls" &
stalls=$!
until_ test -e /tmp/stalls
expect 0 '^secret$' timeout 120 bash -c "'$T' run --context $CLERK -- '$D' get report"
rm /tmp/stalls
wait $stalls

echo "# the service's own death is nobody's"
kill $store
wait $store

echo "# what a policy does not know, by another policy"
expect 0 'number' reload strict.33
expect 0 'deny_unknown=1' "$F" words
expect 1 'may not \{ send \}' "$A" $CLERK $REPORT parcel send
expect 1 'may not \{ burn \}' "$A" $CLERK $REPORT document burn
expect 0 '^allowed' "$A" $CLERK $REPORT document read

echo "# recording only, no SELinux policy, and nothing at all"
expect 0 'permissive' reload strict.33 --permissive
expect 0 'enforcing=0 .*enabled=1' "$F" words
expect 0 '^allowed' "$A" $CLERK $REPORT document delete
expect 0 'would be denied by check-access' until_said 'would be denied by check-access.*delete'
expect 0 'in force' "$T" reload --policy /root/flat.plm
expect 0 'enabled=0' "$F" words
expect 0 '^allowed' "$A" $CLERK $REPORT document delete
expect 0 'in force' reload open.33
expect 1 'may not' "$A" $CLERK $REPORT document delete
inode=$(stat -c %i /run/tidegate/status)
expect 0 'nothing is enforced' "$T" stop
expect 0 'enforcing=0 policyload=0 deny_unknown=0 enabled=0' "$F" words
expect 0 '^allowed' "$A" $CLERK $REPORT document delete
# for whoever has it mapped
expect 0 "^$inode\$" stat -c %i /run/tidegate/status

echo "# $SECONDS s"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
