#!/bin/bash
# SOAK (5m) of mixed load: attacks, forks, honest work, falls, reloads, given levels, questions to the
# daemon. Its memory and the kernel's are sampled, and may not grow: the line through the last third
# of the samples rises by less than soak.py's bounds.
# shellcheck disable=SC2086 # the places of lib.sh have no blanks
set -u
cd /payload || exit
# shellcheck source=tests/long/lib.sh
. ./lib.sh
SOAK=${SOAK:-5m}
case $SOAK in *m) seconds=$((${SOAK%m} * 60)) ;; *) seconds=${SOAK%s} ;; esac
EVERY=$((seconds / 30 > 2 ? seconds / 30 : 2))

falls() {
	while [ ! -e $STOP ]; do
		(exec 9</run/tidegate/level/untrusted && echo x >"$TREE/01m/fallen.$RANDOM" && rm $TREE/01m/fallen.*) 2>/dev/null
		(exec 8>>$TREE/00k/f 9</run/tidegate/level/user) 2>/dev/null
		sleep 0.2
	done
}
asks() {
	while [ ! -e $STOP ]; do
		"$T" status
		"$T" why
		"$T" ps
		"$T" log -n 5
		"$T" ls -d $TREE/*
		sleep 2
	done >/dev/null 2>&1
}
reloads() {
	while [ ! -e $STOP ]; do
		"$T" reload --bundle /srv/maps/b.bundle
		sleep 5
		"$T" reload --bundle /srv/maps/a.bundle
		sleep 5
	done >/dev/null 2>&1
}

prepare
victim
fingerprint before
try "start" "$T" start --policy /srv/maps/a.plm --log-size 4000000 --log-keep 3
pid=$(daemon)
# made once, so that what stays of them is no growth
storm 2 steady
ROUND=()
for load in falls asks reloads; do
	$load &
	ROUND+=($!)
done
end=$((SECONDS + seconds))
while [ $SECONDS -lt $end ]; do
	python3 soak.py sample "$pid" $((SECONDS - end + seconds))
	sleep "$EVERY"
done >/root/samples
try "it is still the same daemon" test "$(daemon)" = "$pid"
calm
wait "${ROUND[@]}"
try "memory is flat" python3 soak.py judge /root/samples
show cat $OUT
held "soak"
show "$T" status
finish
