#!/bin/bash
# Programs that limit themselves by the library for C, in the machine, as root and as another: what is open, threads, children,
# what is shared with others, and that there is no way back.
# The last line is `N passed, N failed`.
# shellcheck disable=SC2016 # backquotes of what is said
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
O=$PWD/ops
# shellcheck source=tests/expect.sh
. ./expect.sh

mkdir /srv/in /srv/out
echo in >/srv/in/a
echo out >/srv/out/a
chmod -R a+rwX /srv
cat >/srv/n.caps <<-END
	subject reader {
	    file /srv/in/** read
	    program /payload/* execute
	    file /payload/* read
	    file /srv/*.caps read
	}
	subject alone {
	    file /srv/in/** read
	    file /srv/*.caps read
	    program /payload/ops execute
	}
	subject none {
	}
END
chmod a+r /srv/n.caps

echo "# what is wrong, and no daemon"
without_daemon
expect 0 '^ENOTCONN \(the daemon is not running: `tidegate start`' "$O" plain /srv/n.caps reader /srv/in/a
expect 0 '^ENOENT \(cannot read /srv/none.caps' "$O" plain /srv/none.caps - /srv/in/a
expect 0 '^EINVAL \(the file has no subject `nobody`: it has reader, alone, none' "$O" plain /srv/n.caps nobody /srv/in/a
printf 'subject a {\n    file srv read\n}\n' >/srv/wrong.caps
expect 0 '^EINVAL \(/srv/wrong.caps:2:10: ' "$O" plain /srv/wrong.caps - /srv/in/a

enforce --policy /payload/flat.plm

# all FIRST…: as root and as another, by these words before
all() {
	echo "# the example"
	expect 0 '^/srv/out/a, open from before: read' "$@" "$PWD/narrow" /srv/n.caps reader /srv/out/a /srv/in/a /srv/out/a
	expect 0 '^/srv/in/a: opened' "$@" "$PWD/narrow" /srv/n.caps reader /srv/out/a /srv/in/a /srv/out/a
	expect 0 '^/srv/out/a: Permission denied' "$@" "$PWD/narrow" /srv/n.caps reader /srv/out/a /srv/in/a /srv/out/a

	echo "# what is open stays"
	expect 0 '^ok read ok write ok mapped ok sent ok anew EACCES$' "$@" "$O" held /srv/n.caps reader /srv/out/a

	echo "# threads"
	expect 0 '^ok first EACCES threads EACCES EACCES EACCES EACCES$' "$@" "${nnp[@]}" "$O" threads /srv/n.caps reader /srv/out/a
	expect 0 '^ok first EACCES threads EACCES EACCES EACCES EACCES$' "$@" "${nnp[@]}" "$O" by-thread /srv/n.caps reader /srv/out/a
	for _ in 1 2 3; do
		expect 0 '^ok opened since: 0, threads many$' "$@" "${nnp[@]}" "$O" births /srv/n.caps reader /srv/out/a
	done

	echo "# children"
	expect 0 '^ok of before ok, since EACCES$' "$@" "$O" children /srv/n.caps reader /srv/out/a

	echo "# what is shared with another process"
	expect 0 "^EBUSY \(other processes share its memory or its descriptors\) ok then ok EACCES$" \
		"$@" "$O" shared-memory /srv/n.caps reader /srv/out/a
	expect 0 "^EBUSY \(other processes share its memory or its descriptors\) ok then ok EACCES$" \
		"$@" "$O" shared-files /srv/n.caps reader /srv/out/a

	echo "# no way back"
	expect 0 '^ok all ok EACCES$' "$@" "$O" wider /srv/n.caps reader /srv/out/a
	expect 0 '^17: EBUSY \(it is limited by 16 layers, .*\) again ok ok$' "$@" "$O" layers /srv/n.caps - /srv/out/a
	# the daemon, which everybody may ask, also a process that may connect to nobody
	expect 0 '^ok EACCES$' "$@" "$T" run --caps /srv/n.caps --caps-subject alone -- "$O" plain /srv/n.caps none /srv/in/a

	echo "# within a session, by the command and by itself"
	expect 0 '^ok EACCES$' "$@" "$T" run --caps /srv/n.caps -- "$O" plain /srv/n.caps alone /srv/out/a
	expect 0 '^ok ok$' "$@" "$T" run --caps /srv/n.caps -- "$O" plain /srv/n.caps alone /srv/in/a
	expect 0 '^/srv/out/a: Permission denied' "$@" "$T" run --caps /srv/n.caps -- \
		"$T" run --caps /srv/n.caps --caps-subject reader -- "$PWD/narrow" /srv/n.caps alone /srv/in/a /srv/out/a
}

echo "## root"
nnp=()
all env
# root keeps what it has: no_new_privs is for others
expect 0 '^ok first EACCES thread EACCES ok EACCES nnp 0$' "$O" privileges /srv/n.caps reader /srv/out/a

echo "## another user"
nnp=(setpriv --no-new-privs)
all setpriv --reuid 1000 --regid 1000 --clear-groups
# the thread that had not given up new privileges: nobody is limited; when it is gone, the one that has is
expect 0 '^EPERM \(a caller that is not root gives up new privileges first, in each thread .*\) first ok thread ok ok EACCES nnp 1$' \
	setpriv --reuid 1000 --regid 1000 --clear-groups "$O" privileges /srv/n.caps reader /srv/out/a

echo "## what there may be"
expect 0 '^EBUSY \(there are too many sessions: .*\) 64 began, the next user.s too, root.s too$' "$O" sessions /srv/n.caps 65 2000
# all users together, of which an eighth is left for root: a process each, which takes minutes
[ "${CROWD:-}" = "" ] || expect 0 '^EBUSY \(there are too many sessions: .*\) 3584 began, EBUSY .* the next user.s not, root.s too$' "$O" crowd /srv/n.caps 3600 2000
"$T" run --caps /srv/n.caps --caps-subject alone -- "$O" wait - - - &
holder=$!
expect 0 '^EBUSY \(there is no room for more capability files of this user.*\) 128 files, another user.s too, root.s too$' \
	"$O" files /srv/n.caps 140 3000
kill $holder

echo "# records, of a session that is over"
expect 0 '^ok EACCES$' "$O" plain /srv/n.caps reader /srv/out/a
soon 0 'as reader may not \{ read \} /srv/out/a' "$T" why
expect 0 '"caps":\{"session":[0-9]+,"subject":"reader","file":"/srv/n.caps:1","why":"missing"\}' "$T" log --json -n 20
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
