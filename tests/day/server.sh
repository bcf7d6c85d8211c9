#!/bin/bash
# A day of a Debian server under `server`, enforcing from early boot: everything is to work,
# and nothing but what docs/how-to/compatibility.md names to be refused. It restarts itself twice: under
# enforcement, and into a newer kernel.
set -u
cd /payload || exit
# shellcheck source=tests/day/lib.sh
. ./lib.sh
# shellcheck source=tests/day/repository.sh
. ./repository.sh

# What stays refused (docs/how-to/compatibility.md).
NGINX="nginx untrusted may not remove /run/nginx.pid"
PHP="php8.4-fpm-reop untrusted may not signal process N"

# ---- Setting up, before there is any Tidegate ---------------------------------
set_up() {
	other_machine
	mkdir -p /srv/remote/.ssh /home/alice/.ssh
	ssh-keygen -q -t ed25519 -N '' -f /srv/remote/.ssh/id
	cp /srv/remote/.ssh/id.pub /home/alice/.ssh/authorized_keys
	chown -R alice:alice /home/alice
	repository 1.0
	# as apt would have fetched them
	mv /srv/upgrade/*.deb /var/cache/apt/archives/

	cat >/etc/nginx/sites-available/default <<-'SITE'
		server {
			listen 80;
			root /var/www/html;
			index index.php;
			location ~ \.php$ {
				include snippets/fastcgi-php.conf;
				fastcgi_pass unix:/run/php/php-fpm.sock;
			}
		}
	SITE
	echo '<?php echo "hello from ", php_sapi_name();' >/var/www/html/index.php
	echo static >/var/www/html/static.txt
	runuser -u postgres -- createuser alice
	runuser -u postgres -- createdb --owner alice shop
	echo '* * * * * root date >> /var/log/every-minute' >/etc/cron.d/every-minute
}

put_in_force() {
	take_preset server || return
	# what runs has the top level until it is started anew
	systemctl restart nginx php8.4-fpm postgresql@17-main ssh cron rsyslog
	systemctl restart tidegate-reload
}

# ---- The day --------------------------------------------------------------------
as_alice() {
	remote ssh -q -i /srv/remote/.ssh/id -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=/srv/remote/.ssh/known_hosts "alice@$HERE" "$@"
}

serves() {
	remote curl -sf "http://$HERE/static.txt" | grep -q static &&
		remote curl -sf "http://$HERE/" | grep -q 'hello from fpm-fcgi'
}

reloads() {
	systemctl reload nginx php8.4-fpm && serves
}

bench() {
	runuser -u alice -- /usr/lib/postgresql/17/bin/pgbench -q -i -s 1 shop &&
		runuser -u alice -- /usr/lib/postgresql/17/bin/pgbench -c 4 -j 2 -t 50 shop
}

cron_ran() {
	for _ in $(seq 70); do
		[ ! -s /var/log/every-minute ] || return 0
		sleep 1
	done
	return 1
}

users() {
	adduser --disabled-password --comment Bob bob && echo 'bob:a long password' | chpasswd &&
		usermod -aG www-data bob && runuser -u bob -- sh -c 'echo mine > ~/note; cat ~/note' &&
		passwd -l bob && deluser --remove-home bob
}

# By a trusted copy of tar, as base.plm says, and by what everybody uses for the rest.
backup() {
	local tar=/usr/local/lib/backup/tar
	install -D /usr/bin/tar $tar &&
		$tar -C / -czf /var/backups/system.tar.gz etc home var/www &&
		$tar -C / -dzf /var/backups/system.tar.gz &&
		mkdir -p /tmp/restored && $tar -C /tmp/restored -xzf /var/backups/system.tar.gz &&
		diff -r /var/www /tmp/restored/var/www &&
		runuser -u postgres -- pg_dump shop >/var/backups/shop.sql &&
		runuser -u postgres -- createdb copy && runuser -u postgres -- psql -q copy </var/backups/shop.sql &&
		rsync -a --delete /var/www/ /var/backups/www/ && rm /var/www/html/static.txt &&
		rsync -a /var/backups/www/ /var/www/ && serves
}

pulled() {
	# by a machine that keeps copies
	remote rsync -a -e "ssh -q -i /srv/remote/.ssh/id -o UserKnownHostsFile=/srv/remote/.ssh/known_hosts" "alice@$HERE:/var/www/" /srv/remote/www/
}

case $boot in
0)
	try "multi-user" systemctl is-system-running --wait
	try "set up" set_up
	try "install the package, put the policy in force" put_in_force
	mark
	systemctl reboot
	sleep 1000
	;;
1)
	try "boots to multi-user" systemctl is-system-running --wait
	try "enforcing" enforcing
	for unit in network-pre.target ssh.service cron.service nginx.service postgresql@17-main.service systemd-logind.service; do
		try "before $unit" before "$unit"
	done
	try "no service failed" no_failed_units
	try "logrotate, before the first request" logrotate -f /etc/logrotate.conf
	try "refused at boot: telling php's master, which has not fallen" refusals "$PHP"
	other_machine
	serve 8000 /srv/remote/repository
	try "ssh login with a key" as_alice 'id && echo note > ~/note && cat ~/note'
	try "sudo over ssh" as_alice 'sudo id && sudo -l'
	try "apt update" apt-get update
	try "apt install" apt-get install -y lab-hello
	try "what was installed runs" lab-hello
	repository 1.1
	try "unattended upgrade" unattended
	try "web server" serves
	try "reload" reloads
	try "PostgreSQL under load" bench
	try "cron" cron_ran
	try "crontab" sh -c 'echo "0 4 * * * true" | crontab -u alice - && crontab -u alice -l'
	try "logrotate" sh -c 'logrotate -f /etc/logrotate.conf && sleep 1 && systemctl is-active nginx rsyslog'
	try "journald" sh -c 'journalctl --rotate && logger -t day hello && sleep 2 && journalctl -t day --no-pager | grep hello && journalctl --vacuum-time=1s'
	try "web server after logrotate" serves
	try "nothing refused by then" refusals
	try "web server stopped" sh -c 'systemctl stop nginx && [ ! -e /run/nginx.pid ]'
	try "refused: what systemd does then" refusals "$NGINX"
	try "and started" sh -c 'systemctl start nginx && [ -e /run/nginx.pid ]'
	try "it serves" serves
	try "users" users
	try "backup and restore" backup
	try "backup by rsync over ssh" pulled
	try "timers" sh -c 'systemctl start systemd-tmpfiles-clean.service dpkg-db-backup.service man-db.service apt-daily.service'
	try "man" sh -c 'man -P cat ls | head -3'
	try "no service failed" no_failed_units
	try "nothing else refused all day" refusals
	try "kernel upgrade" sh -c 'DEBIAN_FRONTEND=noninteractive apt-get install -y /var/cache/apt/archives/linux-*.deb'
	try "nothing refused by the upgrade" refusals
	new=$(find /boot -name 'vmlinuz-*' ! -name "*-$(uname -r)")
	try "load it" kexec -l "$new" --initrd="/boot/initrd.img-${new#*vmlinuz-}" --append="$(cat /proc/cmdline) root=LABEL=root rw"
	uname -r >"$STATE/kernel"
	mark
	systemctl kexec
	sleep 1000
	;;
2)
	try "boots to multi-user" systemctl is-system-running --wait
	try "another kernel" [ "$(uname -r)" != "$(cat "$STATE/kernel")" ]
	try "enforcing" enforcing
	try "before the network" before network-pre.target
	try "no service failed" no_failed_units
	try "refused at shutdown and boot: what systemd does" refusals "$NGINX"
	finish
	;;
esac
