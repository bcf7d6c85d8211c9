#!/bin/bash
# A piece of work, good and bad: what `tidegate record` is tried on. As root, in the VM.
#   work.sh all
set -u

# a user at work: sources, a compiler, a repository, her own dotfiles
alices() {
	cd /home/alice || exit 1
	export HOME=/home/alice
	mkdir -p src/project
	# what is mapped cannot be revoked, so this one cannot fall
	cat >src/mapper.c <<-'EOF'
		#include <arpa/inet.h>
		#include <fcntl.h>
		#include <stdio.h>
		#include <sys/mman.h>
		#include <unistd.h>
		int main(void)
		{
			struct sockaddr_in to = { AF_INET, htons(1), { htonl(INADDR_LOOPBACK) } };
			int fd = open("/home/alice/mapped", O_RDWR | O_CREAT, 0600);
			if (ftruncate(fd, 4096) || mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
				perror("mapped");
			if (connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof(to)))
				perror("connect");
			return 0;
		}
	EOF
	gcc -o src/mapper src/mapper.c
	cd src/project || exit 1
	printf '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n' >main.c
	printf 'all: main\nmain: main.c\n\tgcc -o main main.c\nclean:\n\trm -f main\n' >Makefile
	make >/dev/null && ./main >built
	git init -q . && git -c user.name=a -c user.email=a@b add -A &&
		git -c user.name=a -c user.email=a@b commit -qm first
	python3 -c 'import json; json.dump([1], open("x.json", "w"))'
	python3 -c 'print(open("x.json").read())' | sort | uniq >sorted
	echo 'alias ll="ls -l"' >>/home/alice/.bashrc
	mv sorted sorted.old
	ln sorted.old sorted.link
	rm -f x.json
	make clean >/dev/null
	# lets go of a pipe after its writer began, and before that falls: stays above it
	perl -e 'pipe R, W; unless ($child = fork) { close R; open STDOUT, ">&W"; exec "sh", "-c", "kill -STOP \$\$; read x <main.c" }
		close W; waitpid $child, 2; close R; kill CONT => $child; wait; -t STDERR'
}

# the network: what has talked to it may not touch her dotfiles, keys and processes
fallen() {
	cd /home/alice || exit 1
	export HOME=/home/alice
	sleep 1000 &
	bystander=$!
	python3 - <<-'EOF' &
		import os, socket
		# at the user's level; one socket has a name, the other none
		open("/home/alice/.profile").read()
		named = socket.socket(socket.AF_UNIX); named.bind("/home/alice/named"); named.listen()
		plain = socket.socket(socket.AF_UNIX); plain.bind("\0served"); plain.listen()
		plain.settimeout(600)
		peer, _ = plain.accept()
		said = peer.recv(9)
		try: open("/home/alice/served", "wb").write(said)
		except OSError as e: print(e)
	EOF
	server=$!
	until grep -q @served /proc/net/unix; do sleep 0.1; done
	./src/mapper
	python3 - "$bystander" <<-'EOF'
		import os, signal, socket, subprocess, sys
		server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
		client = socket.create_connection(server.getsockname())
		def attempt(what):
		    try: what()
		    except OSError as e: print(what.__name__, e)
		def dotfile(): open("/home/alice/.bashrc", "a").write("evil\n")
		def key(): open("/home/alice/.ssh/id_test").read()
		def plant(): open("/home/alice/planted", "w").write("x")
		def source(): open("/home/alice/src/project/new.c", "w").write("int x;")
		def remove(): os.remove("/home/alice/src/project/main.c")
		def move(): os.rename("/home/alice/src/project/new.c", "/home/alice/moved.c")
		def mode(): os.chmod("/home/alice/.profile", 0o600)
		def kill(): os.kill(int(sys.argv[1]), signal.SIGCONT)
		def scratch(): open("/tmp/scratch-alice", "w").write("x"); os.remove("/tmp/scratch-alice")
		def named(): socket.socket(socket.AF_UNIX).connect("/home/alice/named")
		def served(): s = socket.socket(socket.AF_UNIX); s.connect("\0served"); s.send(b"low")
		def xattr(): os.setxattr("/home/alice/.profile", "user.x", b"y")
		def nice(): os.setpriority(os.PRIO_PROCESS, int(sys.argv[1]), 5)
		for what in dotfile, key, plant, source, remove, move, mode, kill, nice, scratch, named, served, xattr: attempt(what)
		subprocess.run(["sh", "-c", "echo hidden >>/home/alice/.profile; mkdir -p /home/alice/bin; cat /home/alice/.ssh/id_test"])
	EOF
	wait $server
	# what a fallen one leaves draws down its readers, and what is piped to it
	cat src/project/new.c moved.c 2>/dev/null | while read -r line; do echo "$line" >>/home/alice/log; done
	x=$(cat moved.c 2>/dev/null)
	echo "$x" >>/home/alice/log2
	kill $bystander
}

# a package as dpkg would unpack and configure it, as root
packages() {
	mkdir -p /usr/share/worked /var/lib/worked
	echo "#!/bin/sh" >/usr/share/worked/program.new
	chmod 755 /usr/share/worked/program.new
	mv /usr/share/worked/program.new /usr/share/worked/program
	ln -s program /usr/share/worked/link
	echo state >/var/lib/worked/status-new
	mv -f /var/lib/worked/status-new /var/lib/worked/status
	rm -rf /usr/share/worked /var/lib/worked
	# root reads a user's file, and then the system's is not its to change
	sh -c 'cat /home/alice/src/project/main.c >/dev/null; . /home/alice/.profile; echo x >>/etc/worked; rm -f /etc/worked; mount -t tmpfs none /mnt && umount /mnt'
}

case $1 in
all)
	for phase in alices fallen packages; do
		"$0" $phase
	done
	;;
alices | fallen)
	su alice -s /bin/bash -c "$0 as-$1"
	;;
as-alices) alices ;;
as-fallen) fallen ;;
packages) packages ;;
esac
true
