# shellcheck shell=bash disable=SC2034
# A server that records.
with_policy 'mode permissive' 'include server'
