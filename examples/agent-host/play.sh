#!/bin/bash
# The example as a story, in a machine of its own, as root: a host and four tools, of which one is hostile; and an operator who
# takes back what one was given, while it runs. Each step has to come out as promised. The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")" || exit 1

# shellcheck source=tests/expect.sh
. ./expect.sh

LOG=/tmp/host.log
LISTENER=$(mktemp)

say() { printf '\n# %s\n' "$*"; }

# promised RESULT WHAT: counts a step.
promised() {
	if [ "$1" = 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "NOT AS PROMISED  FAILED  $2"
	fi
}

# show PATTERN COMMAND…: the command, what it says, and whether that has a line that matches.
show() {
	local pattern=$1 said
	shift
	echo "\$ $*"
	said=$("$@" 2>&1 </dev/null)
	echo "$said"
	grep -qE -- "$pattern" <<<"$said"
	promised $? "$* → $pattern"
}

# soon PATTERN: the host or a tool says so.
soon() {
	until_ grep -qE -- "$1" $LOG
	promised $? "$1"
	grep -E -- "$1" $LOG
}

# explained PATTERN: does the newest refusal say so?
explained() { tidegate why | grep -qE -- "$1"; }

# host: starts it, in a session of its own.
host() {
	: >$LOG
	tidegate run --caps /etc/agent-host/tools.caps -- agent-host /etc/agent-host/tools.toml >$LOG 2>&1 &
	HOST=$!
}

install -m 755 tidegate tidegated agent-host agent-tool /usr/bin
install -D -m 644 -t /etc/agent-host tools.caps tools.toml
mkdir -p /run/agent-host /srv/in /root/.ssh
echo "a private key" >/root/.ssh/id
echo "one two three" >/srv/in/today
echo "four five" >/srv/in/yesterday
python3 -c 'import socket, time; s = socket.create_server(("127.0.0.1", 7001)); print("up", flush=True); time.sleep(100000)' >"$LISTENER" &
network=$!
until grep -q up "$LISTENER"; do sleep 0.1; done

say "Enforcement begins. What is promised to whom stands in one file."
if [ -d /sys/fs/bpf/tidegate ]; then
	# in a machine of the test run, where another suite has started it
	show 'in force' tidegate reload --policy flat.plm
else
	show 'enforcing' tidegate start --policy flat.plm
fi
show 'subject hostile' tidegate check --caps /etc/agent-host/tools.caps

say "The host runs as the subject host, and starts its tools as others: tidegate run --caps tools.caps -- agent-host tools.toml"
host
soon '^summary: list /srv/in: Permission denied'
soon '^summary: 2 files, 5 words'
soon '^writer: wrote to pub:diary'

say "One of the tools is hostile."
soon '^hostile: read /root/.ssh/id: Permission denied'
soon '^hostile: read /etc/shadow: Permission denied'
soon '^hostile: list /root: Permission denied'
soon '^hostile: write /srv/in/today: Permission denied'
soon '^hostile: make /srv/in/new: Permission denied'
soon '^hostile: remove /srv/in/today: Permission denied'
soon '^hostile: connect 127.0.0.1:7001: Permission denied'
soon '^hostile: execute /usr/bin/id: Permission denied'
soon '^hostile: kill the host: (Permission denied|Operation not permitted)'
soon '^hostile: kill init: (Permission denied|Operation not permitted)'

say "Of the notes it may read the public ones, and do nothing else: the service is not even asked."
soon '^hostile: get pub:motd: done: be kind'
soon '^hostile: list pub:: done'
soon '^hostile: list private:: the request is not authorised'
soon '^hostile: open private:plan: the request is not authorised'
soon '^hostile: write pub:motd: the request is not authorised'
soon '^hostile: put by a descriptor for reading: the request is not authorised'
soon "^hostile: get by a descriptor of nobody's: the request is not authorised"

say "It hands on a file that it may read to an accomplice that may not."
soon '^hostile: hand on /srv/in/today: done'
soon '^accomplice: what it was handed: (nothing came|Permission denied)'
show 'agent-tool +host \(.*tools.caps\), writer \(.*tools.caps\)' tidegate ps --caps
show ' host \(/etc/agent-host/tools.caps\)' tidegate sessions

say "The operator takes back what the writer has of the notes; it is in the middle of its work."
line=$(grep -n 'service notes pub:diary' tools.caps | cut -d: -f1)
show 'taken back from 1 session' tidegate revoke --capability "tools.caps:$line"
soon '^writer: after [1-9][0-9]* entries: the request is not authorised'
soon '^writer: open pub:diary anew: the request is not authorised'
# the log is written a moment after
taken='denied: agent-tool.*it was taken back'
until_ explained "$taken"
show "$taken" tidegate why

say "The others have come to their end; so does the host."
soon '^host: hostile ended with 0'
wait $HOST
promised $? "the host ends"

say "The next start goes by the file: the writer writes again, until all that its subject gives is taken back."
host
soon '^writer: wrote to pub:diary'
show 'taken back from 1 session' tidegate revoke --subject tools.caps:writer
# its own output goes by what it was handed, of which nothing is left either
soon '^host: writer (was ended|ended with)'
wait $HOST
promised $? "the host ends"

say "The log has all of it: who was refused what, in which session, and which subject did not give it."
show '"comm":"agent-tool".*"path":"/root/.ssh/id".*"caps":\{"session":[0-9]+,"subject":"host","file":"/etc/agent-host/tools.caps:' \
	sh -c 'tidegate log --json -n 200 | grep /root/.ssh/id | head -n 1'
kill $network
echo "$passed passed, $failed failed"
[ $failed = 0 ]
