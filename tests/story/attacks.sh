# shellcheck shell=sh disable=SC2317
# What leftpad's install script tries. Sourced by play.sh; what each does is in
# package/postinstall.

attacks_on_alice() {
	install_that() { in_app pkg install leftpad "$@"; }

	attack bashrc .bashrc "add a line to ~/.bashrc" install_that bashrc
	attack rename 'rename .*/.profile' "put its own file in the place of ~/.profile" install_that rename
	attack path /.local "plant a program in ~/.local/bin, which is in PATH" install_that path
	attack unit /.config "add a systemd unit of hers" install_that unit
	attack key id_ed25519 "read ~/.ssh/id_ed25519" install_that key
	attack hardlink 'link .*/.bashrc' "reach ~/.bashrc through a hard link" install_that hardlink
	attack bind id_ed25519 "reach her key through a bind mount in a namespace of its own" install_that bind
	attack descriptor "go on writing .*notes.txt" "write through a descriptor it inherited, open on ~/notes.txt" \
		in_app "exec 9>>~/notes.txt; pkg install leftpad descriptor"
	attack mapping "shared writable mapping" "talk to the network with ~/notes.txt mapped, to write through that" \
		in_app "mapping ~/notes.txt $REGISTRY 80 result"
	attack kill signal "kill her shell" typed pkg install leftpad kill
	attack ptrace trace "take her shell over with ptrace" typed pkg install leftpad ptrace
	attack tiocsti terminal "type a command into her terminal" typed pkg install leftpad tiocsti

	say
	say "Then it looks for somebody at her level to do the work:"
	attack pipe .bashrc "have a shell do it that reads what it prints (curl | sh)" \
		in_app "pkg install leftpad pipe | sh"
	attack file .bashrc "have her build watcher do it, by a file in /tmp" with_helper /tmp/job file
	attack linked .bashrc "the same by a hard link to a file of its own" with_helper job linked
	attack renamed .bashrc "the same by a file it renames" with_helper job renamed
	attack mounted .bashrc "the same by a bind mount in a namespace of its own" with_helper job mounted
	attack fifo .bashrc "the same by a FIFO" with_helper fifo fifo
	attack abstract .bashrc "the same by an abstract socket" with_helper abstract abstract
	attack socket /tmp/jobs.sock "the same by her watcher's socket in /tmp" with_helper socket socket
}

# with_helper WAY JOB: a helper of alice's waits for work to come that way, while the
# package installs.
with_helper() {
	in_app "helper $1 &
		for _ in \$(seq 3000); do [ -e /tmp/ready ] && break; sleep 0.1; done
		pkg install leftpad $2; kill \$! 2>/dev/null; wait"
}

attacks_as_root() {
	install_by_root() { (cd "$APP" && HOME=/root pkg install leftpad "$@"); }

	attack program /usr/bin/git "replace /usr/bin/git" install_by_root program
	attack system-unit /etc/systemd "add a unit to /etc/systemd/system" install_by_root system-unit
	attack cron /etc/cron.d "add a cron job" install_by_root cron
	attack root-bashrc .bashrc "add a line to alice's ~/.bashrc" install_by_root bashrc
	attack root-key id_ed25519 "read her key" install_by_root root-key
	attack root-bind mount "mount its own file over /usr/bin/git" install_by_root root-bind
	attack module modprobe "load a kernel module" install_by_root module
	attack disk /dev/pmem0 "read the disk itself, past its filesystem" install_by_root disk
	attack ftrace ftrace_enabled "switch off ftrace, and BPF LSM with it" install_by_root ftrace
	attack bpffs mount "unmount the bpf filesystem that holds the policy" install_by_root bpffs
	[ "$MODE" = bare ] || attack daemon signal "kill Tidegate's daemon" install_by_root daemon
	[ "$MODE" = bare ] || attack stop "$ITSELF" "tidegate stop" install_by_root stop
}
