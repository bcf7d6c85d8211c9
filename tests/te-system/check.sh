#!/bin/bash
# A daemon and others run before there is a policy; then everybody is brought under one. As root, in the machine.
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
W=/root/system
# shellcheck source=tests/expect.sh
. ./expect.sh

start() { # POLICY OPTION…
	local policy=$1
	shift
	timeout 1200 "$T" start --policy flat.plm --te "$policy.pol" --file-contexts "$policy.fc" "$@"
}

mkdir -p $W
echo secret >$W/secret
echo plain >$W/plain
cp /usr/bin/perl $W/daemon
cp /bin/cat $W/reader

tell() { # WHAT FILE: what the daemon says
	/usr/bin/perl -MIO::Socket::UNIX -e '
		my $to = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => shift) or die "connect: $!\n";
		print $to "@ARGV\n"; $to->flush; print scalar <$to> // "nothing\n"' $W/socket "$@"
}
daemon() {
	rm -f $W/socket
	$W/daemon ./daemon.pl $W/socket >/tmp/daemon 2>&1 </dev/null &
	daemon=$!
	until_ listens $W/socket
}
context() { # PID
	"$T" ps -Z | grep "^ *$1 "
}
# those that have no context, threads of the kernel's aside: NUMBER of them
without() {
	"$T" ps --json | grep -v '"context":' >/tmp/without
	cat /tmp/without
	[ "$(wc -l </tmp/without)" = "$1" ]
}

echo "# before"
daemon
expect 0 '^done' tell read $W/secret
# births and executions under way at any moment
while [ ! -e /tmp/enough ]; do (
	/bin/true
	(:)
	sleep 0.05
); done &
sleep 1000 &
sleeper=$!

echo "# the start"
expect 2 'needs a SELinux policy' "$T" start --policy flat.plm --te-system
expect 0 'enforcing: .* processes are under the SELinux policy, in 2 domains' start system --te-system
cat /tmp/out
touch /tmp/enough
expect 0 'u:r:daemon_t$' context $daemon
expect 0 'u:r:kernel_t$' context 1
expect 0 'u:r:kernel_t$' context $sleeper
# the monitor's own; a task that was just being born is not there any more
soon 0 '^exit 0' without 1
expect 0 'u:r:kernel_t' "$T" ps -Z
cp /tmp/out /tmp/said
expect 1 '^exit 1' grep nobody_t /tmp/said

echo "# who ran before is asked"
expect 0 '^done' tell read $W/plain
expect 0 '^Permission denied' tell read $W/secret
expect 0 'secret_t' "$T" log --denied -n 5
echo "# and who comes from those that ran before"
kill $daemon; wait $daemon 2>/dev/null
daemon
expect 0 'u:r:daemon_t$' context $daemon
expect 0 '^Permission denied' tell read $W/secret
expect 0 '^secret' cat $W/secret

echo "# nor may it end that, where the policy does not say so"
expect 7 'daemon_t may not \{ setenforce \} security' $W/daemon -e "exec '$T', 'stop'"
expect 7 'daemon_t may not \{ load_policy \} security' $W/daemon -e "exec '$T', 'reload', '--policy', 'flat.plm'"

echo "# what it makes has a label of its own"
expect 0 '^done' tell make $W/made
expect 0 'made_t' "$T" ls -Z $W/made
expect 0 '^plain' $W/reader $W/plain
expect 1 'Permission denied' $W/reader $W/made

echo "# which outlives the daemon"
killed
expect 1 'Permission denied' $W/reader $W/made
expect 0 'took over' "$T" start
expect 0 'made_t' "$T" ls -Z $W/made
expect 1 'Permission denied' $W/reader $W/made
echo "# stop and start"
expect 0 'nothing is enforced' "$T" stop
expect 0 '^exit 0' $W/reader $W/made
expect 0 'context [0-9]+ [0-9]+ u:object_r:made_t$' cat /var/lib/tidegate/given
expect 0 'enforcing' start system --te-system
expect 0 'made_t' "$T" ls -Z $W/made
expect 1 'Permission denied' $W/reader $W/made
echo "# a start without a SELinux policy, and one with a policy that does not know it"
expect 0 'nothing is enforced' "$T" stop
expect 0 'enforcing' timeout 1200 "$T" start --policy flat.plm
expect 0 '^exit 0' $W/reader $W/made
expect 0 'nothing is enforced' "$T" stop
expect 0 'enforcing' start less --te-system
expect 1 'Permission denied' $W/reader $W/made
expect 0 '^plain' $W/reader $W/plain
expect 0 'nothing is enforced' "$T" stop
expect 0 'enforcing' start system --te-system
expect 0 'made_t' "$T" ls -Z $W/made
expect 1 'Permission denied' $W/reader $W/made
echo "# a daemon that dies, and a stop without one"
killed
expect 0 'nothing is enforced' "$T" stop
expect 0 'enforcing' start system --te-system
expect 1 'Permission denied' $W/reader $W/made
echo "# a file that is gone takes its label with it"
rm $W/made
expect 0 'nothing is enforced' "$T" stop
expect 1 '^exit 1' grep made_t /var/lib/tidegate/given

echo "# a policy under which the first process could not go on says so"
expect 0 'the first process is u:r:kernel_t, which may not \{ kill sys_boot \} kernel_t:capability' start tight --te-system
expect 0 'nothing is enforced' "$T" stop
expect 0 'permissive' start tight --te-system --permissive
cp /tmp/out /tmp/said
expect 1 '^exit 1' grep 'first process' /tmp/said
expect 0 'nothing is enforced' "$T" stop

kill $sleeper $daemon
echo "$passed passed, $failed failed"
[ $failed = 0 ]
