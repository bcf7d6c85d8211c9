#!/bin/bash
# For operations under Tidegate alone, in the domain that may do everything and in some that lack one permission: the policy.
#   prepare.sh PAYLOAD KERNEL   a directory with te-ops
# What SELinux asks at each operation is in asked/KERNEL. Needs secilc here.
set -eu
payload=$1 kernel=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/te/machines.sh
. "$here/machines.sh"

DOMAINS="all no_file_open no_file_read no_file_write no_file_unlink no_file_execute no_dir_remove_name no_process_signal
no_process_ptrace no_capability_chown no_tcp_socket_name_bind no_tcp_socket_name_connect no_unix_stream_socket_connectto
no_shm_read no_msgq_write no_key_write no_filesystem_mount"

policy
cp "$here/asked/$kernel" "$payload/asked"
for domain in $DOMAINS; do
	grep "^$domain " "$payload/contexts"
done >"$payload/some"
mv "$payload/some" "$payload/contexts"
