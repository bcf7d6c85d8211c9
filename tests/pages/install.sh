# shellcheck shell=bash disable=SC2034
# The files are in place.
with_units
