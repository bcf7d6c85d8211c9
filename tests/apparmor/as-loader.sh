#!/bin/bash
# In the machine: what AppArmor's regression tests call for apparmor_parser, with its arguments. What
# would load, replace or remove profiles in the kernel does so with Tidegate's policy, which is always
# made of all that are loaded; for all else the parser itself is called, as if the kernel were Tidegate.
# What is loaded is kept as files in one directory, and the names in each in a file of another.
set -eu
here=$(dirname "$0")
LOADED=/run/loaded/files
NAMES=/run/loaded/names

parser() {
	apparmor_parser --config-file /dev/null --policy-features "$here/features" --kernel-features "$here/features" "$@"
}

# Of the arguments what the tests use, in the forms that they use.
how=add suffix='' file=
for word in "$@"; do
	case $word in
	-r) how=replace ;;
	-R) how=remove ;;
	-C) suffix=.complain ;;
	-q | -K | -W | --config-file=*) ;;
	-*) parser "$@" && exit || exit ;;
	*) file=$word ;;
	esac
done
new=$(mktemp /run/loaded/new-XXXXXX)
trap 'rm -f "$new" "$new".*' EXIT
cat ${file:+"$file"} >"$new"
parser -N "$new" >"$new.names"
[ -s "$new.names" ]

# what is loaded of the same names
mapfile -t same < <(grep -lxF -f "$new.names" "$NAMES"/* 2>/dev/null)
case $how in
add) [ ${#same[@]} -eq 0 ] || { echo "as-loader: profiles are loaded already" >&2 && exit 1; } ;;
remove) [ ${#same[@]} -ne 0 ] || { echo "as-loader: profiles are not loaded" >&2 && exit 1; } ;;
esac
for names in "${same[@]}"; do
	rm "$names" "$LOADED/${names##*/}"
done
if [ $how != remove ]; then
	name=$(date +%s%N)$suffix
	cp "$new" "$LOADED/$name"
	cp "$new.names" "$NAMES/$name"
fi

"$here/tidegate" reload --policy "$here/regression.plm" --profile "$LOADED" --strict \
	--apparmor-parser "$here/complaining.sh" >"$new.said" 2>&1 || {
	cat "$new.said" >&2
	exit 1
}
cat "$NAMES"/* 2>/dev/null | sed 's/$/ (enforce)/' >/sys/kernel/security/apparmor/profiles
