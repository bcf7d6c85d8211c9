#!/bin/bash
# Alice at work: what a person does in an hour, in half a minute. Everything here
# must simply work.
set -eu

# Shows a command as it was typed, does it, and shows what it prints.
type_() {
	echo "  \$ $*"
	eval "$*" 2>&1 | sed 's/^/    /'
	return "${PIPESTATUS[0]}"
}

cd ~/src
type_ git init -q -b main hello
cd hello
cat >hello.c <<'C'
#include <stdio.h>

int main(void)
{
	puts("hello, tide");
	return 0;
}
C
printf 'hello: hello.c\n\tcc -O -o $@ $<\n' >Makefile
echo hello >.gitignore
type_ make
type_ ./hello
type_ git add .
type_ git commit -q -m "'a greeting'"
type_ git switch -q -c louder
type_ sed -i "'s/tide/TIDE/'" hello.c
type_ git diff --stat
type_ make -s
type_ ./hello
type_ git commit -q -a -m louder
type_ git switch -q main
type_ git merge -q louder
type_ git log --oneline --graph
type_ tar czf /tmp/hello.tar.gz .
type_ "mv /tmp/hello.tar.gz ~/Downloads/"
type_ "ssh-add -l 2>/dev/null || cat ~/.ssh/id_ed25519.pub"
type_ "echo \"alias ll='ls -l'\" >>~/.bashrc"
type_ python3 -c "'print(sum(range(10)))' > sum.txt && cat sum.txt"
