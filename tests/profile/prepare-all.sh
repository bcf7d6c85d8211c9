#!/bin/sh
# As prepare.sh, of all profiles, and with long storms.
EACH=1 ROUNDS=200 exec "$(dirname "$0")/prepare.sh" "$@"
