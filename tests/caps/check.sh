#!/bin/bash
# What capability files give and refuse, in a machine of their own: files, directories, programs, libraries, sockets, what is
# handed over, narrowing, limits, and what is taken back while it is used.
#
# Runs as root in the VM, beside the `tidegate` program. The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
# shellcheck source=tests/expect.sh
. ./expect.sh

OPS=/payload/ops.py
# shellcheck source=tests/ask.sh
. ./ask.sh
# bundle_of FILE SUBJECT TO: what `tidegate run` makes of a file, as it has it while the daemon does not answer
bundle_of() {
	kill -STOP "$(cat /run/tidegate/pid)"
	"$T" run --caps "$1" --caps-subject "$2" -- /bin/true >/dev/null 2>&1 &
	python3 -IBSc '
import fcntl, os, sys
fds = f"/proc/{sys.argv[1]}/fd"
while True:
    for fd in os.listdir(fds):
        try:
            if "memfd:" not in os.readlink(f"{fds}/{fd}"):
                continue
            with open(f"{fds}/{fd}", "rb") as bundle:
                # F_GET_SEALS, F_SEAL_WRITE: it is whole
                if fcntl.fcntl(bundle, 1034) & 8:
                    open(sys.argv[2], "wb").write(bundle.read())
                    sys.exit()
        except FileNotFoundError:
            pass
' $! "$3"
	kill $!
	wait $! 2>/dev/null
	kill -CONT "$(cat /run/tidegate/pid)"
}
# once NAME OP…: in a session of its own
once() {
	local subject=$1
	shift
	"$T" run --caps /srv/t.caps --caps-subject "$subject" -- /usr/bin/python3 -IBSu /payload/ops.py "$@"
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
    file /tmp/* read write'

mkdir -p /srv/in /srv/out /srv/other /srv/bin /srv/lib /srv/run
for name in a b c d e f; do echo "in $name" >/srv/in/$name; done
echo secret >/srv/other/secret
for name in short few log given mapped; do echo "$name" >/srv/$name; done
cp /usr/bin/echo /srv/bin/echo
cp /usr/bin/echo /srv/bin/other
cp "$(readlink -f /usr/bin/python3)" /srv/bin/tool
printf '#!/usr/bin/dash\necho script\n' >/srv/bin/script
chmod +x /srv/bin/script
for name in good bad brings; do cp -L /usr/lib/x86_64-linux-gnu/libz.so.1 /srv/lib/$name.so; done

cat >/srv/t.caps <<-END
	subject host {
	$base
	    file /srv/in/** read lock
	    file /srv/out/* read write create unlink rename link setattr lock
	    dir /srv/out/* create rmdir rename read
	    dir /srv/out read
	    file /srv/log append
	    file /srv/short read expires 10s
	    file /srv/given read write
	    file /srv/mapped read
	    program /usr/bin/perl execute
	    program /srv/bin/echo execute
	    program /srv/bin/script execute
	    program /srv/bin/tool execute as tool
	    file /srv/lib/* read
	    library /srv/lib/good.so load
	    library /srv/lib/brings.so load as tool
	    connect tcp 127.0.0.1 port 7001
	    bind tcp loopback port 7100-7199
	    connect udp 127.0.0.1 port 7002
	    bind udp loopback port 7200
	    connect unix /srv/run/good.sock
	    connect unix @good*
	    bind unix /srv/run/own-*
	    connect unix /run/tidegate/tidegate.sock
	    program /payload/tidegate execute
	    file /srv/*.caps read
	    file /srv/tool.bundle read
	}
	subject tool {
	$base
	    # more of a library is mapped once it has brought this
	    file /srv/lib/* read
	    file /srv/in/** read
	    file /srv/given read
	    program /srv/bin/tool execute
	    program /usr/bin/perl execute
	    connect unix /srv/run/good.sock
	    connect unix /run/tidegate/tidegate.sock
	}
	subject counted {
	$base
	    file /srv/few read uses 2
	    file /srv/in/** read
	    control file read
	}
END

echo "# files that are wrong, and no daemon"
without_daemon
expect 5 'not running' "$T" run --caps /srv/t.caps -- true
expect 3 'caps::' "$T" run --caps /dev/stdin -- true
expect 0 'subject host' "$T" check --caps /srv/t.caps

enforce --policy /payload/flat.plm
expect 2 'No such file' "$T" run --caps /srv/none.caps -- true
expect 0 'SESSION' "$T" sessions

echo "# files"
begin host --caps /srv/t.caps
# the programs of the model are loaded as long as there is a session
expect 2 'no subject .nobody.: it has host, tool, counted' "$T" run --caps /srv/t.caps --caps-subject nobody -- true
expect 0 '^ok' ask host open a /srv/in/a r
expect 0 '^ok in a' ask host read a
expect 0 '^ok' ask host lock a
expect 0 '^EACCES' ask host open x /srv/in/a rw
expect 0 '^EACCES' ask host open x /srv/other/secret r
expect 0 '^EACCES' ask host open x /etc/passwd r
expect 0 '^ok' ask host stat /etc/passwd
expect 0 '^ok' ask host open new /srv/out/new c
expect 0 '^ok' ask host write new
expect 0 '^ok' ask host fchmod new
expect 0 '^EACCES' ask host fchmod a
expect 0 '^EACCES' ask host open x /srv/in/new c
expect 0 '^EACCES' ask host chmod /srv/in/a
expect 0 '^ok' ask host chmod /srv/out/new
expect 0 '^ok' ask host truncate /srv/out/new
expect 0 '^EACCES' ask host truncate /srv/in/a
expect 0 '^ok' ask host rename /srv/out/new /srv/out/newer
expect 0 '^EACCES' ask host rename /srv/out/newer /srv/in/newer
expect 0 '^EACCES' ask host rename /srv/in/b /srv/out/b
expect 0 '^ok' ask host link /srv/out/newer /srv/out/again
expect 0 '^EACCES' ask host link /srv/in/b /srv/out/b
expect 0 '^ok' ask host unlink /srv/out/again
expect 0 '^EACCES' ask host unlink /srv/in/b
expect 0 '^ok' ask host open log /srv/log a
expect 0 '^ok' ask host write log
expect 0 '^EACCES' ask host open x /srv/log w
expect 0 '^EACCES' ask host open x /srv/log r

echo "# directories"
expect 0 '^ok' ask host mkdir /srv/out/dir
expect 0 '^ok' ask host list /srv/out
expect 0 '^EACCES' ask host list /srv/other
expect 0 '^EACCES' ask host mkdir /srv/in/dir
expect 0 '^ok' ask host rename /srv/out/dir /srv/out/dir2
expect 0 '^ok' ask host rmdir /srv/out/dir2
expect 0 '^EACCES' ask host rmdir /srv/run

echo "# programs"
expect 0 '^ok exit 0 hello' ask host exec /srv/bin/echo hello
expect 0 '^EACCES' ask host exec /srv/bin/other hello
expect 0 '^EACCES' ask host exec /usr/bin/ls
# a script, but not its interpreter
expect 0 '^EACCES' ask host exec /srv/bin/script
expect 0 '^ok exit 0 ok in b' ask host exec /srv/bin/tool -IBSc 'print("ok",open("/srv/in/b").read())'
# what the program brings limits it, too
expect 0 'exit 1 .*Permission' ask host exec /srv/bin/tool -IBSc 'open("/srv/out/newer")'

echo "# libraries"
expect 0 '^ok exit 0 ran$' ask host preload /srv/lib/good.so
expect 0 '^ok exit 0 ran .*cannot be preloaded' ask host preload /srv/lib/bad.so

echo "# sockets"
begin free
expect 0 '^ok' ask free bind t tcp 127.0.0.1 7001
expect 0 '^ok' ask free bind u udp 127.0.0.1 7002
expect 0 '^ok' ask free bind n unix /srv/run/good.sock
expect 0 '^ok' ask free bind m unix /srv/run/bad.sock
expect 0 '^ok' ask free bind g unix @good-one
expect 0 '^ok' ask free bind h unix @bad-one
expect 0 '^EACCES' ask host connect x tcp 127.0.0.1 7003
expect 0 '^EACCES' ask host connect x tcp 127.0.0.2 7001
expect 0 '^ECONNREFUSED|^ok' ask host connect t tcp 127.0.0.1 7001
expect 0 '^EACCES' ask host connect x udp 127.0.0.1 7003
expect 0 '^ok' ask host connect u udp 127.0.0.1 7002
expect 0 '^ok' ask host send u
expect 0 '^ok x' ask free recv u
expect 0 '^ok' ask host sendto 127.0.0.1 7002
expect 0 '^EACCES' ask host sendto 127.0.0.1 7003
expect 0 '^ok' ask host bind b tcp 127.0.0.1 7100
expect 0 '^EACCES' ask host bind x tcp 127.0.0.1 7200
expect 0 '^EACCES' ask host bind x tcp 0.0.0.0 7101
expect 0 '^ok' ask host bind v udp 127.0.0.1 7200
expect 0 '^ok' ask host connect n unix /srv/run/good.sock
expect 0 '^EACCES' ask host connect x unix /srv/run/bad.sock
expect 0 '^ok' ask host connect g unix @good-one
expect 0 '^EACCES' ask host connect x unix @bad-one
expect 0 '^ok' ask host bind o unix /srv/run/own-1
expect 0 '^EACCES' ask host bind x unix /srv/run/other
expect 0 '^ok' ask host pipe p

echo "# other processes, and what nobody is given"
expect 0 '^EACCES|^EPERM' ask host kill "${PID[free]}"
expect 0 '^EACCES|^EPERM' ask host kill 1

echo "# who there is"
expect 0 "^ *${PID[host]} +[0-9]+ python3 +host \\(/srv/t.caps\\)" "$T" ps --caps
number=$(session_of host)
expect 0 "^ *$number +0 +1 .*host \\(/srv/t.caps\\)" "$T" sessions
expect 0 "\"number\":$number,\"uid\":0,.*\"subjects\":\\[\"host \\(/srv/t.caps\\)\"\\]" "$T" sessions --json

echo "# why"
expect 0 '^EACCES' ask host open x /srv/other/secret r
soon 0 "denied: python3\\([0-9]+\\) as host may not \\{ read \\} /srv/other/secret \\(file\\) in session $number: no line gives that" "$T" why
expect 0 'fix: file /srv/other/secret read   \(in subject host, /srv/t.caps:1' "$T" why
expect 0 'as host may not \{ read \} /srv/other/secret' "$T" log -n 5
expect 0 "\"caps\":\\{\"session\":$number,\"subject\":\"host\",\"file\":\"/srv/t.caps:1\",\"why\":\"missing\"\\}" "$T" log -n 5 --json

echo "# limits"
expect 0 '^ok' ask host open short /srv/short r
expect 0 '^ok short' ask host read short
soon 0 '^EACCES' ask host read short
expect 0 '^ok' ask host open short /srv/short r
begin counted --caps /srv/t.caps --caps-subject counted
expect 0 '^ok' ask counted open f /srv/few r
expect 0 '^ok few' ask counted read f
expect 0 '^ok few' ask counted read f
expect 0 '^EACCES' ask counted read f
end counted

echo "# what is handed over"
begin one --caps /srv/t.caps
begin two --caps /srv/t.caps --caps-subject tool
rm -f /srv/run/good.sock
cat >/tmp/relay.py <<-END
	import array, os, socket
	s = socket.socket(socket.AF_UNIX)
	s.bind("/srv/run/good.sock")
	s.listen()
	a, _ = s.accept()
	b, _ = s.accept()
	while True:
	    data, ancillary, _, _ = a.recvmsg(1, socket.CMSG_SPACE(4))
	    if not data:
	        break
	    fds = [array.array("i", part[2]) for part in ancillary]
	    b.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fd) for fd in fds])
	    for fd in fds:
	        os.close(fd[0])
END
python3 /tmp/relay.py &
relay=$!
until_ listens /srv/run/good.sock
expect 0 '^ok' ask one connect s unix /srv/run/good.sock
expect 0 '^ok' ask two connect s unix /srv/run/good.sock
expect 0 '^ok' ask one open f /srv/given rw
expect 0 '^ok' ask one give s f
expect 0 '^ok$|^ok *$' ask two take s f
expect 0 '^ok given' ask two read f
# its receiver may only read it itself
expect 0 '^EACCES' ask two write f
expect 0 '^ok' ask one write f
expect 0 '^ok' ask one open o /srv/out/newer r
expect 0 '^ok' ask one give s o
expect 0 '^ok nothing|^EACCES' ask two take s o
kill $relay
# a process that has mapped it loses it with the one that it came from
mapper=$(ask two map f | sed 's/ok //')
expect 0 "\"killed\":.*\"pid\":$mapper," "$T" revoke --json --caps-session "$(session_of one)"
end one
end two

echo "# narrowing"
expect 0 '^ok exit 0 ' ask host exec /payload/tidegate run --caps /srv/t.caps --caps-subject tool -- /usr/bin/python3 -IBSu /payload/ops.py open x /srv/in/a r
expect 0 '^ok exit 0 EACCES' ask host exec /payload/tidegate run --caps /srv/t.caps --caps-subject tool -- /usr/bin/python3 -IBSu /payload/ops.py open x /srv/out/newer r
# both together: what the second would give alone is not given
printf 'subject wide {\n    file /** read\n    dir /** read\n    library /** load\n    program /** execute\n}\n' >/srv/wide.caps
expect 0 '^ok exit 0 EACCES' ask host exec /payload/tidegate run --caps /srv/wide.caps -- /usr/bin/python3 -IBSu /payload/ops.py open x /srv/other/secret r
child=$(ask host spawn /payload/tidegate run --caps /srv/wide.caps -- /usr/bin/python3 -IBSc 'import time; time.sleep(10000)' | sed 's/ok //')
soon 0 "^ *$child +$number python3 +host \\(/srv/t.caps\\), wide \\(/srv/wide.caps\\)" "$T" ps --caps
kill "$child"
expect 0 '^ok exit 7 .*it may narrow itself, and ask for nothing else' ask host exec /payload/tidegate status
# by itself, at once, with another thread
bundle_of /srv/t.caps host /srv/tool.bundle
begin self --caps /srv/t.caps
expect 0 '^ok' ask self open n /srv/out/newer r
expect 0 '^ok' ask self thread
expect 0 'limited by tool' ask self narrow /srv/tool.bundle tool
expect 0 '^EACCES' ask self open x /srv/out/newer r
expect 0 '^ok EACCES' ask self threads /srv/out/newer
expect 0 '^ok' ask self open x /srv/in/a r
# what it had opened it keeps
expect 0 '^ok' ask self read n
expect 0 "host \\(/srv/t.caps\\), tool \\(/srv/t.caps\\)" "$T" ps --caps
end self

echo "# a library that brings a layer"
preloaded() { LD_PRELOAD=/srv/lib/$1.so "$T" run --caps /srv/t.caps -- /usr/bin/python3 -IBSu /payload/ops.py "${@:2}"; }
expect 0 '^ok' preloaded good open x /srv/out/newer r
expect 0 '^ok' preloaded brings open x /srv/in/a r
expect 0 '^EACCES' preloaded brings open x /srv/out/newer r
# mapped later: what it holds is narrowed as if it were handed over
begin loads --caps /srv/t.caps
expect 0 '^ok' ask loads open n /srv/out/newer r
expect 0 '^ok' ask loads open a /srv/in/a r
expect 0 '^ok' ask loads load /srv/lib/good.so
expect 0 '^ok' ask loads read n
expect 0 '^EACCES' ask loads load /srv/lib/bad.so
expect 0 '^ok' ask loads load /srv/lib/brings.so
expect 0 '^EACCES' ask loads read n
expect 0 '^EACCES' ask loads open x /srv/out/newer r
expect 0 '^ok in a' ask loads read a
expect 0 "^ *${PID[loads]} .*host \\(/srv/t.caps\\), tool \\(/srv/t.caps\\)" "$T" ps --caps
# it has the layer: another one is none more
expect 0 '^ok' ask loads open b /srv/in/b r
end loads
# a part of an address space is not narrowed
begin loads --caps /srv/t.caps
expect 0 '^ok' ask loads thread
expect 0 '^EACCES' ask loads load /srv/lib/brings.so
expect 0 '^ok' ask loads load /srv/lib/good.so
expect 0 '^ok' ask loads open n /srv/out/newer r
end loads

echo "# revocation"
expect 0 '^ok in a' ask host read a
begin later --caps /srv/t.caps
end later
expect 0 '^taken back from [1-9] session' "$T" revoke --object file:/srv/in/a
expect 0 '^EACCES' ask host read a
expect 0 '^EACCES' ask host open x /srv/in/a r
expect 0 '^ok' ask host open b /srv/in/b r
expect 0 'taken back: file /srv/in/a' "$T" sessions
soon 0 'was taken back' "$T" log -n 5
begin later --caps /srv/t.caps
expect 0 '^ok' ask later open a /srv/in/a r
expect 0 '^ok in a' ask later read a
line=$(grep -n '/srv/in/\*\* read lock' /srv/t.caps | cut -d: -f1)
expect 1 'no session.s files have a capability' "$T" revoke --capability t.caps:1000
expect 0 '^taken back from [2-9] sessions' "$T" revoke --capability "t.caps:$line"
expect 0 '^EACCES' ask later read a
expect 0 '^EACCES' ask host read b
expect 0 '^EACCES' ask host open x /srv/in/c r
expect 0 '^ok' ask host open n /srv/out/newer r
expect 0 '^ok' ask host read n
# a process that has it mapped is killed
mapper=$(ask later spawn /usr/bin/perl -e 'open(F,"<","/srv/mapped");syscall(9,0,4096,1,1,fileno(F),0);sleep(10000)' | sed 's/ok //')
until_ grep -q /srv/mapped "/proc/$mapper/maps"
expect 0 "perl\\($mapper\\) was killed: it had inode [0-9]+ mapped" "$T" revoke --object file:/srv/mapped
expect 0 '^ok' ask later open n /srv/out/newer r
end later
expect 1 'no session 1000' "$T" revoke --caps-session 1000
expect 1 'no subject|have a subject' "$T" revoke --subject nobody
# with all that it has go the libraries that it has mapped
expect 0 "\"sessions\":1,\"killed\":\\[\\{\"pid\":${PID[host]},\"comm\":\"python3\",\"why\":\"it had inode" "$T" revoke --json --caps-session "$number"
begin again --caps /srv/t.caps
expect 0 '^ok' ask again open n /srv/out/newer r
expect 0 "python3\\(${PID[again]}\\) was killed" "$T" revoke --subject t.caps:host
begin again --caps /srv/t.caps
expect 0 '^ok' ask again open n /srv/out/newer r
end again

echo "# attacks"
# shellcheck source=tests/caps/attacks.sh
. ./attacks.sh

echo "# other users"
chmod 755 /srv /srv/in
chmod 644 /srv/*.caps /srv/*.bundle /srv/in/*
expect 0 '^ok' su alice -s /bin/bash -c "$T run --caps /srv/t.caps -- /usr/bin/python3 -IBSu /payload/ops.py open x /srv/in/a r"
expect 0 '^EACCES' su alice -s /bin/bash -c "$T run --caps /srv/t.caps -- /usr/bin/python3 -IBSu /payload/ops.py open x /etc/passwd r"
expect 0 'gives up new privileges' su alice -s /bin/bash -c "python3 -IBSu /payload/ops.py narrow /srv/tool.bundle tool"
expect 7 'root at the top level' su alice -s /bin/bash -c "$T revoke --subject host"

echo "# another daemon"
begin over --caps /srv/t.caps
killed
expect 0 '^ok' ask over open a /srv/in/a r
expect 0 '^EACCES' ask over open x /etc/passwd r
expect 0 'took over' timeout 1200 "$T" start
expect 0 'host \(/srv/t.caps\)' "$T" sessions
expect 0 '^taken back from' "$T" revoke --object file:/srv/in/a
expect 0 '^EACCES' ask over read a
end over

echo "# the end of the last session"
end free
# only what keeps account stays
keeps_account() {
	local links=(/sys/fs/bpf/tidegate/links/caps_*)
	[ ${#links[@]} = 3 ]
}
expect 0 '^exit 0' until_ keeps_account
expect 0 '^exit 0' until_ test ! -e /run/tidegate/policy/caps
expect 0 '^ok' once host open a /srv/in/a r
expect 0 '^EACCES' once host open a /etc/passwd r
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
