#!/bin/sh
# The script of UnixBench's Shell Scripts: script.sh COPY, over sort.src and with files
# of its own.
set -eu
sort <sort.src >"sort.$1"
od "sort.$1" | sort -n -k 1 >"od.$1"
grep the "sort.$1" | tee "grep.$1" | wc >"wc.$1"
read -r lines words _ <"wc.$1"
test "$lines" -eq 40 -a "$words" -eq 200
rm "sort.$1" "od.$1" "grep.$1" "wc.$1"
