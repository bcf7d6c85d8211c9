#!/bin/sh
# Puts the story's files and its compiled programs into a directory: build.sh DIR
set -eu
here=$(dirname "$(realpath "$0")")
dir=$1
rm -rf "$dir"
mkdir -p "$dir/package"
for file in play.sh lib.sh stage.sh attacks.sh session.sh nano.keys pkg helper registry.py; do
	cp "$here/$file" "$dir/"
done
cp "$here"/package/postinstall "$here"/package/index.js "$here"/package/ask "$dir/package/"
for program in terminal mapping package/ptrace package/tiocsti; do
	gcc -O -Wall -Wextra -Werror -static -o "$dir/$program" "$here/$program.c"
done
