# shellcheck shell=bash disable=SC2034
# A server that enforces.
with_policy 'include server'
