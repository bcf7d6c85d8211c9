#!/bin/sh
# As prepare.sh, of all profiles.
EACH=1 exec "$(dirname "$0")/prepare.sh" "$@"
