#!/bin/sh
# What must be allowed and refused, in a machine: the scenarios start Tidegate themselves. Those that take long are played on one
# kernel; `make test-more` has them on the other one (check-slow.sh).
case $(uname -r) in
6.12.*) ;;
*) export SCENARIOS="${SCENARIOS:-quick}" ;;
esac
exec /payload/scenarios "$@"
