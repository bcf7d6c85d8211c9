#!/bin/bash
# Power cuts under `workstation`: what low subjects made stays low, whether or not anybody had
# written it down, and the machine comes back enforcing; also in the middle of reloads and forks.
# So it is with a disk that is mounted later, or in another boot only.
set -u
cd /payload || exit
# shellcheck source=tests/day/lib.sh
. ./lib.sh

SRC=/home/alice/src
DISK=$SRC/disk
IMAGE=/var/lib/disk.img

put_in_force() {
	mkdir -p $SRC/untrusted $DISK || return
	cp ./disk.img $IMAGE && mount -o loop $IMAGE $DISK || return
	chown alice:alice $SRC $SRC/untrusted $DISK
	take_preset workstation || return
	# the preset has other levels than the one that is in force
	tidegate stop && systemctl restart tidegate
}

# By another device's number than before.
mount_late() {
	truncate -s 64M "$IMAGE.other" && losetup --find "$IMAGE.other" && mount -o loop $IMAGE $DISK
}

# As `at`, once it has been seen to.
soon_at() {
	local tries
	for tries in $(seq 60); do
		at "$@" 2>/dev/null && return
		sleep 1
	done
	echo "not after $tries seconds"
	at "$@"
}

low() {
	tidegate run --level untrusted -- runuser -u alice -- sh -c "$1"
}

user() {
	tidegate run --level user -- runuser -u alice -- sh -c "$1"
}

# As if somebody had pulled the plug: nothing is written that has not been.
cut() {
	echo "$1" >"$STATE/cut"
	sync -f "$STATE/cut"
	echo b >/proc/sysrq-trigger
	sleep 1000
}

# Reloads, forks and files, until the end.
storm() {
	(while :; do tidegate reload --policy /etc/tidegate/policy.plm; done >/dev/null 2>&1 &)
	(while :; do low "echo x > $SRC/storm; sync $SRC/storm; mv $SRC/storm $SRC/storm.\$\$"; done >/dev/null 2>&1 &)
	sleep 8
}

case $boot in
0)
	try "multi-user" systemctl is-system-running --wait
	try "install" put_in_force
	try "low files that are written down" low "cd $SRC && mkdir dir && echo low | tee old dir/old renamed >/dev/null"
	try "a user's file" user "echo mine | tee $SRC/mine >$DISK/mine"
	try "a low file on another disk" low "echo low > $DISK/old"
	sleep 5
	# its end writes the levels down, its start goes on
	try "the levels are written down" systemctl restart tidegate
	sleep 3
	try "a low file to be promoted" low "echo low > $SRC/moved"
	try "promoted" tidegate promote --level user $SRC/moved
	try "and moved lower, which is not written down" user "mv $SRC/moved $SRC/untrusted/moved"
	try "what has two names does not fall" user "cd $SRC && ! ln mine untrusted/mine"
	try "low files that are not" low "cd $SRC && echo low | tee new dir/new disk/new >/dev/null; ln -s new link; mkfifo fifo; mv renamed again; sync"
	cut "in rest"
	;;
1)
	try "comes back" systemctl is-system-running --wait
	try "enforcing" enforcing
	try "what was written down is low" at untrusted $SRC/old $SRC/dir $SRC/dir/old
	try "what was not is low" at untrusted $SRC/new $SRC/dir/new $SRC/link $SRC/fifo $SRC/again
	try "what fell after it was promoted is low" at untrusted $SRC/untrusted/moved
	try "what nobody touched is the user's" at user $SRC/mine
	try "told of" sh -c 'journalctl -b -u tidegate --no-pager | grep "went down of a sudden"'
	try "a disk comes late" mount_late
	try "what was written down of it is low" soon_at untrusted $DISK/old
	try "what was not is low" soon_at untrusted $DISK/new
	try "what nobody touched on it is the user's" at user $DISK/mine
	try "a low file on it" low "echo low > $DISK/late; sync"
	storm
	cut "in the storm"
	;;
2)
	try "comes back from the storm" systemctl is-system-running --wait
	try "enforcing" enforcing
	try "whatever the storm left is low" sh -c "ls $SRC/storm* && tidegate ls -d $SRC/storm* | awk '\$1 != \"untrusted\" { print; bad = 1 } END { exit bad }'"
	try "what was low is low" at untrusted $SRC/old $SRC/new $SRC/link
	try "what nobody touched is the user's" at user $SRC/mine
	tidegate stop
	cp /var/lib/tidegate/given /var/lib/tidegate/given.kept
	rm -f /var/lib/tidegate/given /var/lib/tidegate/clean /var/lib/tidegate/last.bundle
	try "as for the first time" systemctl start tidegate
	try "a low file in the first minute" low "echo low > $SRC/first; sync"
	cut "in the first minute"
	;;
3)
	try "comes back from the first minute" systemctl is-system-running --wait
	try "what the first minute made is low" at untrusted $SRC/first
	tidegate stop
	mv /var/lib/tidegate/given.kept /var/lib/tidegate/given
	try "with what was known before" systemctl start tidegate
	date -s "1 hour ago" >/dev/null
	sleep 3
	try "its time is not behind the clock" test -e /var/lib/tidegate/steady
	try "a low file after the clock was set back" low "echo low > $SRC/back; sync"
	cut "with the clock set back"
	;;
4)
	try "comes back from another time" systemctl is-system-running --wait
	try "what was made an hour earlier, later, is low" at untrusted $SRC/back
	try "what was low is low" at untrusted $SRC/old $SRC/new $SRC/link
	systemctl reboot
	sleep 1000
	;;
5)
	try "comes back from a restart" systemctl is-system-running --wait
	try "nothing is suspected after a clean end" sh -c '! journalctl -b -u tidegate --no-pager | grep "went down of a sudden"'
	try "what was low is low" at untrusted $SRC/old $SRC/new $SRC/link $SRC/fifo $SRC/back
	try "a disk comes that was away for three boots" mount_late
	try "what was low on it is low" soon_at untrusted $DISK/old $DISK/new $DISK/late
	try "what nobody touched on it is the user's" at user $DISK/mine
	try "what changed in the hour that came twice is low, too" at untrusted $SRC/mine
	finish
	;;
esac
