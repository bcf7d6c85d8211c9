#!/bin/sh
# What must be allowed and refused, in a machine: the scenarios start Tidegate themselves. Those that take long are in
# `make test-more` (check-slow.sh).
SCENARIOS=${SCENARIOS:-quick} exec /payload/scenarios "$@"
