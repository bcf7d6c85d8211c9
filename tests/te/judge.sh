#!/bin/bash
# Of the operations under Tidegate alone: the domain that may do everything is refused nothing, and each of the others what asks for
# what it lacks, and nothing else (check.py).
#   judge.sh PAYLOAD KERNEL LOG   what prepare.sh has made; what was said in the machine
# The last line is `N passed, N failed`.
set -eu
exec "$(dirname "$0")/check.py" --some "$1/contexts" "$1/asked" "$3"
