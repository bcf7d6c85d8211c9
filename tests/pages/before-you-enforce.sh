# shellcheck shell=bash disable=SC2034
# The package is installed, and has recorded something.
with_policy 'mode permissive' 'include workstation'
as_alice 'tidegate run --level untrusted -- sh -c "echo line >>~/tool.log"'
