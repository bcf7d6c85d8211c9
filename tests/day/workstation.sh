#!/bin/bash
# A day of who writes software on a Debian workstation under `workstation`, enforcing from
# early boot: everything is to work, nothing to be refused, and what came from elsewhere to
# stay untrusted.
set -u
cd /payload || exit
# shellcheck source=tests/day/lib.sh
. ./lib.sh
# shellcheck source=tests/day/repository.sh
. ./repository.sh
# shellcheck source=tests/day/registries.sh
. ./registries.sh

boot=$(cat "$STATE/boot" 2>/dev/null || echo 0)
echo $((boot + 1)) >"$STATE/boot"
echo "boot $boot: Linux $(uname -r)"

# ---- Setting up, before there is any Tidegate ---------------------------------
set_up() {
	other_machine
	mkdir -p /home/alice/.ssh /home/alice/src /home/alice/Downloads /home/alice/.config/pip
	ssh-keygen -q -t ed25519 -N '' -f /home/alice/.ssh/id_ed25519
	cp /home/alice/.ssh/id_ed25519.pub /home/alice/.ssh/authorized_keys
	mkdir -m 777 /srv/remote/incoming
	printf 'Host *\n\tStrictHostKeyChecking accept-new\n' >/home/alice/.ssh/config
	printf '[global]\nindex-url = http://%s:8000/simple\ntrusted-host = %s\n' "$REMOTE" "$REMOTE" >/home/alice/.config/pip/pip.conf
	printf 'registry=http://%s:8000/npm/\nupdate-notifier=false\nfund=false\naudit=false\n' "$REMOTE" >/home/alice/.npmrc
	printf '[user]\n\tname = Alice\n\temail = alice@here\n[init]\n\tdefaultBranch = main\n' >/home/alice/.gitconfig
	git_server
	python_registry
	node_registry
	rust_registry
	repository 1.0
	chown -R alice:alice /home/alice
	loginctl enable-linger alice
	# a container's root
	mkdir -p /var/lib/machines/box/bin /var/lib/machines/box/etc
	cp /bin/busybox /var/lib/machines/box/bin/busybox
	ln -s busybox /var/lib/machines/box/bin/sh
	echo 'NAME=box' >/var/lib/machines/box/etc/os-release
}

put_in_force() {
	dpkg -i ./tidegate_*.deb || return
	sed -i '/^mode permissive/d; s/^include .*/include workstation/' /etc/tidegate/policy.plm
	harness_rules >>/etc/tidegate/policy.plm
}

# ---- The day --------------------------------------------------------------------
# As who has logged in at the console.
alice() {
	systemd-run --quiet --wait --pipe --property=PAMName=login --property=User=alice \
		--property=WorkingDirectory=~ bash -lc "$1"
}

case $boot in
0)
	try "multi-user" systemctl is-system-running --wait
	try "set up" set_up
	try "install the package" put_in_force
	systemctl reboot
	sleep 1000
	;;
1)
	try "boots to multi-user" systemctl is-system-running --wait
	mark
	try "enforcing" enforcing
	try "no service failed" no_failed_units
	other_machine
	serve 8000 "$WEB"
	serve 8001 /srv/remote/repository
	remote /usr/sbin/sshd -f /srv/remote/sshd_config

	try "shells" alice 'bash -ic "type -t cd" && zsh -ic "whence -w cd" && dash -c "echo dash"'
	try "the session is the user's" alice 'tidegate status; sleep 0.1; cat ~/.profile >/dev/null; true'
	try "vim" alice 'vim.tiny -es -u NONE -c "normal iint x;" -c "wq ~/src/x.c" && cat ~/src/x.c'
	try "nano" alice 'printf "\033[200~hello\033[201~\017\n\030" | TERM=xterm script -qec "nano ~/note" /dev/null; cat ~/note'
	try "dotfiles" alice 'echo "alias l=ls" >> ~/.bashrc && git config --global alias.st status'
	try "git" alice 'git init -q ~/src/mine && cd ~/src/mine && echo 1 > a && git add a && git commit -qm one && git log --oneline'
	try "git clone over ssh" alice 'git clone -q git@'$REMOTE':/srv/remote/git/hello.git ~/src/hello'
	try "make" alice 'make -C ~/src/hello && ~/src/hello/hello'
	try "git push over ssh" alice 'cd ~/src/hello && echo two > two && git add two && git commit -qm two && git push -q'
	try "git clone over http" alice 'git clone -q http://'$REMOTE':8000/hello.git ~/src/cloned && make -C ~/src/cloned'
	try "what came is untrusted" at untrusted /home/alice/src/cloned/main.c /home/alice/src/cloned/hello
	try "what was made here is the user's" at user /home/alice/src/mine/a /home/alice/src/x.c
	try "pip" alice 'python3 -m venv ~/src/venv && ~/src/venv/bin/pip install -q hello-lab && ~/src/venv/bin/python -m hello_lab'
	try "what pip brought is untrusted" at untrusted "/home/alice/src/venv/lib/python3.13/site-packages/hello_lab.py"
	try "npm" alice 'mkdir -p ~/src/app && cd ~/src/app && npm init -y >/dev/null && npm install hello-lab && node node_modules/hello-lab/index.js'
	try "what npm brought is untrusted" at untrusted /home/alice/src/app/node_modules/hello-lab/index.js /home/alice/src/app/node_modules/hello-lab/installed
	try "cargo" alice 'cargo new -q ~/src/rust && cd ~/src/rust && mkdir -p .cargo &&
		printf "[source.crates-io]\nreplace-with = \"lab\"\n[source.lab]\nregistry = \"sparse+http://'$REMOTE':8000/crates/\"\n" > .cargo/config.toml &&
		printf "hello-lab = \"1\"\n" >> Cargo.toml && echo "fn main() { println!(\"{}\", hello_lab::hello()); }" > src/main.rs && cargo build -q && target/debug/rust'
	try "what cargo built is untrusted" at untrusted /home/alice/src/rust/target/debug/rust
	try "tmux" alice 'tmux -f /dev/null new-session -d "sleep 60" && tmux list-sessions && tmux kill-server'
	try "a text browser" alice 'lynx -dump http://'$REMOTE':8000/ | head -5'
	try "a download" alice 'curl -s -o ~/Downloads/main.c http://'$REMOTE':8000/hello.git/HEAD && cat ~/Downloads/main.c'
	try "it is untrusted" at untrusted /home/alice/Downloads/main.c
	try "promoted" sh -c 'tidegate promote /home/alice/Downloads/main.c --level user'
	try "it is the user's" at user /home/alice/Downloads/main.c
	try "scp" alice 'scp -q ~/src/x.c alice@'$REMOTE':/srv/remote/incoming/'
	try "a user's unit" alice 'XDG_RUNTIME_DIR=/run/user/1000 systemctl --user is-system-running --wait'
	try "unshare" alice 'unshare --user --map-root-user --mount --pid --fork sh -c "mount -t tmpfs none /mnt && echo in > /mnt/x && cat /mnt/x"'
	try "systemd-nspawn" systemd-nspawn --quiet --directory=/var/lib/machines/box --private-network sh -c 'busybox echo boxed'
	try "podman" alice 'tar -C /var/lib/machines/box -c . | podman import -q - box && podman run --rm --network=none box busybox echo in a container'
	try "apt, as root" sh -c "sed -i s/:8000/:8001/ /etc/apt/sources.list && apt-get update && apt-get install -y lab-hello && lab-hello"
	try "no service failed" no_failed_units
	try "nothing refused all day" refusals

	# what came from elsewhere is harmless all the same
	refuse "a script of the network's at her dotfiles" alice 'cat ~/src/cloned/main.c >/dev/null; echo evil >> ~/.bashrc'
	refuse "and at her keys" alice 'cat ~/src/cloned/main.c >/dev/null; cat ~/.ssh/id_ed25519'
	finish
	;;
esac
