#!/bin/bash
# `tidegate bench`, in a machine of its own: it measures with enforcement and without, proves
# that it does, and leaves enforcement off, however it ends.
#
# Runs as root in the VM, beside the static programs `tidegate` and `tidegate-lab`, and `lab`,
# the lab's cache with its own programs. The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")" || exit 1
export PATH="$PWD:$PATH" TIDEGATE_LAB_CACHE=$PWD/lab

OUT=/run/out
# shellcheck source=tests/expect.sh
. ./expect.sh

# Asks the JSON file: an expression of Python, where `boots` are the boots.
holds() {
	python3 -c '
import json, sys
run = json.load(open(sys.argv[1]))
boots = run["boots"]
of = lambda system: [b for b in boots if b["system"] == system]
sys.exit(not eval(sys.argv[2]))' "$@" >/run/out 2>&1
	say $? "$1: $2"
}

off() {
	expect 5 'not running' tidegate status
	expect 0 '' test ! -e /var/tmp/tidegate-bench
}

bench() { timeout 600 tidegate bench --items paths "$@"; }
# what takes no time, where only what is around it matters
brief() { timeout 600 tidegate bench --workload true "$@"; }

echo "# who may not"
expect 125 'takes root' su alice -s /bin/sh -c "PATH=$PATH tidegate bench --items paths --dir /tmp/alice"
off

echo "# two rounds"
expect 0 '' bench --rounds 2 --json /run/out.json
off
holds /run/out.json '[len(of(s)) for s in ("none", "tidegate", "tidegate-user")] == [2, 2, 2]'
holds /run/out.json 'all(len(b["results"]["paths"].get("figures", [])) == 10 for b in boots)'
holds /run/out.json 'all(any("denied" in p for p in b["proof"]) for b in of("tidegate") + of("tidegate-user"))'
holds /run/out.json 'all(b["proof"] == [] for b in of("none"))'
expect 0 'open\+close, 16 components' tidegate lab report /run/out.json

echo "# Tidegate is on already"
expect 0 '^enforcing' tidegate start --preset workstation
expect 125 'add --stop' brief --rounds 1
expect 0 'daemon: +running' tidegate status
expect 0 '' brief --rounds 1 --stop --json /run/one.json
off
holds /run/one.json 'len(boots) == 3 and not any(b["failed"] for b in boots if "failed" in b)'

echo "# it is ended meanwhile"
tidegate bench --items paths --rounds 9 >/run/bench.log 2>&1 </dev/null &
bench=$!
for _ in $(seq 600); do
	tidegate status 2>/dev/null | grep -q '(enforcing)' && break
	sleep 0.1
done
expect 0 '\(enforcing\)' tidegate status
kill -s TERM $bench
wait $bench
[ $? = 125 ]
say $? "SIGTERM ends it"
off

echo "$passed passed, $failed failed"
[ $failed = 0 ]
