#!/bin/bash
# A day of a developer on a Debian workstation under `workstation`, enforcing from
# early boot: everything is to work, nothing but what docs/how-to/compatibility.md names to be refused,
# and what came from elsewhere to stay untrusted and harmless.
set -u
cd /payload || exit
# shellcheck source=tests/day/lib.sh
. ./lib.sh
# shellcheck source=tests/day/repository.sh
. ./repository.sh
# shellcheck source=tests/day/registries.sh
. ./registries.sh

BOX=/var/lib/machines/box
STORAGE=/home/alice/.local/share/containers/storage

# ---- Setting up, before there is any Tidegate ---------------------------------
set_up() {
	other_machine
	mkdir -p /home/alice/.ssh /home/alice/.cache /home/alice/src/untrusted /home/alice/Downloads \
		/home/alice/.config/pip /home/alice/.config/containers
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
	# what docs/start/install.md says of a workstation
	echo 'kernel.io_uring_disabled = 1' >/etc/sysctl.d/60-io_uring.conf
	cat >/home/alice/.config/containers/containers.conf <<-'CONF'
		[containers]
		cgroups = "disabled"
		default_sysctls = []
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "file"
	CONF
	chown -R alice:alice /home/alice
	loginctl enable-linger alice
	# a container's root
	mkdir -p $BOX/usr/bin $BOX/usr/lib $BOX/etc
	cp /bin/busybox $BOX/usr/bin/busybox
	for applet in sh cat touch; do ln -s busybox $BOX/usr/bin/$applet; done
	ln -s usr/bin $BOX/bin
	echo 'NAME=box' >$BOX/usr/lib/os-release
	tar -C $BOX -cf /srv/remote/web/box.tar .
}

# ---- The day --------------------------------------------------------------------
# As a user that has logged in at the console.
alice() {
	systemd-run --quiet --wait --pipe --property=PAMName=login --property=User=alice \
		--property=WorkingDirectory=~ bash -lc "$1"
}

# In a terminal, typed.
edits() {
	# shellcheck disable=SC2016 # alice's shell's
	alice 'tmux -f /dev/null new-session -d "nano note" && sleep 2 && tmux send-keys hello C-o Enter && sleep 1 &&
		tmux list-sessions && tmux send-keys C-x && sleep 1 && grep hello note'
}

node_project() {
	# shellcheck disable=SC2016
	alice 'mkdir src/app && cd src/app && echo "{ \"dependencies\": { \"hello-lab\": \"^1.0.0\" } }" >package.json &&
		npm install && echo "require(\"hello-lab\")" >app.js && node app.js | grep "hello from npm"'
}

node_added() {
	alice 'mkdir src/new && cd src/new && npm install hello-lab && grep hello-lab package.json'
}

rust_project() {
	# shellcheck disable=SC2016
	alice 'cargo new -q src/rust && cd src/rust && mkdir .cargo &&
		printf "[source.crates-io]\nreplace-with = \"lab\"\n[source.lab]\nregistry = \"sparse+http://'$REMOTE':8000/crates/\"\n" >.cargo/config.toml &&
		echo "hello-lab = \"1\"" >>Cargo.toml && echo "fn main() { println!(\"{}\", hello_lab::hello()); }" >src/main.rs &&
		cargo build -q && target/debug/rust'
}

podman_runs() {
	alice 'curl -s -o Downloads/box.tar http://'$REMOTE':8000/box.tar && podman import -q Downloads/box.tar box &&
		podman run --rm --network=none -v ~/src:/mnt box sh -c "busybox echo boxed >/mnt/boxed" && cat src/boxed'
}

# What the user trusts, as it was.
trusted() {
	sha256sum /home/alice/{.bashrc,.profile,.npmrc,.gitconfig} /home/alice/.ssh/{authorized_keys,config,id_ed25519} \
		/home/alice/src/x.c /etc/{motd,passwd,sudoers}
}

kept() {
	trusted >/payload/kept && [ "$(wc -l </payload/kept)" -eq 11 ]
}

# Each attack came to its end, and changed and learned nothing.
unharmed() {
	local from
	trusted | diff /payload/kept - || return
	for from in git pip npm cargo podman; do
		[ -e /home/alice/src/attacked-by-$from ] && [ ! -s /home/alice/src/stolen-by-$from ] || return
	done
	pgrep -u alice -f 'systemd --user'
}

case $boot in
0)
	try "multi-user" systemctl is-system-running --wait
	try "set up" set_up
	try "install the package" take_preset workstation
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
	try "vim" alice 'vim.tiny -es -u NONE -c "normal iint x;" -c "wq! src/x.c"; cat src/x.c'
	try "nano in tmux" edits
	try "dotfiles" alice 'echo "alias l=ls" >>.bashrc && git config --global alias.st status'
	try "git" alice 'git init -q src/mine && cd src/mine && echo 1 >a && git add a && git commit -qm one && git log --oneline && git st'
	try "git clone over ssh" alice 'git clone -q git@'$REMOTE':/srv/remote/git/hello.git src/hello'
	try "make" alice 'make -C src/hello && src/hello/hello'
	try "git push over ssh" alice 'cd src/hello && echo two >two && git add two && git commit -qm two && git push -q && git pull -q'
	try "scp" alice 'scp -q src/x.c alice@'$REMOTE':/srv/remote/incoming/'
	try "a user's own unit" alice 'export XDG_RUNTIME_DIR=/run/user/1000; systemctl --user is-system-running --wait && systemd-run --user --wait -q --pipe cat .profile'
	try "cargo, of one's own" alice 'cargo new -q src/own && cd src/own && cargo run -q && cargo install -q --path . && ~/.cargo/bin/own'
	try "what was made here is the user's" at user /home/alice/src/mine/{a,.git/index} /home/alice/src/x.c /home/alice/note \
		/home/alice/src/hello/hello /home/alice/src/own/target/debug/own /home/alice/.cargo/bin/own
	try "unshare" alice 'unshare --user --map-root-user --mount --pid --fork sh -c "mount -t tmpfs none /mnt && echo in >/mnt/x && cat /mnt/x"'
	try "systemd-nspawn" systemd-nspawn --quiet --directory=$BOX --private-network sh -c 'busybox echo boxed'
	try "apt, as root" sh -c "sed -i s/:8000/:8001/ /etc/apt/sources.list && apt-get update && apt-get install -y lab-hello && lab-hello"
	try "a text browser" alice 'lynx -dump http://'$REMOTE':8000/ | grep hello.git'
	try "a download" alice 'curl -s -o Downloads/HEAD http://'$REMOTE':8000/hello.git/HEAD && cat Downloads/HEAD'
	try "it is untrusted" at untrusted /home/alice/Downloads/HEAD
	try "promoted" tidegate promote /home/alice/Downloads/HEAD --level user
	try "it is the user's" at user /home/alice/Downloads/HEAD
	try "git clone over http" alice 'cd src/untrusted && git clone -q http://'$REMOTE':8000/hello.git && cd hello && make && ./hello &&
		echo two >two && git add two && git commit -qm two && git pull -q'
	try "and wherever who clones is low" alice 'tidegate run --level untrusted -- git clone -q http://'$REMOTE':8000/hello.git src/cloned && make -C src/cloned'
	try "npm" node_project
	try "npm, a package named" node_added
	try "no service failed" no_failed_units
	try "nothing refused" refusals

	try "pip" alice 'python3 -m venv src/venv && src/venv/bin/pip install -q hello-lab && src/venv/bin/python -m hello_lab'
	try "refused: what pip had made before it connected" refusals \
		"pip untrusted may not remove /tmp/pip-"{build-tracker,ephem-wheel-cache,install}-RANDOM
	try "cargo" rust_project
	try "refused: locks that are the user's" refusals "cargo untrusted may not write /home/alice/.cargo/"{.global-cache,.package-cache,.package-cache-mutate}
	try "podman" podman_runs
	try "refused: buses and device nodes" refusals \
		{podman,exe}" untrusted may not connect /run/"{dbus/system_bus_socket,user/1000/bus} \
		"exe untrusted may not create $STORAGE/overlay/compat/upper/whiteout" \
		"fuse-overlayfs untrusted may not create $STORAGE/overlay/ID/diff/mnt/.wh..opq"
	try "npm, into what the user wrote" alice 'mkdir src/mine/app && cd src/mine/app && npm init -y >package && npm install hello-lab; ! grep hello-lab package.json && node -e "require(\"hello-lab\")"'
	try "refused: that" refusals "libuv-worker untrusted may not write /home/alice/src/mine/app/package.json"
	refuse "git clone over http among the user's own" alice 'git clone -q http://'$REMOTE':8000/hello.git src/half'
	mark

	try "what came is untrusted" at untrusted /home/alice/src/{untrusted/hello,cloned}/{main.c,hello,.git/HEAD} \
		/home/alice/src/{app,new,mine/app}/node_modules/hello-lab/{index.js,installed} \
		/home/alice/src/venv/lib/python3.13/site-packages/hello_lab.py /home/alice/src/rust/target/debug/rust \
		/home/alice/src/boxed $STORAGE
	try "what is trusted" kept
	try "git's attacks" alice 'make -C src/untrusted/hello attack'
	try "pip's attacks" alice 'src/venv/bin/python -m hello_lab attack'
	try "npm's attacks" alice 'node src/app/app.js attack'
	try "cargo's attacks" alice 'src/rust/target/debug/rust attack'
	try "podman's attacks" alice 'cp src/untrusted/hello/attack.sh src/ && podman run --rm --network=none -v ~:/root -e HOME=/root box sh /root/src/attack.sh podman'
	try "nothing came of them" unharmed
	finish
	;;
esac
