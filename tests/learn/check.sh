#!/bin/bash
# A refusal in somebody's own set-up, fixed: a day's work under a permissive policy,
# `learn`, the learned policy enforced, the same work, and an attack.
#
# Runs as root in the VM, beside the `tidegate` program; takes what it likes of /tmp,
# /etc/tidegate and /home/alice. The last line is `N passed, N failed`.
# shellcheck disable=SC2016 # what is quoted is for another shell
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
LEARNED=/etc/tidegate/learned.plm
OUT=/root/out # nobody lower writes there, so that this shell does not fall

# shellcheck source=tests/expect.sh
. ./expect.sh

# alice's shell, fallen to untrusted itself; its output comes through a pipe that falls with it
low() {
	su alice -s /bin/bash -c "exec 9</run/tidegate/level/untrusted; { $1; } >/dev/null 2>&1" >/dev/null 2>&1
}
# the same, fallen by what it heard from the network
heard() {
	su alice -s /bin/bash -c "exec 9<>/dev/tcp/127.0.0.1/9; { $1; } >/dev/null 2>&1" >/dev/null 2>&1
}

# What is done all day: a program that has fallen works in ~/work.
makes() { low 'mkdir ~/work/out && echo x >~/work/out/a && echo y >~/work/out/b.new && mv ~/work/out/b.new ~/work/out/b'; }
# it stays until the daemon has found its program
keeps_log() { low 'echo line >>~/work/tool.log && until [ -e /tmp/found ]; do sleep 0.1; done'; }
# the daemon has
found() {
	until_ sh -c "'$T' log --denied --json --path /home/alice/work/tool.log | grep -q '\"exe\"'"
	touch /tmp/found
}
cleans() { low 'rm -r ~/work/out'; }
# What an attack does.
plants() { heard 'echo "evil" >>~/.bashrc'; }
reads_key() { heard 'read -r x <~/.ssh/id'; }

mkdir -p /etc/tidegate /home/alice/work /home/alice/.ssh
echo "old" >/home/alice/work/tool.log
echo key >/home/alice/.ssh/id
chown -R alice: /home/alice/work /home/alice/.ssh

echo "# a day's work, and nothing is refused"
expect 0 'permissive' timeout 1200 "$T" start --preset workstation --permissive
expect 0 '' makes
found &
finds=$!
expect 0 '' keeps_log
wait $finds
expect 0 '' cleans
expect 0 '' plants
expect 0 '' reads_key
soon 0 '"exe":"/usr/bin/bash"' "$T" log --denied --json --path /home/alice/work/tool.log

echo "# why tells the fix"
soon 0 '^fix: none proposed, as this looks like an attack \(it is a secret\)' "$T" why
work=$("$T" log --denied --json --path /home/alice/work/tool.log | sed -n 's/^{"id":\([0-9]*\).*/\1/p;q')
expect 0 '^fix: untrusted /home/alice/work/tool.log   \(in a map that includes' "$T" why "@$work"
expect 0 'gives away: .*a process that reads it falls to untrusted' "$T" why --fixes "@$work"
expect 0 '^fix: user /home/alice/work/tool.log lowwrite' "$T" why --fixes "@$work"
expect 0 '"remedy":\{"fixes":\[\{"statements":\["untrusted /home/alice/work/tool.log"\]' "$T" why --json "@$work"

"$T" why --fixes "@$work" | sed 's/^/        /'

echo "# learn"
expect 1 'nothing was refused' "$T" learn --preset workstation --comm nobody
expect 2 'a map cannot include a bundle' "$T" learn --bundle /tmp/x
expect 0 '^user /home/alice/work creator' "$T" learn --preset workstation
expect 0 '^untrusted /home/alice/work/tool.log' "$T" learn --preset workstation
expect 0 '^# REFUSED: .*/home/alice/\.bashrc' "$T" learn --preset workstation
expect 0 '"proposed":\[\{' "$T" learn --preset workstation --json
expect 0 'proposed' "$T" learn --preset workstation -o "$LEARNED"
expect 2 'force replaces it' "$T" learn --preset workstation -o "$LEARNED"
expect 0 'proposed' "$T" learn --preset workstation -o "$LEARNED" --force
expect 0 '^learned: ' "$T" check "$LEARNED"
cp "$LEARNED" /root/first
expect 0 '' "$T" learn --preset workstation -o "$LEARNED" --force
expect 0 '' cmp "$LEARNED" /root/first
only_these() { grep -v -e '^#' -e '^$' "$LEARNED" | sort | tr '\n' ';'; }
expect 0 '^include workstation;untrusted /home/alice/work/tool.log;user /home/alice/work creator;' only_these
echo "# the learned map:"
sed 's/^/        /' "$LEARNED"

echo "# enforced: the work works, the attack does not"
expect 0 'number 2' "$T" reload --preset workstation
expect 1 '' makes
expect 1 '' keeps_log
expect 0 'number 3' "$T" reload --policy "$LEARNED"
expect 0 '' makes
expect 0 '' keeps_log
expect 0 '' cleans
expect 1 '' plants
expect 0 'untrusted may not write /home/alice/.bashrc' "$T" why
expect 0 'looks like an attack \(it is a dotfile\)' "$T" why
expect 1 '' reads_key
expect 0 'nothing is enforced' "$T" stop

echo "$passed passed, $failed failed"
[ $failed = 0 ]
