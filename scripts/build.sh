#!/bin/sh
# Builds what the Makefile's targets name.
#   build.sh static              the static program; its path is the last line
#   build.sh lab                 the lab's program, static too; beside the other
#   build.sh payload DIR BIN…    static programs, in DIR for a VM
#   build.sh man                 manual pages and completions
#   build.sh clean               all of target/ but target/lab
set -eu

cd "$(dirname "$0")/.."
TARGET=${CARGO_TARGET_DIR:-target}
TRIPLE=x86_64-unknown-linux-gnu

# The release form of one program.
static() {
	cargo static --locked --bin "$1"
}

static_program() {
	echo "$TARGET/$TRIPLE/release/$1"
}

man() {
	mkdir -p "$TARGET/man" "$TARGET/completions"
	for name in tidegate tidegate-exporter tidegate-lab; do
		static "$name"
		program=$(static_program "$name")
		"$program" man "$TARGET/man"
		for shell in bash fish zsh; do
			"$program" completions "$shell" >"$TARGET/completions/$name.$shell"
		done
	done
	echo "$TARGET/man and $TARGET/completions"
}

payload() {
	dir=$1
	shift
	mkdir -p "$dir"
	for program in "$@"; do
		static "$program"
		install -m 755 "$(static_program "$program")" "$dir/$program"
	done
}

clean() {
	[ -d "$TARGET" ] || return 0
	find "$TARGET" -mindepth 1 -maxdepth 1 ! -name lab -exec rm -rf {} +
}

case ${1:-} in
static)
	static tidegate
	static_program tidegate
	;;
lab)
	static tidegate-lab
	static_program tidegate-lab
	;;
payload)
	shift
	payload "$@"
	;;
man) man ;;
clean) clean ;;
*)
	sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
