#!/bin/bash
# What a SELinux policy refused, explained and learned: a process in a domain that lacks one permission, one whose rule
# a boolean turns off, and one that a constraint refuses; enforced, and let through.
#
# Runs as root in the VM, beside `tidegate`, `flat.plm`, `te/policy.33` and `contexts`; takes what it likes of /root. The
# last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")" || exit 1

T=$PWD/tidegate
POLICY=$PWD/te/policy.33
OUT=/root/out

# shellcheck source=tests/expect.sh
. ./expect.sh

these=(--policy "$PWD/flat.plm" --te "$POLICY" --file-contexts "$PWD/te/file_contexts")
learn() { "$T" learn "${these[@]}" "$@"; }
# context DOMAIN
context() { sed -n "s/^$1 \([^ ]*\) .*/\1/p" contexts; }
# in_domain DOMAIN WORD…
in_domain() {
	local domain=$1
	shift
	"$T" run --context "$(context "$domain")" -- "$@"
}

mkdir -p /srv/ops/obj /srv/ops/owned /srv/ops/boolean
for file in /srv/ops/obj/file /srv/ops/owned/file /srv/ops/boolean/file; do
	echo x >"$file"
done

echo "# enforced"
expect 0 'enforcing: flat' timeout 1200 "$T" start "${these[@]}"
expect 1 '' in_domain no_file_write bash -c 'echo y >/srv/ops/obj/file'
expect 0 'd_no_file_write may not \{ .*write' "$T" why
expect 0 '^te: d_no_file_write may not \{ write \} [a-z_]*:file: no rule allows it' "$T" why
expect 0 '^fix: allow d_no_file_write [a-z_]*:file write;' "$T" why
expect 0 '"te":\{"source":"d_no_file_write".*"kind":"no-rule"' "$T" why --json
expect 1 '' in_domain other_user bash -c 'echo y >/srv/ops/owned/file'
expect 0 '^te: d_all may not \{ write \} owned_t:file: a constraint refuses it' "$T" why
expect 0 '^    the constraint: constrain file write \(t2 != owned_t or \( u1 == u2 \)\);' "$T" why
expect 1 '' in_domain bool_off bash -c 'echo y >/srv/ops/boolean/file'
expect 0 '^fix: --te-boolean ops_off=on' "$T" why
soon 0 '^; +fix: +--te-boolean ops_off=on' learn
expect 0 '^; +constrain file write' learn
expect 0 '^\(allow d_no_file_write [a-z_]* \(file \(write\)\)\)' learn
expect 0 '^; 1 refusal of bash' learn
expect 0 '^allow d_no_file_write [a-z_]*:file write;' learn --te-syntax te
expect 0 '"cil":"\(allow d_no_file_write ' learn --json
expect 0 '1 rules proposed' learn --te-rules /root/learned.cil
expect 2 'force replaces it' learn --te-rules /root/learned.cil

echo "# let through, and recorded"
expect 0 'number 2' "$T" reload "${these[@]}" --permissive
expect 0 '' in_domain no_file_read cat /srv/ops/obj/file
soon 0 '^\(allow d_no_file_read [a-z_]* \(file \(.*read\)\)\)' learn
expect 0 'would be denied: cat' "$T" why

echo "# the policy, asked"
expect 0 '^allow ' "$T" sesearch -A -s d_all -t obj_t -c file "$POLICY"
expect 0 'd_no_file_write' "$T" seinfo -t d_no_file_write -x "$POLICY"
expect 2 'no type or attribute' "$T" sesearch -A -s nobody_t "$POLICY"
expect 0 'object_r' "$T" check "${these[@]}" --path /srv/ops/obj/file
expect 0 'nothing is enforced' "$T" stop

echo "$passed passed, $failed failed"
[ $failed = 0 ]
