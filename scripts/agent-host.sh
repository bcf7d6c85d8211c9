#!/bin/sh
# The host of tools, examples/agent-host, in a virtual machine under this build: its story.
#   agent-host.sh [6.12|7.2]   the kernel
# Fails if any step does not come out as promised.
set -eu

cd "$(dirname "$0")/.."
kernel=${1:-6.12}
TARGET=${CARGO_TARGET_DIR:-target}
payload=$TARGET/payload/agent-host

rm -rf "$payload"
scripts/xtask.sh payload "$payload" tidegate tidegated agent-host agent-tool >&2
scripts/xtask.sh build tidegate-lab >&2
cp examples/agent-host/play.sh examples/agent-host/tools.caps examples/agent-host/tools.toml tests/te/flat.plm tests/expect.sh "$payload"
exec "$TARGET/x86_64-unknown-linux-gnu/debug/tidegate-lab" vm --kernel "$kernel" --payload "$payload" --timeout 3600 \
	--lsm lockdown,yama,bpf -- bash /payload/play.sh
