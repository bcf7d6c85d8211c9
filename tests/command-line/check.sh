#!/bin/bash
# The command line and the daemon, in a machine of their own: every exit code,
# bad input, start and take-over, what ran before, the guard, the log, `why`.
#
# Runs as root in the VM, beside the `tidegate` program; takes what it likes of
# /tmp, /etc/tidegate and /home/alice. The last line is `N passed, N failed`.
# shellcheck disable=SC2016 # what is quoted is for another shell, or for Perl
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
X=$PWD/tidegate-exporter
# shellcheck source=tests/expect.sh
. ./expect.sh

# alice's shell, at the top level to begin with
alice() { su alice -s /bin/bash -c "$1"; }
# the same, fallen to untrusted itself (a child that falls does not take it along)
low() { alice "exec 9</run/tidegate/level/untrusted; $1"; }

# shellcheck disable=SC2119,SC2120 # its arguments come through expect
begin() { timeout 1200 "$T" start --preset workstation "$@"; }
# what commands write to: at the lowest level, or low ones could not
low_out() { rm -f /tmp/out && "$T" run --level untrusted -- touch /tmp/out; }

echo "# a machine on which nothing runs"
expect 0 'can enforce' "$T" doctor
expect 0 '"can_enforce":true' "$T" doctor --json
for command in ps ls status stats stop why "promote /etc/passwd"; do
	# shellcheck disable=SC2086 # a command and its argument
	expect 5 'not running' "$T" $command
done
expect 5 'not running' "$T" run --level user -- true
expect 5 'not running' "$T" reload --preset server
expect 1 'no audit log' "$T" log
expect 7 'takes root' alice "$T start --preset workstation"

echo "# a kernel that hides from everybody where its locks are, by which paths are walked"
echo 2 >/proc/sys/kernel/kptr_restrict
expect 4 'kernel.kptr_restrict=1' "$T" doctor
expect 4 'addresses: kernel.kptr_restrict=2' "$T" start --preset workstation
echo 1 >/proc/sys/kernel/kptr_restrict

echo "# bad command lines and policies"
expect 2 'unrecognized subcommand' "$T" frobnicate
expect 2 'no policy is named' "$T" start
expect 2 'classic, server, workstation' "$T" start --preset nonsense
expect 2 'cannot be used with' "$T" start --preset server --policy /tmp/x.plm
printf 'levels system > user\nsystem /\nbogus /x\n' >/tmp/wrong.plm
expect 3 'wrong.plm:3:1' "$T" start --policy /tmp/wrong.plm
expect 3 'wrong.plm:3:1' "$T" check /tmp/wrong.plm
expect 0 'workstation: ' "$T" check --preset workstation
expect 0 'passwd.*system' "$T" check --preset workstation --path /etc/passwd
expect 0 'bytes' "$T" compile --preset workstation -o /tmp/good.bundle
head -c 200 /tmp/good.bundle >/tmp/cut.bundle
{ head -c 200 /tmp/good.bundle; echo x; tail -c +203 /tmp/good.bundle; } >/tmp/changed.bundle
expect 3 'cut off' "$T" start --bundle /tmp/cut.bundle
expect 3 'checksum' "$T" start --bundle /tmp/changed.bundle
expect 3 'not a Tidegate bundle' "$T" start --bundle /etc/passwd
expect 2 'No such file' "$T" start --bundle /tmp/nothing

echo "# capability files"
cat >/tmp/tools.caps <<-'END'
	subject tool {
	    file /srv/** read
	    file /srv/out/* read write  expires 10m
	    connect unix @bus
	}
END
expect 0 'subject tool: 3 capabilities.*tools.caps:1' "$T" check --caps /tmp/tools.caps
expect 0 '^/srv/out/x.tool.file.read.*/tmp/tools.caps:2: file /srv/\*\* read$' "$T" check --caps /tmp/tools.caps --path /srv/out/x
expect 0 '^/srv/out/x.tool.file.write.*/tmp/tools.caps:3: ' "$T" check --caps /tmp/tools.caps --path /srv/out/x
expect 0 '^/etc/x.no subject may' "$T" check --caps /tmp/tools.caps --path /etc/x
expect 0 '"paths":\[\{"path":"/srv/a","subject":"tool","class":"file","given":\[\{"permissions":\["read"\],"rule":"/tmp/tools.caps:2"' \
	"$T" check --json --caps /tmp/tools.caps --path /srv/a
printf 'subject tool {\n    fiel /srv read\n}\n' >/tmp/wrong.caps
expect 3 'wrong.caps:2:5' "$T" check --caps /tmp/wrong.caps
expect 3 'did you mean `file`' "$T" check --caps /tmp/wrong.caps
expect 2 'nothing.caps: No such file' "$T" check --caps /tmp/nothing.caps
expect 2 'cannot be used with' "$T" check --caps /tmp/tools.caps --preset server
expect 2 'not a canonical path' "$T" check --caps /tmp/tools.caps --path srv

echo "# SELinux policies that are none"
expect 3 'this is not a binary SELinux policy' "$T" check --preset server --te /etc/passwd
expect 2 'nothing.cil' "$T" check --preset server --te /tmp/nothing.cil
expect 2 'on or off' "$T" check --preset server --te /etc/passwd --te-boolean x=maybe
expect 2 'takes one directory, one binary policy' "$T" check --preset server --te /etc/passwd --te /etc/group
expect 2 'no SELinux policy is named' "$T" sesearch -A -ds
expect 3 'this is not a binary SELinux policy' "$T" sesearch -A /etc/passwd
expect 2 'No such file' "$T" sesearch -A --te /tmp/nothing
expect 2 'good.bundle has no SELinux policy' "$T" sesearch -A --bundle /tmp/good.bundle
expect 3 'this is not a binary SELinux policy' "$T" seinfo -x -t --te /etc/passwd
expect 2 'required' "$T" learn --preset server --te-rules /tmp/x.cil
expect 2 'possible values: cil, te' "$T" learn --preset server --te /etc/passwd --te-syntax pp
mount -o remount,ro /sys/fs/bpf
expect 8 'cannot pin' begin
mount -o remount,rw /sys/fs/bpf
expect 5 'not running' "$T" status

echo "# what ran before"
echo hi >/home/alice/held
cp /bin/sleep /home/alice/mysleep
chown alice: /home/alice/held /home/alice/mysleep
setsid su alice -c 'exec sleep 3001 </home/alice/held' </dev/null >/dev/null 2>&1 &
setsid su alice -c 'exec /home/alice/mysleep 3002' </dev/null >/dev/null 2>&1 &
setsid bash -c '/home/alice/mysleep 3003 </dev/null | exec sleep 3004' </dev/null >/dev/null 2>&1 &
setsid perl -e 'use IO::Socket::INET;
	$s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1:5000");
	if (fork) { $c = $s->accept; exec "sleep", 3005 }
	close $s; $c = IO::Socket::INET->new("127.0.0.1:5000"); $0 = "client 3006"; sleep 3006' \
	</dev/null >/dev/null 2>&1 &
setsid sleep 3007 </dev/null >/dev/null 2>&1 &
for program in 'sleep 3001' '/home/alice/mysleep 3002' '/home/alice/mysleep 3003' 'sleep 3004' 'sleep 3005' 'client 3006' 'sleep 3007'; do
	until_ pgrep -fx "$program"
done
expect 0 '^enforcing: workstation; [1-9]' begin
level_of() { "$T" ps --json | sed -n "s/^{\"pid\":$(pgrep -fox "$1"),.*\"level\":\"\([a-z]*\)\".*/\1/p"; }
expect 0 '^user' level_of 'sleep 3001'
expect 0 '^user' level_of '/home/alice/mysleep 3002'
expect 0 '^user' level_of 'sleep 3004'
expect 0 '^untrusted' level_of 'client 3006'
expect 0 '^system' level_of 'sleep 3007'
expect 0 'holding at the start /home/alice/held' "$T" why "$(pgrep -fox 'sleep 3001')"
expect 0 'sharing a channel' "$T" why "$(pgrep -fox 'sleep 3004')"
expect 0 'nothing has lowered it' "$T" why "$(pgrep -fox 'sleep 3007')"

low_out

echo "# in force"
expect 6 'is running' begin
expect 0 'daemon: +running' "$T" status
expect 0 '"levels":\["untrusted","user","system"\]' "$T" status --json
expect 0 'daemon: +running' alice "$T status"
expect 7 'not permitted' alice "$T ps"
expect 0 'system +rule +base' "$T" ls -d /etc/passwd
expect 0 'lownoopen' "$T" ls -d /root
expect 0 '"level":"user"' "$T" ls -d --json /home/alice/held
expect 2 'the levels are' "$T" run --level nonsense -- true
expect 2 'No such file' "$T" run --level user -- /nothing
expect 0 '^0$' "$T" run --level untrusted -- id -u
expect 1 '^exit 1' "$T" run --level untrusted -- false
expect 7 'is at untrusted' low "$T run --level user -- id"
expect 7 'takes root' "$T" run --level untrusted -- "$T" stop
expect 7 'takes root' "$T" run --level untrusted -- "$T" reload --preset workstation
expect 7 'not permitted' "$T" run --level untrusted -- "$T" ps
expect 7 'takes root' alice "$T promote /home/alice/held"

echo "# why"
expect 1 'nothing has been refused' alice "$T why"
expect 2 'not permitted' low 'echo x >>~/.bashrc || exit 2'
expect 0 'denied: bash\([0-9]+\) untrusted may not write /home/alice/.bashrc \(user, workstation.plm:[0-9]+\) ← demoted to untrusted [0-9:]+ by read /run/tidegate/level/untrusted' \
	alice "$T why"
expect 0 'untrusted may not write /home/alice/.bashrc' "$T" why last
expect 0 '"kind":"denied".*"kind":"demoted"' "$T" why --json
expect 1 'no record @999999' "$T" why @999999
expect 2 'neither' "$T" why nonsense
expect 7 "another user's" alice "$T why 1"

echo "# the guard"
revoked() {
	alice 'exec 8>>/home/alice/held; exec 9</run/tidegate/level/untrusted; echo x >&8'
}
expect 1 'Input/output error' revoked
expect 0 'guard: +armed' "$T" status
# five quiet seconds, then a look that finds nobody who may hold such a descriptor
soon 0 'guard: +idle' "$T" status
expect 1 'Input/output error' revoked

echo "# levels given"
expect 0 '' low 'echo y >/tmp/given'
expect 0 'untrusted +given' "$T" ls -d /tmp/given
expect 0 'is at user' "$T" promote /tmp/given --level user
expect 0 'user +given' "$T" ls -d /tmp/given
expect 0 'promoted /tmp/given to user' "$T" log --kind promoted
expect 2 'the levels are' "$T" promote /tmp/given --level nonsense
expect 1 'cannot be given' "$T" promote /proc/version
expect 2 'No such file' "$T" promote /tmp/nothing

echo "# the log"
soon 0 'denied: bash' "$T" log --denied
expect 0 '"op":"open-write"' "$T" log --denied --json --since 1h --comm bash --path /home/alice
expect 0 'exit 0' "$T" log --since 2020-01-01T00:00Z -n 1
expect 2 'neither a time' "$T" log --since yesterday
expect 7 'cannot read' alice "$T log"
flood() { low 'for i in $(seq 200); do echo x >/etc/hostname; done; true' 2>/dev/null; }
chmod 666 /etc/hostname
expect 0 '' flood
soon 0 'more of the same: bash' "$T" log --kind dropped
lines() { [ "$("$T" log --json --path /etc/hostname | wc -l)" -lt 60 ]; }
expect 0 '' lines
expect 0 'object manager +queries' "$T" stats

echo "# reload"
expect 3 'wrong.plm:3:1' "$T" reload --policy /tmp/wrong.plm
expect 3 'cut off' "$T" reload --bundle /tmp/cut.bundle
expect 3 'levels cannot change' "$T" reload --preset classic
expect 0 'workstation \(enforcing\), number 1' "$T" status
expect 0 'number 2' "$T" reload --preset workstation --permissive
expect 0 '' low 'echo "# x" >>~/.bashrc'
expect 0 'would be denied: bash' "$T" why
expect 0 'number 3' "$T" reload --bundle /tmp/good.bundle
# the arena of profiles, a gigabyte, has the pages that a policy takes
peak() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$(cat /run/tidegate/pid)/status"; }
small() { [ "$(peak)" -gt 1000 ] && [ "$(peak)" -lt 200000 ]; }
expect 0 '' small
expect 2 'not permitted' low 'echo x >>~/.bashrc || exit 2'

echo "# a reload without options reads again what named the policy"
expect 0 '^options: +--bundle=/tmp/good.bundle$' "$T" status
mkdir -p /etc/tidegate
echo 'include workstation' >/etc/tidegate/policy.plm
killed
expect 0 'the policy named is in force' "$T" start --preset workstation --permissive
expect 0 'options as before: --preset=workstation --permissive$' "$T" reload
expect 0 'workstation is in force \(permissive\), number 6' "$T" reload
here() { (cd /etc/tidegate && "$T" reload --policy policy.plm); }
expect 0 '^policy is in force, number 7' here
expect 0 '^options: +--policy=/etc/tidegate/policy.plm$' "$T" status
expect 0 '"options":\["--policy=/etc/tidegate/policy.plm"\]' "$T" status --json
expect 0 '^policy is in force \(permissive\), number 8' "$T" reload --permissive
expect 0 '^policy is in force, number 9' "$T" reload
echo 'bogus /x' >>/etc/tidegate/policy.plm
expect 3 'policy.plm:2:1' "$T" reload
expect 0 'policy \(enforcing\), number 9' "$T" status
expect 0 'policy.plm:2:1' "$T" reload --permissive
expect 0 'policy \(permissive\), number 10' "$T" status
expect 0 '' low 'echo "# x" >>~/.bashrc'
echo 'include classic' >/etc/tidegate/policy.plm
expect 3 'levels cannot change' "$T" reload
expect 0 'other levels than the policy in force' "$T" reload --permissive
rm /etc/tidegate/policy.plm
expect 0 '^policy is in force \(permissive\), number 12' "$T" reload --permissive
expect 2 'No such file' "$T" reload
expect 0 'number 13' "$T" reload --bundle /tmp/good.bundle
expect 2 'not permitted' low 'echo x >>~/.bashrc || exit 2'

echo "# a daemon that dies"
killed
expect 0 'daemon: +not running' "$T" status
expect 2 'not permitted' low 'echo x >>~/.bashrc || exit 2'
expect 0 'untrusted may not write /home/alice/.bashrc' "$T" why
expect 5 'daemon is not running' "$T" run --level untrusted -- true
expect 5 'daemon is not running' "$T" reload --preset workstation
expect 5 'daemon is not running' "$T" promote /tmp/given
expect 0 'took over' "$T" start
soon 0 '\.bashrc' "$T" log --denied -n 1
expect 1 'Input/output error' revoked
kill "$(cat /run/tidegate/pid)"
soon 0 'daemon: +not running' "$T" status
expect 0 'nothing is enforced' "$T" stop
expect 5 'not running' "$T" status
expect 0 '' test ! -e /sys/fs/bpf/tidegate

echo "# again, and what was given before"
expect 0 '^enforcing' begin
expect 0 'user +given' "$T" ls -d /tmp/given
expect 0 'nothing is enforced' "$T" stop

echo "# a daemon that dies as it starts"
# SIGN: what of the monitor is there as it is killed
killed_starting() {
	begin >/tmp/began 2>&1 &
	local starting=$!
	until [ -e "/sys/fs/bpf/tidegate/$1" ]; do
		kill -0 $starting 2>/dev/null || break
	done
	kill -9 "$(cat /run/tidegate/pid)"
	wait $starting
	cat /tmp/began
}
expect 0 'ended without a word' killed_starting maps/bss
expect 0 '\(permissive\)' "$T" status
expect 0 'nothing is enforced' "$T" stop
expect 0 '' test ! -e /sys/fs/bpf/tidegate
expect 0 'ended without a word' killed_starting links/lomac_file_open
expect 0 '\(permissive\)' "$T" status
expect 0 '^enforcing' "$T" start --preset workstation
expect 0 'user +given' "$T" ls -d /tmp/given
expect 2 'not permitted' low 'echo x >>~/.bashrc || exit 2'
expect 0 'nothing is enforced' "$T" stop
sed -i 's/^levels /levels x /' /var/lib/tidegate/given
expect 8 'damaged' begin
expect 5 'not running' "$T" status
rm /var/lib/tidegate/given

echo "# a full table, and a machine's own policy that is wrong"
rm -f /tmp/out
printf 'include workstation\nbogus /x\n' >/etc/tidegate/policy.plm
expect 3 'policy.plm:2:1' "$T" start --policy /etc/tidegate/policy.plm
expect 0 'last in force is taken: workstation' timeout 1200 "$T" start --profile /etc/nowhere --given-entries 512
rm /etc/tidegate/policy.plm
low_out
full() { low 'for i in $(seq 512); do echo x >/tmp/full$i; done'; }
expect 1 'No space left' full
expect 0 'the table of given levels or labels is full' "$T" why
expect 0 'nothing is enforced' "$T" stop

# to read what a low one wrote would lower this shell
rm -f /tmp/out

echo "# two at once"
two() {
	# shellcheck disable=SC2119
	begin >/tmp/one 2>&1 &
	# shellcheck disable=SC2119
	begin
	wait $!
	cat /tmp/one
}
two >/tmp/out 2>&1 </dev/null
[ "$(grep -c '^enforcing' /tmp/out)" = 1 ] && [ "$(grep -c 'is running' /tmp/out)" = 1 ]
say $? 'two starts at once: one enforces'
expect 0 'nothing is enforced' "$T" stop

echo "# metrics, and the exporter, which needs no privilege"
# with a log open that is above it once it has fallen, and revoked
serve() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$X" </dev/null >/dev/null 2>/var/log/exporter &
	exporter=$!
}
get() { timeout 120 bash -c 'exec 3<>/dev/tcp/127.0.0.1/9478 && printf "GET $0 HTTP/1.0\r\n\r\n" >&3 && cat <&3' "$1"; }
serve
soon 0 '^tidegate_up 0' get /metrics
expect 0 '^tidegate_loaded 0' get /metrics
expect 0 '^enforcing: server' timeout 1200 "$T" start --preset server
low_out
# at the top still: nobody has come over the network since
kill $exporter
wait $exporter
serve
until_ takes_connections 9478
expect 0 '^system' level_of "$X"
expect 0 '^HTTP/1.0 200' get /metrics
expect 0 '^untrusted' level_of "$X"
expect 0 'accept 127.0.0.1' "$T" why "$(pgrep -fox "$X")"
expect 2 'not permitted' low 'echo x >>/home/alice/held || exit 2'
soon 0 '^tidegate_up 1' get /metrics
soon 0 '^tidegate_records_total\{kind="denied",class="file",op="open-write"\} 1$' get /metrics
soon 0 '^tidegate_policy_info\{policy="server"\} 1$' get /metrics
soon 0 '^tidegate_processes\{level="untrusted"\} [1-9]' get /metrics
expect 0 '^HTTP/1.0 404' get /etc/passwd
crowd() {
	python3 -c 'import socket
crowd = [socket.create_connection(("127.0.0.1", 9478)) for _ in range(300)]
for c in crowd: c.send(b"GET /metr")
last = socket.create_connection(("127.0.0.1", 9478), timeout=5)
last.send(b"GET /metrics HTTP/1.0\r\n\r\n")
print(last.makefile().read())'
}
# one of some tries: the exporter itself lets the crowd go after ten seconds
soon 0 '^tidegate_up 1' crowd
textfile() { "$X" --textfile /tmp/tidegate.prom && cat /tmp/tidegate.prom; }
expect 0 '^tidegate_enforcing 1' textfile
collect() {
	python3 -c 'import socket
server = socket.create_server(("127.0.0.1", 4318))
server.settimeout(600)
request, body = server.accept()[0].makefile("rwb"), b""
head = dict(line.split(" ", 1) for line in iter(lambda: request.readline().decode().strip(), ""))
body = request.read(int(head["content-length:"]))
print(head["POST"].split()[0], head["content-type:"], b"tidegate_records" in body, b"open-write" in body)
request.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
request.flush()'
}
push() {
	local collects pushes came
	collect &
	collects=$!
	until_ takes_connections 4318
	"$X" --otlp http://127.0.0.1:4318/v1/metrics --interval 1 &
	pushes=$!
	wait $collects
	came=$?
	kill $pushes
	wait $pushes
	return $came
}
expect 0 '^/v1/metrics application/x-protobuf True True' push

echo "# top"
expect 0 '^server \(enforcing\), number 1 +daemon [0-9]+' "$T" top --once
expect 0 '65534 untrusted +tidegate-export .* accept 127.0.0.1$' "$T" top --once
expect 0 'denied: bash\([0-9]+\) untrusted may not write /home/alice/held' "$T" top
expect 0 '"comm":"tidegate-export","attributes":\[\],"fall":\{.*"op":"accept"' "$T" top --json
expect 7 'not permitted' alice "$T top --once"
# on a terminal: how it ends, and whether the terminal is as it was
terminal() {
	python3 - "$T" "$1" <<'EOF'
import fcntl, os, select, signal, struct, sys, time
TCGETS, TIOCSWINSZ = 0x5401, 0x5414
pid, terminal = os.forkpty()
if pid == 0:
    fcntl.ioctl(0, TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.execv(sys.argv[1], [sys.argv[1], "top"])
before, shown, until = fcntl.ioctl(terminal, TCGETS, bytes(60)), b"", time.time() + 600
def read():
    global shown
    if select.select([terminal], [], [], 0.3)[0]:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            time.sleep(0.1)
while b"below" not in shown and time.time() < until:
    read()
os.write(terminal, b"js\r")
while shown.count(b"why") < 2 and time.time() < until:
    read()
if sys.argv[2] == "q":
    os.write(terminal, b"q")
else:
    os.kill(pid, signal.SIGTERM)
# what it writes as it ends is read until nothing has the terminal open
while select.select([terminal], [], [], 600)[0]:
    try:
        shown += os.read(terminal, 65536)
    except OSError:
        break
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
after = fcntl.ioctl(terminal, TCGETS, bytes(60))
print("status", status, "shown", b"below" in shown and shown.count(b"why") > 1,
      "restored", shown.rfind(b"\x1b[?1049l") > shown.rfind(b"\x1b[?1049h") > -1 and before == after,
      "colour", b"\x1b[38;5;" in shown)
EOF
}
expect 0 'status 0 shown True restored True colour True' terminal q
expect 0 'status 0 shown True restored True colour True' terminal TERM
export NO_COLOR=1
expect 0 'status 0 shown True restored True colour False' terminal q
unset NO_COLOR

echo "# metrics without the daemon"
# a process that has fallen already may connect: a fall that needs the guard would be refused
again() { timeout 600 bash -c 'exec 3<>/dev/tcp/127.0.0.1/9478; : >/tmp/fell; while [ -e /tmp/wait ]; do sleep 0.2; done
	exec 3<>/dev/tcp/127.0.0.1/9478 && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3'; }
touch /tmp/wait
again >/tmp/out 2>&1 </dev/null &
asks=$!
until_ test -e /tmp/fell
killed
rm /tmp/wait
wait $asks
grep -q '^tidegate_up 0' /tmp/out && grep -q '^tidegate_loaded 1' /tmp/out
say $? 'the exporter without the daemon → tidegate_up 0, tidegate_loaded 1'
expect 0 'daemon not running' "$T" top --once
expect 0 'took over' "$T" start
soon 0 '^tidegate_up 1' get /metrics
expect 0 'nothing is enforced' "$T" stop
expect 5 'not running' "$T" top --once
kill $exporter
rm -f /tmp/out /tmp/fell

echo "# the lab is a program of its own"
expect 8 'tidegate-lab is not installed' "$T" lab list
expect 8 'tidegate-lab is not installed' "$T" bench --rounds 1

echo "# manual and completions"
expect 0 '' "$T" man /tmp/man
expect 0 '' test -s /tmp/man/tidegate-start.1
expect 0 '_tidegate' "$T" completions bash
expect 0 '' "$X" man /tmp/man
expect 0 '' test -s /tmp/man/tidegate-exporter.1
expect 0 'tidegate-exporter' "$X" completions bash
expect 2 'cannot be used with' "$X" --textfile /tmp/x.prom --otlp http://127.0.0.1/
expect 1 'takes http://' "$X" --otlp https://127.0.0.1/

echo "$passed passed, $failed failed"
[ $failed = 0 ]
