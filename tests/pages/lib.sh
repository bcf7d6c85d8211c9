# shellcheck shell=bash
# What the pages' preparations share: what a reader already has where a page begins. Sourced by check.sh, at the top.
# shellcheck disable=SC2034 # what check.sh reads

# The files of a package, as docs/start/install.md lists them, by hand: a package takes a build of its own (tests/day/package.sh).
installed() {
	install "$HERE/tidegate" "$HERE/tidegated" /usr/bin/
}
with_units() {
	installed
	install -m 644 "$HERE"/tidegate{.service,-reload.path,-reload.service} /etc/systemd/system/
	install -D -m 644 "$HERE/default" /etc/default/tidegate
	install -D -m 644 "$HERE/policy.plm" /etc/tidegate/policy.plm
	systemctl daemon-reload
}

# in_force ARG…: a policy, put in force by these arguments of `start`
in_force() {
	"$T" start "$@" </dev/null >/dev/null 2>&1
}

# The units, with this policy in force: with_policy LINE…
with_policy() {
	with_units
	printf '%s\n' "$@" >/etc/tidegate/policy.plm
	systemctl enable --now tidegate.service tidegate-reload.path >/dev/null 2>&1
}

# as_alice COMMAND: by alice, before there is a page's shell of hers
as_alice() {
	setpriv --reuid alice --regid alice --init-groups env -C /home/alice HOME=/home/alice bash -c "$1" </dev/null >/dev/null 2>&1
}

# What `make setup static` leaves in the tree, where alice begins. The machine has neither the compiler nor a network to fetch it.
built() {
	local tree=/home/alice/tidegate
	install -D -t $tree/target/x86_64-unknown-linux-gnu/release "$HERE/tidegate" "$HERE/tidegated"
	printf 'setup static:\n\t@echo "$@: it was done before"\n' >$tree/Makefile
	chown -R alice: $tree
	at["alice"]=$tree
}

# program NAME LINE…: a script in the place of a program that a page's reader has
program() {
	local path=/usr/local/bin/$1
	shift
	printf '%s\n' '#!/bin/sh' "$@" >"$path"
	chmod 755 "$path"
}
