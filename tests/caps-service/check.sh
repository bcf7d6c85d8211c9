#!/bin/bash
# Requests to services, in a machine of their own: what is authorised and refused, records, layers, other users of a descriptor,
# limits, what is taken back, and what ends: clients, services, the daemon.
#
# Runs as root in the VM, beside the `tidegate` program. The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
# shellcheck source=tests/expect.sh
. ./expect.sh
OPS=/payload/client.py
# shellcheck source=tests/ask.sh
. ./ask.sh

# played NAME: what a program counted, which says so last
played() {
	local good bad
	cat "$1"
	if ! read -r good bad < <(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$1"); then
		good=0 bad=1
		echo "FAILED  $1 says no count"
	fi
	passed=$((passed + good)) failed=$((failed + bad))
}

# serve: the example's service at both sockets, which is limited by nothing
serve() {
	rm -f /srv/run/notes.packets /srv/run/notes.stream
	./notes serve /srv/run/notes.packets >/tmp/packets.log 2>&1 &
	SERVICE[packets]=$!
	./notes serve --stream /srv/run/notes.stream >/tmp/stream.log 2>&1 &
	SERVICE[stream]=$!
	for kind in packets stream; do
		until_ listens "/srv/run/notes.$kind"
	done
}
declare -A SERVICE

# begun NAME KIND [SUBJECT]: a client in a session of its own, connected as `c`
begun() {
	begin "$1" --caps /srv/s.caps --caps-subject "${3:-host}"
	expect 0 '^ok' ask "$1" connect c "/srv/run/notes.$2" "$2"
}

# helper MODE PATH: in the background, once it listens
helper() {
	rm -f "$2"
	python3 helper.py "$1" "$2" &
	HELPER=$!
	until_ listens "$2"
}

# why PATTERN: what the newest refusal was
why() {
	soon 0 "$1" "$T" why
}

base='    file /etc/ld.so.cache read
    file /usr/** read
    dir /usr read
    dir /usr/** read
    library /usr/** load
    program /usr/bin/python3* execute
    file /payload/* read
    dir /payload read
    file /dev/null read write
    library /srv/bin/* load
    connect unix /srv/run/*
    connect unix @notes*'

mkdir -p /srv/run /srv/bin
cp "$(readlink -f /usr/bin/python3)" /srv/bin/narrow
cat >/srv/s.caps <<-END
	subject host {
	$base
	    bind unix /srv/run/*
	    bind unix @notes*
	    file /srv/run/* unlink
	    program /srv/bin/narrow execute as narrow
	    program /payload/tidegate execute
	    connect unix /run/tidegate/tidegate.sock
	    file /srv/*.caps read
	    service notes pub:* read
	    service notes x:*   read write
	    service notes lim:* read uses 2
	    service notes exp:* read expires 5s
	    service other pub:* read
	}
	subject narrow {
	$base
	    program /srv/bin/narrow execute
	    service notes pub:* read
	    service notes x:*   read
	}
	subject none {
	$base
	}
	service notes on /srv/run/notes* {
	    permission read write
	    operation 1 open bind   operand 1 by operand 2 { 0 read  1 write  2 read write }
	    operation 2 get  active operand 1 read
	    operation 3 put  active operand 1 write
	    operation 4 ping free
	    operation 5 move bind   operand 1 write operand 2 write
	    operation 6 copy active operand 1 read operand 2 write
	}
	service other on @notes* {
	    permission read write
	    operation 1 open bind   operand 1 by operand 2 { 0 read  1 write }
	    operation 4 ping free
	}
END
sed 's/service notes x:/service notes y:/' /srv/s.caps >/srv/wide.caps
# the example's own file, with the sockets that it is played on
sed 's|/run/notes.sock|/srv/run/notes.*|' notes.caps >/srv/notes.caps
expect 0 'service notes' cat /srv/notes.caps
expect 0 'subject host' "$T" check --caps /srv/s.caps
expect 0 'subject client' "$T" check --caps notes.caps

enforce --policy /payload/flat.plm
serve

# links: the programs that are attached; linked PATTERN, not_linked PATTERN: one that is called so
links() { ls /sys/fs/bpf/tidegate/links; }
linked() { expect 0 "$1" links; }
not_linked() {
	links >/tmp/links
	expect 1 '' grep -E "$1" /tmp/links
}

echo "# a service of packets alone"
sed 's|/srv/run/notes\* {|/srv/run/notes* type seqpacket {|; /^service other/,/^}/d; /service other/d' /srv/s.caps >/srv/packets.caps
expect 0 'type seqpacket' grep service /srv/packets.caps
begin host --caps /srv/packets.caps --caps-subject host
linked caps_service_socket_sendmsg
not_linked 'caps_stream_|lomac_socket_sendmsg|[^_]caps_socket_sendmsg'
linked lomac_socket_recvmsg
expect 0 '^ok' ask host connect c /srv/run/notes.packets packets
answer=$(ask host open c x:a 2)
expect 0 '^ok' ask host put c "${answer#ok }" text
expect 0 '^ok text' ask host get c "${answer#ok }"
expect 0 '^EACCES' ask host open c secret 0
expect 0 '^EACCES' ask host connect d /srv/run/notes.stream stream
why "as host may not use \\(notes\\) in session [0-9]+: the service's socket is of another type"
expect 0 'fix: no statement: the socket has to be of the type that .service notes on' "$T" why
end host
begun host stream
linked caps_stream_socket_recvmsg
not_linked 'lomac_socket_(send|recv)msg'
end host

echo "# the example and its file"
for kind in packets stream; do
	at=/srv/run/notes.$kind
	expect 0 '^exit 0' ./notes put "$at" pub:plans "$kind"
	expect 0 "^$kind" "$T" run --caps /srv/notes.caps -- /payload/notes get "$at" pub:plans
	expect 1 'open: the request is not authorised' "$T" run --caps /srv/notes.caps -- /payload/notes put "$at" pub:plans no
	expect 0 '^exit 0' "$T" run --caps /srv/notes.caps -- /payload/notes put "$at" own:a text
	expect 1 'not authorised' "$T" run --caps /srv/notes.caps -- /payload/notes get "$at" secret
	expect 0 '^text' ./notes get "$at" own:a
done

for kind in packets stream; do
	echo "# records, $kind"
	begun host "$kind"
	number=$(session_of host)
	expect 0 '^EACCES' ask host open c pub:a 1
	why "denied: python3\\([0-9]+\\) as host may not \\{ write \\} pub:a \\(notes\\) by operation open in session $number: no line gives that"
	expect 0 'fix: service notes pub:a write   \(in subject host, /srv/s.caps:1;' "$T" why
	expect 0 'may not \{ write \} pub:a \(notes\) by operation open' "$T" log -n 5
	expect 0 '"tclass":"service","caps":\{.*"service":"notes","operation":"open","object":"pub:a"' "$T" log -n 5 --json
	expect 0 '^EACCES' ask host operation c 9
	why "as host may not use \\(notes\\) by operation 9 in session $number: the service has no such request"
	expect 0 'fix: no statement: .operation 9 …. in service notes would list it' "$T" why
	expect 0 '^EACCES' ask host open c pub:a 7
	why 'as host may not use \(notes\) by operation open'
	expect 0 'operation open in service notes has no such operand, or no such value of one' "$T" why
	answer=$(ask host open c pub:a 0)
	expect 0 '^EACCES' ask host put c "${answer#ok }" no
	why 'as host may not \{ write \} pub:a \(notes\) by operation put .*: it was not opened for that'
	expect 0 '^ok' ask host get c "${answer#ok }"
	end host

	echo "# without a line for the service, $kind"
	begun none "$kind" none
	expect 0 '^ok' ask none ping c
	expect 0 '^EACCES' ask none open c pub:a 0
	why 'as none may not \{ read \} pub:a \(notes\)'
	expect 0 'fix: service notes pub:a read   \(in subject none' "$T" why
	end none

	echo "# layers, $kind"
	begun host "$kind"
	both=$(ask host open c x:a 2) both=${both#ok }
	few=$(ask host open c lim:a 0) few=${few#ok }
	public=$(ask host open c pub:a 0) public=${public#ok }
	expect 0 '^ok' ask host put c "$both" text
	for narrow in "/srv/bin/narrow" "/payload/tidegate run --caps /srv/s.caps --caps-subject narrow -- /usr/bin/python3"; do
		read -ra words <<<"$narrow"
		expect 0 "^ok exit 0 ok ?; ok text; EACCES; EACCES; ok ?; ok [0-9]+; EACCES" ask host exec c "${words[@]}" -IBSu /payload/client.py \
			"get c $both,put c $both no,get c $few,get c $public,open c x:q 0,open c x:q 2"
	done
	# what another file would give alone is not given
	expect 0 "^ok exit 0 ok ?; EACCES; EACCES; ok" ask host exec c \
		/payload/tidegate run --caps /srv/wide.caps -- /usr/bin/python3 -IBSu /payload/client.py \
		"get c $both,open c y:a 0,get c $public"
	expect 0 '^ok' ask host put c "$both" text
	expect 0 '^ok' ask host get c "$few"

	echo "# by others, $kind"
	helper relay /srv/run/relay
	begin two --caps /srv/s.caps --caps-subject narrow
	expect 0 '^ok' ask host connect r /srv/run/relay stream
	expect 0 '^ok' ask two connect r /srv/run/relay stream
	expect 0 '^ok' ask host give r c
	expect 0 '^ok' ask two take r c
	# of what it did not open it has what it could open itself, and what it was opened for
	expect 0 '^ok text' ask two get c "$both"
	expect 0 '^EACCES' ask two put c "$both" no
	expect 0 '^EACCES' ask two get c "$few"
	expect 0 '^EACCES' ask two put c "$public" no
	mine=$(ask two open c x:mine 0) mine=${mine#ok }
	expect 0 '^ok' ask host get c "$mine"
	expect 0 '^EACCES' ask host put c "$mine" no
	end two
	# once its session has left
	soon 0 '^EACCES' ask host get c "$mine"
	kill $HELPER
	# a process that is not limited may open anything, which is nobody's then, and uses what others opened for what they did
	helper sends /srv/run/sends
	expect 0 '^ok' ask host connect h /srv/run/sends stream
	expect 0 '^ok [0-9]+' ask host by h c open pub:zz 2
	expect 0 '^ok [0-9]+' ask host by h c get "$both"
	expect 0 '^ok EACCES' ask host by h c put "$public"
	expect 0 '^ok EPROTO' ask host by h c malformed
	kill $HELPER
	end host
	# a connection that somebody else made
	helper relay /srv/run/relay
	begin free
	expect 0 '^ok' ask free connect c "/srv/run/notes.$kind" "$kind"
	expect 0 '^ok' ask free connect r /srv/run/relay stream
	begin host --caps /srv/s.caps
	expect 0 '^ok' ask host connect r /srv/run/relay stream
	expect 0 '^ok' ask free give r c
	expect 0 '^ok' ask host take r c
	expect 0 '^EACCES' ask host ping c
	expect 0 '^ok' ask free ping c
	kill $HELPER
	end host
	end free

	echo "# taken back, $kind"
	begun host "$kind"
	begun other "$kind"
	both=$(ask host open c x:a 2) both=${both#ok }
	second=$(ask host open c x:b 2) second=${second#ok }
	public=$(ask host open c pub:a 0) public=${public#ok }
	expect 2 'is not SERVICE:NAME' "$T" revoke --object service:notes
	expect 1 'no session.s files have a service .none' "$T" revoke --object service:none:x:a
	expect 0 '^ok' ask host put c "$both" text
	# a request that waits for its answer
	kill -STOP "${SERVICE[$kind]}"
	expect 0 '^ok' ask host leave c x:a 2
	expect 0 '^taken back from [2-9] session' "$T" revoke --object service:notes:x:a
	kill -CONT "${SERVICE[$kind]}"
	answer=$(ask host receive c)
	expect 0 '^ok [0-9]+' echo "$answer"
	expect 0 '^EACCES' ask host put c "${answer#ok }" no
	why 'as host may not .* x:a \(notes\) by operation put .*: it was taken back'
	expect 0 '^EACCES' ask host get c "$both"
	expect 0 '^EACCES' ask host open c x:a 0
	expect 0 '^EACCES' ask other open c x:a 0
	expect 0 '^ok' ask host put c "$second" text
	expect 0 'taken back: service notes:x:a' "$T" sessions
	begun later "$kind"
	expect 0 '^ok' ask later open c x:a 2
	line=$(grep -n 'service notes x:\*   read write' /srv/s.caps | cut -d: -f1)
	expect 0 '^taken back from [3-9] sessions' "$T" revoke --capability "s.caps:$line"
	expect 0 '^EACCES' ask host get c "$second"
	expect 0 '^EACCES' ask later open c x:c 0
	expect 0 '^ok' ask host get c "$public"
	number=$(session_of other)
	expect 0 '^ok' ask other open c pub:a 0
	expect 0 '^taken back from 1 session' "$T" revoke --caps-session "$number"
	expect 0 '^ok' ask host get c "$public"
	expect 0 '^taken back from' "$T" revoke --subject s.caps:host
	for name in host later; do
		# with all that it had
		expect 1 '' kill -0 "${PID[$name]}"
	done
	end host 2>/dev/null
	end other 2>/dev/null
	end later 2>/dev/null

	echo "# what ends, $kind"
	begun host "$kind"
	old=$(ask host open c x:a 0) old=${old#ok }
	kill -STOP "${SERVICE[$kind]}"
	for name in 1 2 3 4 5 6 7 8; do
		expect 0 '^ok' ask host leave c "x:$name" 2
	done
	# the client is killed meanwhile
	kill -9 "${PID[host]}"
	wait "${PID[host]}" 2>/dev/null
	kill -CONT "${SERVICE[$kind]}"
	end host 2>/dev/null
	begun host "$kind"
	expect 0 '^EACCES' ask host get c "$old"
	expect 0 '^ok' ask host open c x:a 0
	# the service begins anew
	kill "${SERVICE[packets]}" "${SERVICE[stream]}"
	wait "${SERVICE[packets]}" "${SERVICE[stream]}" 2>/dev/null
	expect 0 '^EPIPE|^ECONNRESET' ask host get c "$old"
	serve
	expect 0 '^ok' ask host connect c "/srv/run/notes.$kind" "$kind"
	expect 0 '^EACCES' ask host get c "$old"
	expect 0 '^ok' ask host open c x:a 0
	expect 0 '^EACCES' ask host open c secret 0
	end host
done

echo "# turns that were not left"
# as where the kernel leaves a program out, of which it is in the middle for another task
leaves_out() { rm "/sys/fs/bpf/tidegate/links/$1"; }
# the programs of streams, those that are missing too, are there for each session that begins with a service
attached_again() {
	begun more stream
	end more
	linked "$1"
}
begun host stream
expect 0 '^ok' ask host listen l /srv/run/notes-turns stream
expect 0 '^ok' ask host connect a /srv/run/notes-turns stream
expect 0 '^ok' ask host accept l b
# the sender waits for room, which only the reader makes
expect 0 '^ok' ask host large a 3000000
expect 0 '^ok 16$' ask host whole b 16
leaves_out caps_stream_unix_recvmsg
expect 0 '^ok 4096$' ask host whole b 4096
attached_again caps_stream_unix_recvmsg
expect 0 '^ok 2995904$' ask host whole b 2995904
expect 0 '^ok None$' ask host ended a
expect 0 '^ok EAGAIN$' ask host read b 1
expect 0 '^ok 16$' ask host send a
expect 0 '^ok 16$' ask host whole b 16
# nor does it stop the sender's next request
leaves_out caps_stream_unix_sendmsg
expect 0 '^ok 16$' ask host send a
expect 0 '^ok 16$' ask host whole b 16
attached_again caps_stream_unix_sendmsg
expect 0 '^ok 16$' ask host send a
expect 0 '^ok 16$' ask host whole b 16
end host

case $0 in
*-all.play) tries=50000 ;;
*) tries=10000 ;;
esac
for kind in packets stream; do
	echo "# what comes through, $kind"
	timeout 300 "$T" run --caps /srv/s.caps -- /usr/bin/python3 -IBSu /payload/play.py "$kind" >"/tmp/play.$kind" 2>&1
	played "/tmp/play.$kind"
	# the log is full of refusals then; on one processor the two threads take turns for long: enough tries for all that can happen
	timeout "$((tries * 3 / 100))" "$T" run --caps /srv/s.caps -- /payload/race "$kind" "/srv/run/notes-race" "$tries" >"/tmp/race.$kind" 2>&1
	played "/tmp/race.$kind"
done

echo "# permissive"
begun host packets
begun stream stream
expect 0 '^ok|reload|in force' "$T" reload --permissive --policy /payload/flat.plm
for name in host stream; do
	expect 0 '^ok' ask $name open c secret 0
	expect 0 '^ok' ask $name ping c
done
why 'would be denied: .* as host may not \{ read \} secret \(notes\) by operation open'
expect 0 '^ok|reload|in force' "$T" reload --policy /payload/flat.plm
expect 0 '^EACCES' ask host open c secret 0
expect 0 '^EACCES' ask stream open c secret 0
end stream

echo "# another daemon"
both=$(ask host open c x:a 2) both=${both#ok }
killed
expect 0 '^ok' ask host put c "$both" text
expect 0 '^EACCES' ask host open c secret 0
expect 0 '^ok' ask host connect d /srv/run/notes.stream stream
expect 0 '^EACCES' ask host open d secret 0
expect 0 'took over' timeout 1200 "$T" start
expect 0 '^ok text' ask host get c "$both"
expect 0 '^EACCES' ask host open c secret 0
expect 0 '^taken back from 1 session' "$T" revoke --object service:notes:x:a
expect 0 '^EACCES' ask host get c "$both"
expect 0 '^ok' ask host open d x:b 0
end host

echo "# the end of the last session"
soon 0 '^lomac_socket_sendmsg' links
expect 0 '^lomac_socket_recvmsg' links
not_linked 'caps_service_|caps_stream_'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
