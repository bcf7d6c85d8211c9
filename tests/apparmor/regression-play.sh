#!/bin/bash
# In the machine, as root: plays AppArmor's regression tests.
#   regression-play.sh apparmor|tidegate [SCRIPT…]   without names all that the makefile names but WITHOUT
# Prints what each script says of checks that fail, and `script: NAME WHAT PASSED MS`: what came of it, one word,
# and how many checks passed.
set -eu
here=$PWD
system=$1
shift
cd /usr/src/apparmor/tests/regression/apparmor
# what no udev loads here
modprobe -a loop

loader=/sbin/apparmor_parser
if [ "$system" = tidegate ]; then
	loader=$here/as-loader.sh
	# what libapparmor and the tests look up in securityfs, of what Tidegate can do
	mkdir /run/securityfs
	cp /sys/kernel/security/lsm /sys/kernel/security/lockdown /run/securityfs
	mount --bind /run/securityfs /sys/kernel/security
	cd /sys/kernel/security
	mkdir apparmor
	touch apparmor/profiles apparmor/.remove
	perl "$here/features.pl" "$here/features" apparmor/features
	cd - >/dev/null
	# one that nobody has is always there, as in a policy without any nothing of profiles is attached
	mkdir -p /run/loaded/files /run/loaded/names
	echo 'profile nobody {}' >/run/loaded/files/nobody
	"$here/tidegate" start --policy "$here/regression.plm" --profile /run/loaded/files >/dev/null
fi
cat >uservars.inc <<END
subdomain=$loader
parser_config=--config-file=/dev/null
parser_args="\${parser_config} -q -K"
tmpdir=/tmp/sdtest.\$\$-\$RANDOM
sys_profiles=/sys/kernel/security/apparmor/profiles
aa_exec=\$(which aa-exec)
END

if [ $# -eq 0 ]; then
	# shellcheck disable=SC2016,SC2046,SC2086 # for make; lists of words
	set -- $(printf 'include Makefile\nname:\n\t@echo $(TESTS)\n' | make -s -f - USE_SYSTEM=1 name 2>/dev/null |
		tr ' ' '\n' | grep -vxF -f <(printf '%s\n' x ${WITHOUT:-}))
fi
echo "scripts: $#"
for script in "$@"; do
	start=$(date +%s%N)
	status=0
	VERBOSE=1 timeout -k 5 "${LIMIT:-900}" bash "$script.sh" >/tmp/said 2>&1 </dev/null || status=$?
	ok=$(grep -c '^ok: ' /tmp/said || true)
	grep -E '^Error|^Fatal|^Alert|Skipping|as-loader:' /tmp/said | sed "s/^/    $script: /" || true
	case $status in
	0) if [ "$ok" -gt 0 ]; then what=passes; else what=skips; fi ;;
	124 | 137) what=late ;;
	127) what=stops ;;
	# the number of checks that failed
	*) what=fails-$status ;;
	esac
	echo "script: $script $what $ok $((($(date +%s%N) - start) / 1000000))"
done
