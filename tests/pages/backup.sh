# shellcheck shell=bash disable=SC2034
# A server.
with_policy 'include server'
