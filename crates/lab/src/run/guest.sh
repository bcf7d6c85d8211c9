#!/bin/sh
# guest.sh DISTURBANCE WORKLOAD…: one boot of the lab, in the guest, as root. Proves that the
# system is what it says, and runs the workloads. What it prints is read by transcript.rs: records of words by
# tabs, the first of which says what they are.
#
# Under Tidegate this shell stays at the top level: what a governed subject wrote is read
# by children, whose output nobody here takes in. A pipe that such a child writes to is made
# by a child, too: the maker can read from it until all of the pipeline runs. So are the
# functions in parentheses.
set -u
export PATH="/payload/bin:$PATH" LAB_FILES=/payload/files LC_ALL=C
disturbance=$1
shift
system=/payload/system
scratch=/srv/lab
# Longer than the slowest workload takes by either clock.
limit=1800

record() {
	word=$1
	shift
	printf '%s\t%s\n' "$word" "$*"
}

# Every line of a file or of standard input, as a record of this kind. `awk 1` ends the last
# line where that is not ended: the next record would become a part of it.
records() (
	sed "s/^/$1	/" ${2+"$2"} | awk 1
)

# The end of what went wrong, which may be somebody else's to read.
why() (
	tail -n 3 "$1" | tr '\t\n' '  ' | records "$2"
	echo
)

broken() {
	record broken "$1"
	[ ! -s "$scratch/err" ] || why "$scratch/err" error
	exit 0
}

entered() {
	sh -eu "$system/enter.sh" "$@"
}

# Whether the context that was written down is the one that the system promises.
is_the_subject() (
	# the kernel does not end its last line, `is` does
	[ ! -s "$system/context.sh" ] || awk 1 "$scratch/context" | cmp -s "$system/is" -
)

# Whether what shall be denied is; says so, or what is wrong.
is_denied() (
	# through a pipe: a subject that fell may have lost its right to write to a file of ours
	{
		entered sh -eu "$system/deny.sh" 2>&1 >/dev/null
		echo "status $?"
	} | awk -v OFS='\t' '
		/Permission denied|Operation not permitted/ { denied = $0 }
		/^status / { status = $2 }
		!/^status / { said = $0 }
		END {
			if (status == 0) print "broken", "it denies nothing: what shall be refused is allowed"
			else if (denied == "") print "broken", "what shall be refused fails for another reason: " said
			else print "proof", "denied: " denied
			exit status == 0 || denied == ""
		}
	'
)

settle() {
	sh -eu "$system/settle.sh" >"$scratch/err" 2>&1 || broken "it does not settle"
}

mkdir -p "$scratch"
record lsm "$(cat /sys/kernel/security/lsm)"
if [ -s "$system/deny.sh" ]; then
	sh -eu "$system/deny.sh" >/dev/null 2>"$scratch/err" ||
		broken "what shall be denied fails without enforcement, too"
fi
sh -eu "$system/setup.sh" >"$scratch/err" 2>&1
case $? in
0) ;;
77)
	[ -s "$scratch/err" ] || echo "this kernel or image has no such system" >"$scratch/err"
	why "$scratch/err" absent
	exit 0
	;;
*) broken "its setup failed" ;;
esac

if [ -s "$system/context.sh" ]; then
	settle
	entered sh -eu "$system/context.sh" >"$scratch/context" 2>"$scratch/err" ||
		broken "nothing can be run as its subject"
	records "proof	context: " "$scratch/context"
	is_the_subject || broken "the subject is not what it should be"
fi
if [ -s "$system/deny.sh" ]; then
	settle
	is_denied || exit 0
fi

# Per-CPU memory: control groups, as systemd makes them by the hundred, use up the few pages
# that the kernel sets apart for it at boot, and mounts, whose counters are the smallest, the
# gaps between what others hold. A fork allocates there, and searches longer or shorter by
# what happens to be free: that is disturbed, too.
mkdir -p /run/cgroup
mount -t cgroup2 none /run/cgroup
seq -f '/run/cgroup/measured-%.0f' $((200 + 37 * disturbance)) | xargs mkdir
crowd /run/crowd $((2000 + 997 * disturbance)) >"$scratch/err" 2>&1 || broken "its mounts failed"

# Runs the workload in its directory, once.
once() {
	sh -eu "$work/prepare.sh" >"$scratch/err" 2>&1 || {
		record failed "its preparation"
		why "$scratch/err" error
		return
	}
	# what that wrote is not written back while something is counted
	sync
	settle
	sh -eu "$system/decisions.sh" | records before
	: >"$scratch/$name.out"
	: >"$scratch/$name.err"
	: >"$scratch/context"
	# the third descriptor is for what its subject has become on the way
	# shellcheck disable=SC2016 # its own words
	timeout "$limit" sh -eu "$system/enter.sh" sh -uc '
		sh -eu "$1/run.sh" 3>&- || exit
		[ ! -s "$2/context.sh" ] || sh -eu "$2/context.sh" >&3
	' sh "$work" "$system" >"$scratch/$name.out" 2>"$scratch/$name.err" 3>"$scratch/context"
	status=$?
	sh -eu "$system/decisions.sh" | records after
	if [ "$status" != 0 ]; then
		record failed "exit status $status"
		why "$scratch/$name.err" error
	elif ! is_the_subject; then
		record failed "the subject is not any more what it should be"
		why "$scratch/context" error
	else
		records figure "$scratch/$name.out"
	fi
	sh -eu "$work/finish.sh" >"$scratch/err" 2>&1 || {
		record failed "what it does afterwards"
		why "$scratch/err" error
	}
}

for name in "$@"; do
	work=/payload/work/$name
	record workload "$name"
	# once for each size of policy that it asks for, or once: size 0
	while read -r LAB_RULES; do
		export LAB_RULES
		[ "$LAB_RULES" = 0 ] || sh -eu "$system/rules.sh" >"$scratch/err" 2>&1 ||
			broken "no policy of $LAB_RULES rules is to be had"
		mkdir "$scratch/$name"
		cd "$scratch/$name" || exit 1
		once
		cd /
		rm -rf "${scratch:?}/$name"
	done <"$work/rules"
	# back to the system's own policy
	LAB_RULES=0
	grep -q -x 0 "$work/rules" || sh -eu "$system/rules.sh" >"$scratch/err" 2>&1 ||
		broken "its own policy is not to be had any more"
done
record end
