#!/bin/bash
# AppArmor's own cases for its parser, from Debian's source package, played by its own simple.pl: what
# is to be taken Tidegate compiles, links, writes to a bundle and reads again, and what is to be refused
# it refuses and says why.
#   cases.sh LAB DIR   the lab's program; a directory with tidegate, for what is made here
# CASES_EACH=1 plays all generated cases, and not a part of them. Whose answer differs stands in
# docs/dev/testing-apparmor.md: another one that does, or one of those that does not, has failed.
# The last line is `N passed, N failed`.
set -eu
lab=$1
CASES=$(realpath "$2")
export CASES
here=$(cd "$(dirname "$0")" && pwd)
table=$here/../../docs/dev/testing-apparmor.md
source=$("$lab" apparmor-parser --source)

# a copy, as cases are generated beside the others, which name each other by these directories
rm -rf "$CASES/parser.d" "$CASES/unclear"
mkdir -p "$CASES/parser.d"
cp -r "$source/parser/tst" "$CASES/parser.d/tst"
printf '#!/bin/sh\nexec "%s" apparmor-parser "$@"\n' "$(realpath "$lab")" >"$CASES/parser"
chmod +x "$CASES/parser"
cp "$here/../profile/flat.plm" "$CASES"
cd "$CASES/parser.d/tst"

# part DIRECTORY N: of what was generated there every Nth stays
part() {
	find "simple_tests/$1" -name '*.sd' | LC_ALL=C sort | awk -v n="${CASES_EACH:-$2}" 'NR % n' | xargs -r rm
}
make -s gen_xtrans gen_dbus PARSER=/bin/true
part generated_x 16
part generated_dbus 64

APPARMOR_PARSER=$here/as-parser.sh perl simple.pl 2>&1 | tr -s / >"$CASES/tap" || true
grep -q '^1\.\.[0-9]' "$CASES/tap" || { cat "$CASES/tap" && exit 1; }

# found PATTERN: the cases of lines that begin so, by their paths
found() {
	sed -n -E "/# TODO/! s,^$1 [0-9]+ - [^/]*\./simple_tests/([^:]*)\.sd: .*,\1,p" "$CASES/tap"
}
found ok | sort >"$CASES/right"
found 'not ok' | sort >"$CASES/wrong"
planned=$(sed -n 's/^1\.\.//p' "$CASES/tap")
left=$(grep -c '# TODO' "$CASES/tap" || true)
right=$(wc -l <"$CASES/right")
wrong=$(wc -l <"$CASES/wrong")

# the cases whose answer is known to differ, as patterns
# shellcheck disable=SC2016 # backquotes of Markdown
sed -n '/^## Cases/,/^## /s/^| `\([^`]*\)` |.*/\1/p' "$table" >"$CASES/patterns"
passed=$right failed=0
# fail WORDS…
fail() {
	echo "FAILED  $*"
	failed=$((failed + 1))
}
while read -r name; do
	is_known=
	while read -r pattern; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $name != $pattern ]] || is_known=yes
	done <"$CASES/patterns"
	[ -n "$is_known" ] || fail "$name: $(grep -h '^#=EXRESULT' "simple_tests/$name.sd" || echo PASS) is what AppArmor says"
done <"$CASES/wrong"
while read -r pattern; do
	is_met=
	while read -r name; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $name != $pattern ]] || is_met=yes
	done <"$CASES/wrong"
	while read -r name; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $name != $pattern ]] || { passed=$((passed - 1)) && fail "$name: is as AppArmor says, and listed as one that is not"; }
	done <"$CASES/right"
	[ -n "$is_met" ] || fail "$pattern: listed, and there is no such case"
done <"$CASES/patterns"
if [ -s "$CASES/unclear" ]; then
	fail "$(grep -c '^== ' "$CASES/unclear") neither taken nor clearly refused, the first:"
	head -n 60 "$CASES/unclear"
fi

# A rule on networks with a condition that nobody looks at is told by its line and allows nothing: what is left of a profile
# is the same whatever its family and type, and so is the bundle. The language has such conditions since version 4.
condition() {
	# shellcheck disable=SC2016 # backquotes of a message
	told='case:3: profile `a`: nothing mediates this rule (network address: it allows nothing)'
	printf 'profile a /a {\n  /x r,\n  %s\n}\n' "$1" >"$CASES/case"
	"$CASES/tidegate" compile "$CASES/flat.plm" --profile "$CASES/case" --profile-base "$CASES" \
		--apparmor-parser "$CASES/parser" --output "$CASES/$2" >"$CASES/said" 2>&1 &&
		grep -qF "$told" "$CASES/said"
}
condition 'network inet6 dgram ip=::1,' left || fail "network inet6 dgram ip=::1: $(cat "$CASES/said")"
for rule in 'network inet stream port=5432,' 'network inet dgram port=1024-2048,' 'network port=22,' \
	'network inet ip=127.0.0.1 port=80,' 'network (send, receive) inet peer=(ip=127.0.0.1 port=80),' \
	'audit { network inet6 port=22, }'; do
	if condition "$rule" bundle && cmp -s "$CASES/bundle" "$CASES/left"; then
		passed=$((passed + 1))
	else
		fail "$rule: $(cat "$CASES/said")"
	fi
done
[ $((right + wrong + left)) -eq "$planned" ] || fail "of $planned cases $((right + wrong + left)) were played"
[ "$right" -gt 5000 ] || fail "too few cases were played"

echo "$planned cases: $right as AppArmor says, $wrong otherwise, $left that AppArmor leaves open"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
