# shellcheck shell=bash disable=SC2034
# Alice may use sudo, and has built the tree.
reader=alice
built
