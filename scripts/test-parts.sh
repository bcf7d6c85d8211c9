# shellcheck shell=bash
# The parts of scripts/test.sh, a function each. Sourced there, in the tree's root.

TARGET=${CARGO_TARGET_DIR:-target}
LAB="$TARGET/release/tidegate-lab"

part() {
	case $1 in
	lint) lint ;;
	unit) unit ;;
	fuzz) cargo test --locked -p tidegate-policy-fuzz ;;
	core) tests/core/run.sh all ;;
	lab) lab_boots ;;
	scenarios-*) scenarios "${1#*-}" ;;
	commands-*) commands "${1#*-}" ;;
	learn-*) learn "${1#*-}" ;;
	bench-*) bench "${1#*-}" ;;
	replay-*) replay "${1#*-}" ;;
	record-*) record "${1#*-}" ;;
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
	shellcheck --shell=sh crates/lab/guest/customize.sh crates/lab/guest/measured.sh crates/lab/guest/whole.sh &&
		git ls-files -z '*.sh' .ci/run ':!crates/lab/guest/*.sh' | xargs -0 shellcheck --external-sources
}

# The manual has a page for every command.
lint_man() {
	cargo run -q --locked -p tidegate -- man "$TARGET/lint-man" && [ -s "$TARGET/lint-man/tidegate-why.1" ] &&
		cargo run -q --locked -p tidegate-exporter -- man "$TARGET/lint-man" && [ -s "$TARGET/lint-man/tidegate-exporter.1" ] &&
		cargo run -q --locked -p tidegate-lab -- man "$TARGET/lint-man" && [ -s "$TARGET/lint-man/tidegate-lab-run.1" ]
}

unit() {
	cargo test --locked --no-fail-fast --workspace --exclude tidegate-policy-fuzz
}

# The lab's own tests, which boot machines.
lab_boots() {
	cargo test --locked --release -p tidegate-lab --test boot --test truth -- --ignored --test-threads 1
}

build_lab() {
	cargo build -q --locked --release -p tidegate-lab
}

# What must be allowed and refused, on a kernel.
scenarios() {
	build_lab
	cargo static --locked -p tidegate -p tidegate-scenarios
	scripts/build.sh payload "$TARGET/test-payload" tidegate scenarios
	"$LAB" vm --kernel "$1" --payload "$TARGET/test-payload" --timeout 900 -- /payload/scenarios
}

# Every command and every exit code, on a kernel.
commands() {
	build_lab
	cargo static --locked -p tidegate -p tidegate-exporter
	scripts/build.sh payload "$TARGET/test-commands" tidegate tidegate-exporter
	cp tests/command-line/check.sh "$TARGET/test-commands"
	"$LAB" vm --kernel "$1" --payload "$TARGET/test-commands" --timeout 900 -- bash /payload/check.sh
}

# A refusal mended by `learn`, on a kernel.
learn() {
	build_lab
	cargo static --locked -p tidegate
	scripts/build.sh payload "$TARGET/test-learn" tidegate
	cp tests/learn/check.sh "$TARGET/test-learn"
	"$LAB" vm --kernel "$1" --payload "$TARGET/test-learn" --timeout 900 -- bash /payload/check.sh
}

# `tidegate bench`, on a kernel: with the lab's program, and what that compiles.
bench() {
	local payload=$TARGET/test-bench cache=${TIDEGATE_LAB_CACHE:-$TARGET/lab}
	build_lab
	cargo static --locked -p tidegate -p tidegate-lab
	scripts/build.sh payload "$payload" tidegate tidegate-lab
	"$LAB" setup --kernel "$1"
	rm -rf "$payload/lab"
	mkdir "$payload/lab"
	cp -r "$cache"/programs-* "$payload/lab"
	cp tests/lab/bench.sh "$payload"
	"$LAB" vm --kernel "$1" --payload "$payload" --timeout 1800 -- bash /payload/bench.sh
}

# Random operations on a kernel, against the reference model; REPLAY_SEED=N plays others.
replay() {
	build_lab
	cargo static --locked -p tidegate -p tidegate-model
	scripts/build.sh payload "$TARGET/replay-payload" tidegate tidegate-replay
	cp crates/model/policy/replay.plm "$TARGET/replay-payload/"
	"$LAB" vm --kernel "$1" --payload "$TARGET/replay-payload" --timeout 900 -- /bin/sh -c \
		"/payload/tidegate start --policy /payload/replay.plm && /payload/tidegate-replay --seed ${REPLAY_SEED:-1}"
}

# What `tidegate replay` predicts, against what a kernel then refuses.
record() {
	build_lab
	cargo static --locked -p tidegate
	scripts/build.sh payload "$TARGET/test-record" tidegate
	cp tests/record/* "$TARGET/test-record/"
	"$LAB" vm --kernel "$1" --payload "$TARGET/test-record" --timeout 900 -- bash /payload/check.sh
}

story() {
	scripts/run.sh --no-cost
	echo "1 passed, 0 failed"
}

# A day on a whole Debian with the package installed, on 6.12; not part of `make test`.
day() {
	local payload=$TARGET/day-$1
	build_lab
	packaging/build.sh deb
	rm -rf "$payload"
	mkdir "$payload"
	cp tests/day/*.sh "$TARGET"/package/*.deb "$payload"
	"$LAB" vm --kernel 6.12 --image whole --payload "$payload" --timeout 2400 -- bash "/payload/$1.sh"
}

# A long run under load and faults, on LONG_KERNEL; not part of `make test`. RELOADS, KILLS, FLOOD
# and SOAK say how long (docs/testing-long.md).
long() {
	local payload=$TARGET/long-$1
	build_lab
	cargo static --locked -p tidegate
	rm -rf "$payload"
	scripts/build.sh payload "$payload" tidegate
	cp tests/long/* "$payload"
	"$LAB" vm --kernel "${LONG_KERNEL:-7.2}" --payload "$payload" --timeout 7200 -- env \
		${RELOADS:+"RELOADS=$RELOADS"} ${KILLS:+"KILLS=$KILLS"} ${FLOOD:+"FLOOD=$FLOOD"} ${SOAK:+"SOAK=$SOAK"} \
		bash "/payload/$1.sh"
}
