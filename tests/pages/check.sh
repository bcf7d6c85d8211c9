#!/bin/bash
# The pages of the documentation, each as its reader goes through it: the commands one after another, and what they print.
#   check.sh [PAGE…]     these, or all
# Runs as root in a whole Debian, beside the programs, the pages and pages.py, which says how a page is written. PAGE.sh prepares what
# a page's reader has already, and names the reader. The last line is `N passed, N failed`.
#
# This shell stays at the top: while a policy is in force it reads nothing that a command has printed, and looks only whether
# a file is there. A page is judged when its policy is out of the kernel.
set -u
cd "$(dirname "$0")" || exit 1
HERE=$PWD
T=$HERE/tidegate
DIR=/tmp/pages # any level makes files there
KEPT=/root-kept
RESULTS=/run/pages-results
# shellcheck source=tests/expect.sh
. ./expect.sh
# shellcheck source=tests/pages/lib.sh
. ./lib.sh

declare -A shells at

# What is as it was before each page: readers' homes, and no Tidegate.
keep() {
	mkdir -p $KEPT
	rsync -a --delete /home/alice /root $KEPT/
}
restore() {
	systemctl disable --now tidegate-reload.path tidegate.service >/dev/null 2>&1 </dev/null
	[ ! -d /sys/fs/bpf/tidegate ] || "$T" stop </dev/null
	local pid
	for pid in "${shells[@]}"; do
		kill -9 -- "-$pid" 2>/dev/null
	done
	rsync -a --delete $KEPT/alice/ /home/alice/
	rsync -a --delete $KEPT/root/ /root/
	pkill -x nginx
	systemctl restart nginx
	rm -rf /etc/tidegate /etc/default/tidegate /etc/systemd/system/tidegate* /var/lib/tidegate /var/log/tidegate \
		/usr/bin/tidegate{,d} /usr/local/bin/* /usr/local/lib/* /srv/*
	systemctl daemon-reload
}

# shell_of READER: starts the reader's shell, unless it runs. No pipe is passed on: a process that reads it would fall with the shell.
shell_of() {
	[ -z "${shells[$1]:-}" ] || return 0
	local home=/root numbers
	[ "$1" = root ] || home=/home/$1
	mapfile -t numbers < <(sed -n "s/ $1\$//p" $DIR/commands/commands)
	setsid setpriv --reuid "$1" --regid "$1" --init-groups env -i -C "${at[$1]:-$home}" HOME="$home" USER="$1" LOGNAME="$1" SHELL=/bin/bash LANG=C.UTF-8 \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash "$HERE/reader.sh" $DIR "${numbers[@]}" \
		</dev/null >/dev/null 2>&1 &
	shells[$1]=$!
}

# room N: where the command's output goes, at the lowest level there is, as a terminal may be written to from any level. A
# descriptor of something higher would be taken from a command that falls.
room() {
	local out=$DIR/said/$1.out low
	low=$("$T" status --json 2>/dev/null </dev/null | sed -n 's/.*"levels":\["\([^"]*\)".*/\1/p')
	if [ -n "$low" ]; then
		"$T" run --level "$low" -- sh -c "umask 0; : >$out" </dev/null >/dev/null 2>&1
	fi
	[ -e "$out" ] || install -m 666 /dev/null "$out"
}

# The command has ended.
ended() {
	[ -e $DIR/said/"$1".ok ] || [ -e $DIR/said/"$1".no ]
}

# The log has the newest refusal: a reader types slower than the daemon writes.
logged() {
	local newest
	newest=$("$T" why --json 2>/dev/null </dev/null | grep -o '"id":[0-9]*' | head -n 1)
	[ -n "$newest" ] || return 0
	for _ in $(seq 50); do
		! "$T" log --json 2>/dev/null </dev/null | grep -q "^{$newest," || return 0
		sleep 0.1
	done
}

# When the unit that follows the policy's file has ended last.
reloaded() {
	systemctl show -p InactiveEnterTimestampMonotonic --value tidegate-reload.service
}
another_reload() {
	[ "$(reloaded)" != "$1" ]
}

# step N READER: has a command done, and waits for it and what follows; whether it came to its end in ten minutes.
step() {
	local before
	before=$(reloaded)
	room "$1"
	shell_of "$2"
	: >$DIR/commands/"$1".go
	until_ ended "$1" || return
	if [ /etc/tidegate/policy.plm -nt $DIR/commands/"$1".go ] && systemctl -q is-active tidegate-reload.path; then
		until_ another_reload "$before"
	fi
	logged
}

# In a shell of its own, as a page's preparation defines what it likes.
play() (
	local page=$1 n who
	reader=root
	echo "# $page"
	mkdir -p $DIR/commands $DIR/said
	chmod 777 $DIR/said
	if [ -e "$page.sh" ]; then
		# shellcheck source=/dev/null
		. "./$page.sh"
	fi
	python3 pages.py commands "$page.md" $DIR/commands
	sed -i "s/ -\$/ $reader/" $DIR/commands/commands
	while read -r n who; do
		step "$n" "$who" || break
	done <$DIR/commands/commands
	restore
	python3 pages.py judge "$page.md" $DIR/said | tee -a $RESULTS
	rm -rf $DIR
)

systemctl is-system-running --wait >/dev/null
keep
: >$RESULTS
if [ $# -eq 0 ]; then
	for page in *.md; do
		set -- "$@" "${page%.md}"
	done
fi
for page in "$@"; do
	play "$page"
done

passed=$(grep -c '^ok ' $RESULTS)
failed=$(grep -c '^FAILED ' $RESULTS)
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
