#!/bin/bash
# AppArmor's own regression tests, from Debian's source package, unmodified, where Tidegate enforces and the
# kernel's AppArmor is off.
#   regression.sh LAB PAYLOAD KERNEL   the lab's program; a directory with tidegate and profile-ops
# Plays all but those that take long; REGRESSION=all plays those, too, and REGRESSION='NAME…' the named ones.
# What does not pass stands in docs/dev/testing-apparmor.md: another script that does not has failed, and so has
# one of those that comes out otherwise. SYSTEM=apparmor plays under the kernel's AppArmor instead, and only tells.
# The last line is `N passed, N failed`: checks that passed, and scripts.
set -eu
lab=$1 payload=$2 kernel=$3
here=$(cd "$(dirname "$0")" && pwd)
table=$here/../../docs/dev/testing-apparmor.md
LONG="capabilities i18n aa_policy_cache mount unix_socket_abstract unix_socket_autobind"

case ${REGRESSION:-} in
'') without=$LONG which='' ;;
all) without='' which='' ;;
*) without='' which=$REGRESSION ;;
esac
system=${SYSTEM:-tidegate} machine=(--lsm 'lockdown,yama,bpf')
# without the kernel's records, which the console would take minutes for
[ "$system" = tidegate ] || machine=(--lsm 'lockdown,yama,apparmor' --append audit=0)

"$payload/profile-ops" features >"$payload/features"
cp "$here"/{as-loader.sh,complaining.sh,features.pl,regression.plm,regression-play.sh} "$payload"
log=$payload/regression.log
# shellcheck disable=SC2086 # a list of words
"$lab" vm --kernel "$kernel" --image apparmor --payload "$payload" --timeout "${LIMIT:-3600}" "${machine[@]}" -- \
	env WITHOUT="$without" bash /payload/regression-play.sh "$system" $which 2>&1 | tee "$log" || true
tr -d '\r' <"$log" | sed -n 's/^script: //p' >"$payload/played"
[ "$system" = tidegate ] || exit 0

# what the table has of each script: its third column's first word
# shellcheck disable=SC2016 # backquotes of Markdown
sed -n -E '/^## Regression/,/^## /s/^\| `([^`]*)` \|[^|]*\| *([^ |]*).*/\1 \2/p' "$table" >"$payload/listed"
passed=0 failed=0 known=0
while read -r script what checks _; do
	passed=$((passed + checks))
	is=$(sed -n "s/^$script //p" "$payload/listed")
	if [ "$what" != "${is:-passes}" ]; then
		failed=$((failed + 1))
		echo "FAILED  $script: $what, and not ${is:-passes}"
	elif [ -n "$is" ]; then
		known=$((known + 1))
	fi
done <"$payload/played"
planned=$(tr -d '\r' <"$log" | sed -n 's/^scripts: //p')
played=$(wc -l <"$payload/played")
if [ "$played" -eq 0 ] || [ "$played" -ne "${planned:-0}" ]; then
	failed=$((failed + 1))
	echo "FAILED  of ${planned:-no} scripts $played were played"
fi
echo "$played scripts: $known come out otherwise than under AppArmor, as listed"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
