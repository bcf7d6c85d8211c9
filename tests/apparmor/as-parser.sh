#!/bin/sh
# What AppArmor's simple.pl calls for its parser: says of the profile on standard input whether
# Tidegate takes it. What simple.pl asks of the parser is passed over, but for where profiles include from.
# CASES is a directory with tidegate, parser and flat.plm. What is neither taken nor clearly refused
# goes to CASES/unclear.
set -u
base=
while [ $# -gt 0 ]; do
	[ "$1" != -I ] || base=$2
	shift
done
cat >"$CASES/case"

unclear() {
	{
		echo "== $1"
		cat "$CASES/case" "$CASES/said"
	} >>"$CASES/unclear"
}

"$CASES/tidegate" compile "$CASES/flat.plm" --profile "$CASES/case" --profile-base "$base" \
	--strict --apparmor-parser "$CASES/parser" --output "$CASES/bundle" >"$CASES/said" 2>&1
status=$?
case $status in
0)
	# a policy that is taken is read again, as where it is loaded
	"$CASES/tidegate" check --bundle "$CASES/bundle" >"$CASES/said" 2>&1 ||
		unclear "its bundle is not read"
	;;
3)
	# `code` and what is wrong, of one of the kinds that there are
	grep -q '^profile::' "$CASES/said" || unclear "refused without a reason"
	;;
*) unclear "status $status" ;;
esac
# simple.pl knows 0 and 1
[ $status -eq 0 ]
