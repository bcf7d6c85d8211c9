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
expect 0 '^shut' after one read-by-an-option "$T" revoke --object tcp:127.0.0.1:7300
expect 0 '^open' after one read-by-an-option true
kill "$listener"

# of several sessions (sessions.pl)
mkdir -p /srv/att/{given/bound,own,run/given,secret/deep,lower,upper,work,merged}
cp /usr/bin/echo /srv/att/given/program
cp /lib64/ld-linux-x86-64.so.2 /srv/att/given/loader
cp /usr/bin/perl /srv/att/perl
# a program that ends at once: an ELF header, one segment, exit(0)
perl -e 'print pack("H32 S2 L Q3 L S6", "7f454c46020101", 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0),
	pack("L2 Q6", 1, 5, 0, 0x400000, 0x400000, 129, 129, 4096), "\xb8\x3c\0\0\0\x31\xff\x0f\x05"' >/srv/att/brief-program
chmod +x /srv/att/brief-program
printf '#!/srv/att/given/script2\n' >/srv/att/given/script
printf '#!/srv/att/given/program\n' >/srv/att/given/script2
chmod +x /srv/att/given/script*
# programs whose interpreter takes their names for its option, and what follows for code
for dir in run run/given; do
	echo TGX1 >/srv/att/$dir/-e
	chmod +x /srv/att/$dir/-e
done
modprobe binfmt_misc
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
echo ':attacks:M::TGX1::/usr/bin/perl:O' >/proc/sys/fs/binfmt_misc/register
for name in given/f log few brief secret/f secret/deep/file lower/given lower/secret lower/mapped; do echo "$name" >/srv/att/$name; done
cp /usr/bin/echo /srv/att/lower/given
chmod -R a+rwX /srv/att
chmod 755 /srv
mount -t overlay -o nfs_export=on,index=on,lowerdir=/srv/att/lower,upperdir=/srv/att/upper,workdir=/srv/att/work overlay /srv/att/merged || cat /proc/filesystems
mount --bind /srv/att/secret /srv/att/given/bound
# it is above then
touch /srv/att/merged/given
cat >/srv/att.caps <<-END
	subject one {
	$base
	    file /srv/att/given/* read
	    file /srv/att/log append
	    file /srv/att/own/* read write create unlink rename link
	    file /srv/att/merged/{given,mapped} read
	    file /proc/[0-9]*/** read write
	    dir /proc/[0-9]*/** read
	    dir /srv/att/own read
	    program /usr/bin/perl execute
	    program /srv/att/given/{script,script2,loader} execute
	    program /srv/att/run/** execute
	    file /srv/att/run/given/* read
	    library /srv/att/given/loader load
	    bind tcp loopback port 7303-7304
	    connect unix /srv/att/own/socket
	    connect udp 127.0.0.1 port 7305
	}
	subject wide {
	$base
	    file /srv/att/** read write create unlink
	    file /proc/[0-9]*/** read write
	    program /usr/bin/perl execute
	    program /srv/att/{perl,brief-program} execute as small
	    connect tcp 127.0.0.1 port 7302
	    connect tcp 127.0.0.1 port 7306
	    bind tcp loopback port 7303
	    bind unix /srv/att/own/socket
	}
	subject small {
	$base
	    file /srv/att/given/* read
	    file /srv/att/own/* read write create link
	    file /srv/att/few read uses 2
	    file /srv/att/brief read expires 3s
	    control file read
	    connect tcp 127.0.0.1 port 7306
	    program /srv/att/perl execute
	}
	subject counts {
	$base
	    program /usr/bin/perl execute
	    connect udp 127.0.0.1 port 7301 uses 2
	    control udp read write
	}
	subject sockets {
	$base
	    program /usr/bin/perl execute
	    connect tcp 127.0.0.1 port 7306-7308
	    connect udp 127.0.0.1 port 7306-7307
	    connect tcp any port 7310
	    connect udp any port 7310
	    bind tcp loopback port 0
	    bind tcp 127.0.0.1 port 7312-7313
	    bind tcp 198.51.100.9 port 80
	    bind unix @own
	    connect unix @attacked
	}
	subject serves {
	$base
	    program /usr/bin/perl execute
	    bind tcp any
	    bind unix @*
	}
	subject brief {
	$base
	    program /usr/bin/perl execute
	    bind tcp loopback port 7304 expires 3s
	}
END
chmod 644 /srv/att.caps
# a bundle of it, which a limited process may have itself limited by
bundle_of /srv/att.caps one /srv/att/given/bundle
# a program that brings fourteen layers, and two that bring one more each
cp /usr/bin/perl /srv/att/perl15
cp /usr/bin/perl /srv/att/perl16
everything='    file /** read
    dir /** read
    library /** load
    program /** execute'
{
	printf 'subject first {\n%s\n' "$everything"
	printf '    program /srv/att/perl15 execute as f%s\n' {1..14}
	printf '    program /srv/att/perl16 execute as last\n    program /srv/att/brief-program execute as fmore\n}\n'
	for i in {1..14} more; do printf 'subject f%s {\n%s\n}\n' "$i" "$everything"; done
	cat <<-END
		subject last {
		$base
		    file /srv/att/few read uses 2
		    control file read
		    program /srv/att/* execute
		}
	END
} >/srv/many.caps
(ulimit -n 20000 && TIDEGATE=$T perl sessions.pl >/tmp/sessions.out)
# by sockets (sockets.pl)
TIDEGATE=$T perl sockets.pl >>/tmp/sessions.out
# what came of one, by root and, where that is tried, by another user
result() {
	if sed -En "s/^$1(-by-a-user)? //p" /tmp/sessions.out | grep -v '^shut$' || ! grep -q "^$1 " /tmp/sessions.out; then return 1; fi
	echo shut
}
expect 0 '^shut' result handle
expect 0 '^shut' result magic-links
expect 0 '^shut' result reopened-wider
expect 0 '^shut' result truncated-when-opened
expect 0 '^shut' result without-a-name
expect 0 '^shut' result exchanged
expect 0 '^shut' result linked-by-descriptor
expect 0 '^shut' result another-place
expect 0 '^shut' result mounted-elsewhere
expect 0 '^shut' result mounts
expect 0 '^shut' result user-namespace
expect 0 '^shut' result namespaces
expect 0 '^shut' result executed-from-memory
expect 0 '^shut' result executed-by-a-chain
expect 0 '^shut' result executed-by-the-loader
expect 0 '^shut' result read-by-its-interpreter
expect 0 '^shut' result mapped-to-be-executed
expect 0 '^shut' result others-processes
expect 0 '^shut' result the-kernel
expect 0 '^shut' result terminal
expect 0 '^shut' result handed-as-opened
expect 0 '^shut' result still-mapped-behind-an-overlay
expect 0 '^shut' result still-mapped-of-anothers
expect 0 '^shut' result inherited
expect 0 '^shut' result hidden-behind-controls
expect 0 '^shut' result hidden-behind-a-message
expect 0 '^shut' result many-sent-by-one-call
expect 0 '^shut' result many-received-by-one-call
expect 0 '^shut' result source-routes
expect 0 '^shut' result routes-behind-a-message
expect 0 '^shut' result taken-by-pidfd
expect 0 '^shut' result socket-without-rights
expect 0 '^shut' result accepted-after-its-end
expect 0 '^shut' result connected-again
expect 0 '^shut' result connected-without-rights
expect 0 '^shut' result uses-filled-up-again
expect 0 '^shut' result bound-again
expect 0 '^shut' result listens-unnamed
expect 0 '^shut' result port-for-nothing
expect 0 '^shut' result unspecified-address
expect 0 '^shut' result client-handed-over
expect 0 '^shut' result message-put-off
expect 0 '^shut' result unix-client-handed-over
expect 0 '^shut' result sockets-go-on
expect 0 '^shut' result place-used-again
expect 0 '^shut' result owner-within
expect 0 '^shut' result executed-many-times
expect 0 '^shut' result uses-given-again
expect 0 '^shut' result half-made
expect 0 '^shut' result asked-of-the-daemon
expect 0 '^shut' result told-to-the-daemon
expect 0 '^shut' result connections-to-the-daemon
expect 0 '^shut' result number-of-who-asked
expect 0 '^shut' result number-of-who-is-limited
expect 0 '^shut' result narrowed-before-an-execution
expect 0 '^shut' result narrowed-by-two-at-once
expect 0 '^shut' result filled-with-files
echo -1 >/proc/sys/fs/binfmt_misc/attacks
umount /srv/att/given/bound /srv/att/merged /proc/sys/fs/binfmt_misc
