#!/bin/bash
# The package's life on a Debian: installed, configured, upgraded to another build under
# enforcement, restarted with a policy that is wrong, removed, purged.
set -u
cd /payload || exit
# shellcheck source=tests/day/lib.sh
. ./lib.sh

POLICY=/etc/tidegate/policy.plm

status_has() {
	tidegate status | tee /dev/stderr | grep -q "$1"
}

# Waits for what the watcher of the policy does.
soon() {
	for _ in $(seq 60); do
		if "$@"; then return 0; fi
		sleep 0.5
	done
	return 1
}

daemon() {
	systemctl show -p MainPID --value tidegate.service
}

killed() {
	local before
	before=$(daemon)
	kill -9 "$before"
	refused # by the monitor alone
	soon daemon_is_another "$before" && soon status_has 'daemon: *running'
}

daemon_is_another() {
	[ "$(daemon)" -gt 0 ] && [ "$(daemon)" != "$1" ]
}

# Is enforced now, whoever runs?
refused() {
	! tidegate run --level untrusted -- sh -c 'echo x > /etc/forged' 2>/dev/null && [ ! -e /etc/forged ]
}

metrics() {
	curl -s http://127.0.0.1:9478/metrics | tee /dev/stderr | grep -q '^tidegate_up 1'
}

# The image's dpkg leaves manuals out.
manual() {
	local dir=/tmp/manual
	dpkg-deb -x ./tidegate_0.1.0_amd64.deb "$dir"
	man -P cat -l "$dir/usr/share/man/man5/tidegate.plm.5.gz" | grep -q child-of &&
		man -P cat -l "$dir/usr/share/man/man1/tidegate-why.1.gz" | grep -q refusal
}

# The same package of a version to come, whose monitor is another build's.
next_version() {
	local build program dir=/tmp/next
	build=$(find /sys/fs/bpf/tidegate/maps -name 'build-*' -printf '%f\n')
	dpkg-deb -R ./tidegate_0.1.0_amd64.deb "$dir"
	sed -i 's/^Version: .*/Version: 99.0/' "$dir/DEBIAN/control"
	for program in tidegate tidegated; do
		grep -q "${build#build-}" "$dir/usr/bin/$program" || return
		sed -i "s/${build#build-}/0123456789abcdef/g" "$dir/usr/bin/$program"
	done
	echo '# what the next version has to say' >>"$dir/etc/tidegate/policy.plm"
	dpkg-deb -b --root-owner-group "$dir" /tmp/tidegate_99.deb
}

wrong_policy() {
	echo 'sytem /etc' >>$POLICY
	soon in_journal "policy.plm:$(wc -l <$POLICY)"
}

in_journal() {
	journalctl --no-pager -u tidegate-reload.service -u tidegate.service | grep -q "$1"
}

enforce() {
	sed -i '/^mode permissive/d' $POLICY
	soon status_has '(enforcing)'
}

upgraded() {
	DEBIAN_FRONTEND=noninteractive dpkg --force-confold -i /tmp/tidegate_99.deb
}

keeps_file() {
	grep -q 'sytem /etc' $POLICY && [ -e $POLICY.dpkg-dist ]
}

case $boot in
0)
	try "multi-user" systemctl is-system-running --wait
	try "install" dpkg -i ./*.deb
	try "it runs, and only records" status_has '(permissive)'
	try "enabled for the next boot" systemctl is-enabled tidegate.service tidegate-reload.path
	try "manual" manual
	try "completions" bash -c '. /usr/share/bash-completion/completions/tidegate; complete -p tidegate'
	try "metrics are served" soon metrics
	try "the lab's program is found" sh -c 'tidegate lab list | grep -q tidegate'
	try "a saved policy is in force" enforce
	try "enforced" refused
	try "a wrong policy is told of" wrong_policy
	try "and the one before stays" status_has '(enforcing)'
	try "a killed daemon comes back; enforcement stays" killed
	refuse "removal by who fell" tidegate run --level untrusted -- dpkg -r tidegate
	try "enforced after that" refused
	try "a version to come" next_version
	try "upgrade" upgraded
	try "enforced after it" refused
	try "the program is the new one" sh -c 'dpkg-query -W tidegate | grep -q 99.0'
	try "the monitor is the old one" sh -c 'ls /sys/fs/bpf/tidegate/maps | grep build-; [ ! -e /sys/fs/bpf/tidegate/maps/build-0123456789abcdef ]'
	try "the daemon is the old one" [ "$(readlink "/proc/$(daemon)/exe")" = /var/lib/tidegate/tidegated ]
	try "commands work on" sh -c 'tidegate ps && tidegate stats && tidegate status && tidegate why'
	try "the changed policy is the administrator's" keeps_file
	try "no service failed but the reload" sh -c '! systemctl --failed --no-legend --plain | grep -v tidegate-reload'
	systemctl reboot
	sleep 1000
	;;
1)
	try "multi-user, the policy being wrong" sh -c 'systemctl is-system-running --wait; systemctl is-active multi-user.target tidegate.service'
	try "enforcing what was last in force" status_has '(enforcing)'
	try "enforced" refused
	try "told of" in_journal 'last in force'
	try "the monitor is the new one" test -e /sys/fs/bpf/tidegate/maps/build-0123456789abcdef
	try "removal" dpkg -r tidegate
	try "nothing is enforced any more" test ! -e /sys/fs/bpf/tidegate
	try "the policy is still there" test -e $POLICY
	try "purge" dpkg -P tidegate tidegate-exporter tidegate-lab
	try "nothing is left" sh -c '! ls -d /etc/tidegate /var/lib/tidegate /var/log/tidegate /run/tidegate /etc/default/tidegate 2>/dev/null'
	finish
	;;
esac
