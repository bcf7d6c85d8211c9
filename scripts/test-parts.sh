# shellcheck shell=bash
# The parts of scripts/test.sh, a function each. Sourced there, in the tree's root.

TARGET=${CARGO_TARGET_DIR:-target}
LAB="$TARGET/x86_64-unknown-linux-gnu/release/tidegate-lab"

part() {
	# what its machine gets to see
	local payload=$TARGET/payload-$1
	case $1 in
	lint) lint ;;
	unit) unit ;;
	fuzz) cargo test --locked -p tidegate-policy-fuzz ;;
	core) tests/core/run.sh all ;;
	lab) lab_boots --skip what_is_ --skip a_broken_probe ;;
	lab-more) lab_boots what_is_ a_broken_probe ;;
	scenarios-*) scenarios "${1#*-}" ;;
	commands-*) commands "${1#*-}" ;;
	learn-profile-*) learn_profile "${1##*-}" ;;
	learn-te-*) learn_te "${1##*-}" ;;
	learn-*) learn "${1#*-}" ;;
	bench-*) bench "${1#*-}" ;;
	replay-*) replay "${1#*-}" ;;
	record-te-*) record_te "${1##*-}" ;;
	record-*) record "${1#*-}" ;;
	profile-all-*) profile "${1##*-}" 1 ;;
	profile-*) profile "${1#*-}" 3 ;;
	shipped-*) shipped "${1#*-}" ;;
	te-decisions) tests/te-decisions/oracle.sh ;;
	te-query) tests/te-query/compare.sh ;;
	te-contexts) tests/te-contexts/run.sh 40 ;;
	apparmor-cases) apparmor_cases ;;
	apparmor-*) apparmor "${1#*-}" ;;
	te-live-*) te_live "${1##*-}" ;;
	caps-service-*) in_machine caps-service "${1##*-}" ;;
	caps-models-*) in_machine caps-models "${1##*-}" ;;
	caps-random-*) caps_random "${1##*-}" ;;
	caps-*) in_machine caps "${1##*-}" ;;
	narrow-*) in_machine narrow "${1##*-}" ;;
	agent-host-*) scripts/agent-host.sh "${1##*-}" "$payload" ;;
	te-system-debian-*) te_system_debian "${1##*-}" ;;
	te-system-*) in_machine te-system "${1##*-}" ;;
	te-enforced-*) te_enforced "${1##*-}" ;;
	object-manager-*) object_manager "${1##*-}" ;;
	te-debian-*) te_debian "${1##*-}" ;;
	te-*) te "${1#*-}" ;;
	story) story ;;
	day-*) day "${1#*-}" ;;
	long-*) long "${1#*-}" ;;
	*)
		echo "there is no part $1"
		return 2
		;;
	esac
}

# Each check is one test, and each runs whatever came of the one before.
lint() {
	local good=0 bad=0
	for check in lint_format lint_rust lint_shell lint_man; do
		echo "== $check"
		if "$check"; then good=$((good + 1)); else bad=$((bad + 1)); fi
	done
	echo "$good passed, $bad failed"
}

lint_format() {
	cargo fmt --all --check
}

lint_rust() {
	if cargo clippy --version; then
		cargo clippy --workspace --all-targets --locked -- -D warnings
	else
		echo "clippy is not packaged here: the compiler's own warnings only"
		RUSTFLAGS="-D warnings" cargo check --workspace --all-targets --locked
	fi
}

lint_shell() {
	# mmdebstrap's hook is sourced, by sh
	shellcheck --shell=sh crates/lab/guest/*.sh &&
		git ls-files -z '*.sh' .ci/run ':!crates/lab/guest/*.sh' | xargs -0 shellcheck --external-sources
}

# The manual has a page for every command.
lint_man() {
	local man=$TARGET/lint-man name
	# as the unit tests have it built
	cargo build -q --locked --workspace --exclude tidegate-policy-fuzz --bins
	for name in tidegate tidegate-exporter tidegate-lab; do
		"$TARGET/debug/$name" man "$man" || return 1
	done
	[ -s "$man/tidegate-why.1" ] && [ -s "$man/tidegate-exporter.1" ] && [ -s "$man/tidegate-lab-run.1" ]
}

unit() {
	cargo test --locked --no-fail-fast --workspace --exclude tidegate-policy-fuzz
}

# lab_boots FILTER…: of the lab's own tests, which boot machines; as the unit tests are compiled, so that nothing is compiled twice.
lab_boots() {
	scripts/build.sh lab
	TIDEGATE_LAB_PROGRAM=$(realpath "$LAB") cargo test --locked --workspace --exclude tidegate-policy-fuzz \
		--test boot --test truth -- --ignored --test-threads 1 "$@"
}

# in_vm KERNEL COMMAND…: in a machine with the payload; $limit in seconds, if 3600 are too few.
in_vm() {
	scripts/build.sh lab
	"$LAB" vm --kernel "$1" --payload "$payload" --timeout "${limit:-3600}" -- "${@:2}"
}

# What must be allowed and refused, on a kernel.
scenarios() {
	scripts/build.sh payload "$payload" tidegate scenarios
	in_vm "$1" /payload/scenarios
}

# Every command and every exit code, on a kernel.
commands() {
	scripts/build.sh payload "$payload" tidegate tidegate-exporter
	cp tests/command-line/check.sh tests/expect.sh "$payload"
	in_vm "$1" bash /payload/check.sh
}

# A refusal mended by `learn`, on a kernel.
learn() {
	scripts/build.sh payload "$payload" tidegate
	cp tests/learn/check.sh tests/expect.sh "$payload"
	in_vm "$1" bash /payload/check.sh
}

# A profile learned from complain mode, on a kernel: with the parser and patch(1) of this machine.
learn_profile() {
	scripts/build.sh payload "$payload" tidegate
	cp tests/learn/profile.sh tests/expect.sh tests/learn/compare.py "$payload"
	cp "$(command -v apparmor_parser)" "$(command -v patch)" "$payload"
	in_vm "$1" bash /payload/profile.sh
}

# What a SELinux policy refused, explained and learned, on a kernel: by the policy of tests/te, compiled here.
learn_te() {
	scripts/build.sh payload "$payload" tidegate te-ops
	# shellcheck disable=SC2034 # machines.sh reads it
	local here=$PWD/tests/te
	# shellcheck source=tests/te/machines.sh
	. tests/te/machines.sh
	policy
	cp tests/learn/te.sh tests/expect.sh tests/te/flat.plm "$payload"
	in_vm "$1" bash /payload/te.sh
}

# `tidegate bench`, on a kernel: with the lab's program, and what that compiles.
bench() {
	local cache=${TIDEGATE_LAB_CACHE:-$TARGET/lab}
	scripts/build.sh payload "$payload" tidegate tidegate-lab
	"$LAB" setup --kernel "$1"
	rm -rf "$payload/lab"
	mkdir "$payload/lab"
	cp -r "$cache"/programs-* "$payload/lab"
	cp tests/lab/bench.sh tests/expect.sh "$payload"
	in_vm "$1" bash /payload/bench.sh
}

# Random operations on a kernel, against the reference model: on the newer ones fewer and other ones. REPLAY_SEED=N and
# REPLAY_OPS=N play others.
replay() {
	local seed=1 ops=12000
	[ "$1" = 6.12 ] || seed=2 ops=1000
	scripts/build.sh payload "$payload" tidegate replay
	cp crates/model/policy/replay.plm "$payload"
	in_vm "$1" /bin/sh -c \
		"/payload/tidegate start --policy /payload/replay.plm && /payload/replay --seed ${REPLAY_SEED:-$seed} --ops ${REPLAY_OPS:-$ops}"
}

# What `tidegate replay` predicts, against what a kernel then refuses.
record() {
	scripts/build.sh payload "$payload" tidegate
	cp tests/record/* tests/expect.sh "$payload"
	in_vm "$1" bash /payload/check.sh
}

# The same of a SELinux policy.
record_te() {
	scripts/build.sh payload "$payload" tidegate
	scripts/build.sh lab
	tests/record-te/run.sh "$LAB" "$payload" "$1"
}

# What the kernel's own AppArmor and Tidegate say under the same profiles, on a kernel: profile KERNEL EACH.
profile() {
	scripts/build.sh payload "$payload" tidegate profile-ops
	scripts/build.sh lab
	tests/profile/compare.sh "$LAB" "$payload" "$1" "$2"
}

# Every profile that Debian ships, in a kernel: what the kernel's own AppArmor and Tidegate say of it.
shipped() {
	scripts/build.sh payload "$payload" tidegate profile-ops
	scripts/build.sh lab
	tests/profile/shipped.sh "$LAB" "$payload" "$1"
}

# AppArmor's own cases for its parser; CASES_EACH=1 plays all that are generated.
apparmor_cases() {
	scripts/build.sh payload "$payload" tidegate
	scripts/build.sh lab
	tests/apparmor/cases.sh "$LAB" "$payload"
}

# AppArmor's own regression tests, on a kernel; REGRESSION=all plays those that take long, too.
apparmor() {
	scripts/build.sh payload "$payload" tidegate profile-ops
	scripts/build.sh lab
	tests/apparmor/regression.sh "$LAB" "$payload" "$1"
}

# What the kernel's own SELinux and Tidegate say under the same policy, on a kernel; TE_TWICE=1 boots SELinux twice.
te() {
	scripts/build.sh payload "$payload" tidegate te-ops
	scripts/build.sh lab
	tests/te/compare.sh "$LAB" "$payload" "$1"
}

# What a governed process holds when booleans are set, and what it loses, on a kernel.
te_live() {
	scripts/build.sh payload "$payload" tidegate te-live
	scripts/build.sh lab
	tests/te-live/run.sh "$LAB" "$payload" "$1" play
}

# tests/NAME, whose run.sh needs tidegate and nothing else, on a kernel: capability files (caps), requests to services and the library
# for C (caps-service), beside the other models (caps-models), programs that limit themselves (narrow; CROWD=1 begins as many sessions
# as there may be, too), all that runs under a SELinux policy, and labels that outlive the monitor (te-system).
in_machine() {
	scripts/build.sh payload "$payload" tidegate
	scripts/build.sh lab
	"tests/$1/run.sh" "$LAB" "$payload" "$2"
}

# Random sequences of what sessions do, against the reference model, and races with revocation, on a kernel: CAPS_SEED and CAPS_COUNT
# play others.
caps_random() {
	scripts/build.sh payload "$payload" tidegate caps-random
	cp tests/te/flat.plm "$payload"
	limit=${CAPS_LIMIT:-3600} in_vm "$1" /bin/sh -c \
		"/payload/tidegate start --policy /payload/flat.plm && /payload/caps-random ${CAPS_SEED:-1} ${CAPS_COUNT:-6}"
}

# The contexts of all that runs under Debian's policy, as SELinux has them.
te_system_debian() {
	scripts/build.sh payload "$payload" tidegate
	scripts/build.sh lab
	tests/te-system/debian.sh "$LAB" "$payload" "$1"
}

# What Tidegate refuses under a SELinux policy in some domains, on a kernel.
te_enforced() {
	scripts/build.sh payload "$payload" tidegate te-ops
	scripts/build.sh lab
	tests/te/enforced.sh "$LAB" "$payload" "$1"
}

# Object managers in user space: the document store and the library for C, on a kernel.
object_manager() {
	scripts/build.sh payload "$payload" tidegate docstore
	scripts/build.sh lab
	tests/object-manager/run.sh "$LAB" "$payload" "$1"
}

# What SELinux and Tidegate say under Debian's own policy in domains of services and users, on a kernel.
te_debian() {
	scripts/build.sh payload "$payload" tidegate te-ops
	scripts/build.sh lab
	tests/te/debian.sh "$LAB" "$payload" "$1"
}

story() {
	scripts/run.sh --no-cost
	echo "1 passed, 0 failed"
}

# A day on a whole Debian with the package installed, on 6.12; not part of `make test`.
day() {
	scripts/build.sh lab
	packaging/build.sh deb
	rm -rf "$payload"
	mkdir "$payload"
	cp tests/day/*.sh docs/break-ins.md "$TARGET"/package/*.deb "$payload"
	# a disk that comes late; the guest has no e2fsprogs
	[ "$1" != power ] || /usr/sbin/mkfs.ext4 -q "$payload/disk.img" 64M
	"$LAB" vm --kernel 6.12 --image whole --payload "$payload" --timeout 2400 -- bash "/payload/$1.sh"
}

# A long run under load and faults, on LONG_KERNEL; not part of `make test`. RELOADS, KILLS, FLOOD
# and SOAK say how long (docs/testing-long.md).
long() {
	rm -rf "$payload"
	scripts/build.sh payload "$payload" tidegate
	cp tests/long/* "$payload"
	limit=7200 in_vm "${LONG_KERNEL:-6.12}" env \
		${RELOADS:+"RELOADS=$RELOADS"} ${KILLS:+"KILLS=$KILLS"} ${FLOOD:+"FLOOD=$FLOOD"} ${SOAK:+"SOAK=$SOAK"} \
		bash "/payload/$1.sh"
}
