# shellcheck shell=bash disable=SC2034
# Alice, who may use sudo, has built the tree.
reader=alice
built
