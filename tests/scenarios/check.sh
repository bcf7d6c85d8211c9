#!/bin/sh
# What must be allowed and refused, in a machine: the scenarios start Tidegate themselves.
exec /payload/scenarios "$@"
