#!/bin/bash
# The shell of a page's reader, which runs as that user: reader.sh DIR N…
# It has each of these commands, DIR/commands/N.sh, done when its turn has come, DIR/commands/N.go, and says how it ended:
# DIR/said/N.ok or N.no. It is one shell for the whole page, as its reader's is: it keeps its directory, and its fall.
page_dir=$1
shift

for page_n in "$@"; do
	until [ -e "$page_dir/commands/$page_n.go" ]; do sleep 0.3; done
	# shellcheck source=/dev/null
	if . "$page_dir/commands/$page_n.sh" >>"$page_dir/said/$page_n.out" 2>&1; then
		: >"$page_dir/said/$page_n.ok"
	else
		: >"$page_dir/said/$page_n.no"
	fi
done
