#!/bin/bash
# `run` with a capability file, a SELinux context, a profile and a level at once, in the machine, as root: each refuses what it
# refuses by itself, what all allow goes, and records name whose refusal it is.
# The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
# where a lower process may write
OUT=/srv/said/out
mkdir /srv/said
# EACCES, of LOMAC EPERM
REFUSED='Permission denied|Operation not permitted'
# shellcheck source=tests/expect.sh
. ./expect.sh

for name in free caps te profile lomac; do
	mkdir /srv/$name
	echo "$name" >/srv/$name/a
	chmod a+rwX -R /srv/$name
done
cat >/srv/m.caps <<-END
	subject tool {
	    program /usr/bin/* execute
	    library /usr/lib/** load
	    file /usr/** read
	    dir /usr/** read
	    file /etc/ld.so.cache read
	    file /dev/null read write
	    file /srv/{free,te,profile,lomac}/* read write append
	    program /payload/tidegate execute
	    file /srv/*.caps read
	}
	subject narrower {
	    library /usr/lib/** load
	    file /usr/** read
	    file /etc/ld.so.cache read
	    file /srv/te/* read write append
	}
	service idle on /run/idle {
	    permission use
	}
END
chmod a+r /srv/m.caps

enforce --bundle /payload/models.bundle

context=system_u:system_r:tool_t:s0
caps=(--caps /srv/m.caps) te=(--context "$context") profile=(--profile tool) level=(--level untrusted)
all=("${caps[@]}" "${te[@]}" "${profile[@]}" "${level[@]}")
# reads FILE ARG…: by these arguments of `run`, as appending does
reads() { "$T" run "${@:2}" -- /usr/bin/cat "/srv/$1/a"; }
appends() { "$T" run "${@:2}" -- /usr/bin/dash -c "echo x >>/srv/$1/a"; }

echo "# each by itself refuses its own, and nothing else"
for one in caps te profile lomac; do
	case $one in
	caps) arguments=("${caps[@]}") ;;
	te) arguments=("${te[@]}") ;;
	profile) arguments=("${profile[@]}") ;;
	lomac) arguments=("${level[@]}") ;;
	esac
	for name in free caps te profile lomac; do
		if [ $name = $one ]; then
			expect 2 "$REFUSED" appends $name "${arguments[@]}"
		else
			expect 0 '^exit 0' appends $name "${arguments[@]}"
		fi
	done
done

echo "# all at once"
"$T" log --json >/tmp/before 2>/dev/null
expect 0 '^free' reads free "${all[@]}"
expect 0 '^exit 0' appends free "${all[@]}"
# what is read from above takes nothing away
expect 0 '^lomac' reads lomac "${all[@]}"
expect 1 "$REFUSED" reads caps "${all[@]}"
expect 1 "$REFUSED" reads te "${all[@]}"
expect 1 "$REFUSED" reads profile "${all[@]}"
for name in caps te profile lomac; do
	expect 2 "$REFUSED" appends $name "${all[@]}"
done

echo "# whose refusal it is"
# of NAME: the newest record of a file there
of() { "$T" log --json -n 300 | grep "\"path\":\"/srv/$1/a\"" | tail -n 1; }
soon 0 '"reason":"caps".*"caps":\{"session":[0-9]+,"subject":"tool","file":"/srv/m.caps:1","why":"missing"\}' of caps
soon 0 '"reason":"te".*"scontext":"system_u:system_r:tool_t:s0"' of te
soon 0 '"reason":"profile.*"' of profile
expect 0 '"profile":"tool"' of profile
soon 0 '"level":"untrusted".*"object":\{"level":"system"' of lomac
expect 1 '' sh -c "'$T' log --json -n 300 | grep '\"path\":\"/srv/lomac/a\"' | grep '\"caps\"'"

echo "# narrowed within"
expect 2 "$REFUSED" "$T" run "${all[@]}" -- "$T" run --caps /srv/m.caps --caps-subject narrower -- /usr/bin/dash -c 'echo x >>/srv/free/a'
expect 2 "$REFUSED" "$T" run "${caps[@]}" -- "$T" run --caps /srv/m.caps --caps-subject narrower -- /usr/bin/dash -c 'echo x >>/srv/free/a'
expect 0 '^exit 0' "$T" run "${caps[@]}" -- "$T" run --caps /srv/m.caps --caps-subject narrower -- /usr/bin/dash -c 'echo x >>/srv/te/a'
# it goes on to be refused what the policy refuses
expect 2 "$REFUSED" "$T" run "${caps[@]}" "${te[@]}" -- \
	"$T" run --caps /srv/m.caps --caps-subject narrower -- /usr/bin/dash -c 'echo x >>/srv/te/a'

echo "# who is limited by several of them is told so"
"$T" run "${all[@]}" -- /usr/bin/sleep 3000 &
sleeper=$!
soon 0 "^ *$sleeper .*tool \\(/srv/m.caps\\)" "$T" ps --caps
expect 0 "$sleeper .*tool_t" "$T" ps -Z
kill $sleeper

echo "# as another user"
# alone ARG…: as one who is not root
other() { setpriv --reuid 1000 --regid 1000 --clear-groups "$@"; }
expect 0 '^free' other "$T" run "${caps[@]}" "${level[@]}" "${profile[@]}" -- /usr/bin/cat /srv/free/a
expect 1 "$REFUSED" other "$T" run "${caps[@]}" "${level[@]}" "${profile[@]}" -- /usr/bin/cat /srv/profile/a
expect 1 "$REFUSED" other "$T" run "${caps[@]}" "${level[@]}" "${profile[@]}" -- /usr/bin/cat /srv/caps/a

echo "# messages, about which one program asks for LOMAC too while there are services"
# sends COMMAND…: a datagram to a network above
sends() { "$@" /usr/bin/python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))'; }
# a datagram from a network below is received, and what is above appended to
receives='import socket
r, s = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
r.bind(("127.0.0.2", 0))
s.sendto(b"x", r.getsockname()); r.recv(1); open("/srv/lomac/a", "a").write("x")'
messages() {
	expect 1 "$REFUSED" sends "$T" run --level untrusted --
	expect 0 '^exit 0' sends env
	expect 1 "$REFUSED" /usr/bin/python3 -c "$receives"
}
# linked COUNT PATTERN: so many programs are attached that are called so
linked() { soon "$((!$1))" "^$1" sh -c "ls /sys/fs/bpf/tidegate/links | grep -Ec '$2'"; }
"$T" run "${caps[@]}" -- /usr/bin/sleep 3000 &
sleeper=$!
linked 2 'caps_service_socket_sendmsg|caps_stream_socket_recvmsg'
linked 0 'lomac_socket_(send|recv)msg'
messages
expect 1 "$REFUSED" sends "$T" run "${caps[@]}" --
kill $sleeper
linked 0 'caps_(service|stream)_'
linked 2 'lomac_socket_(send|recv)msg'
messages

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
