# shellcheck shell=bash
# Attacks from within a session (attacks.pl). Sourced by check.sh, while a daemon runs; $base is what a subject needs.

attack() { "$T" run --caps /srv/attacks.caps --caps-subject "$1" -- /usr/bin/perl /payload/attacks.pl "${@:2}"; }
# after SUBJECT NAME COMMAND…: the attack that has a descriptor, once the command took it back
after() {
	local subject=$1 name=$2 answer
	shift 2
	rm -f /tmp/attack.in /tmp/attack.out
	mkfifo /tmp/attack.in /tmp/attack.out
	attack "$subject" "$name" </tmp/attack.in >/tmp/attack.out 2>/tmp/attack.err &
	exec 8>/tmp/attack.in 9</tmp/attack.out
	read -r -t 100 -u 9 answer
	[ "$answer" = ready ] || cat /tmp/attack.err
	"$@" || echo "it was not taken back"
	echo >&8
	read -r -t 100 -u 9 answer
	echo "$answer"
	exec 8>&- 9<&-
	wait $! 2>/dev/null
}

cat >/srv/attacks.caps <<-END
	subject one {
	${base:?}
	    file /srv/in/* read
	    file /srv/log append
	    file /dev/mqueue/** read write create
	    connect tcp 127.0.0.1 port 7300
	    program /usr/bin/perl execute
	}
	subject counts {
	${base:?}
	    connect tcp 127.0.0.1 port 7300 uses 2
	    program /usr/bin/perl execute
	    control tcp read write
	}
END
echo "the log" >/srv/log
python3 -c 'import socket; s=socket.create_server(("127.0.0.1",7300)); kept=[]
while True:
    kept.append(s.accept()[0]); kept[-1].send(b"many bytes of it")' &
listener=$!
# 7300
until grep -q ':1C84 ' /proc/net/tcp; do sleep 0.2; done

expect 0 '^shut' attack one queue
expect 0 '^shut' attack one queue-as-if-executed
expect 0 '^shut' attack one neither-read-nor-write
expect 0 '^open' attack one append
expect 0 '^shut' attack one overwrite-appended
expect 0 '^shut' attack one clear-appended
expect 0 '^the log' cat /srv/log
expect 0 '^shut' attack one shared-memory
segment=$(perl -e 'print syscall(29, 0, 4096, 01600)')
expect 0 '^shut' attack one others-shared-memory "$segment"
expect 0 '^shut' after one map-to-write "$T" revoke --object file:/srv/in/f
expect 0 '^shut' after one map-for-nothing "$T" revoke --object file:/srv/in/f
expect 0 '^shut' after one splice-a-socket "$T" revoke --object tcp:127.0.0.1:7300
expect 0 '^open' after one splice-a-socket true
expect 0 '^shut' after counts splice-a-used-up-socket true
kill "$listener"
