"""Holds what `replay` predicted of a profile against the `would` records of the same work.

compare.py PREDICTED.json WOULD.jsonl: prints `same`, or what one has and the other has not, and
ends with 1. What replay does not decide is left out: docs/how-to/try-on-recorded-work.md.
"""

import json
import os
import re
import sys

DECIDED = {
    "exec": "exec",
    "open-read": "open",
    "open-write": "open",
    "create": "create",
    "unlink": "unlink",
    "rename": "rename",
    "link": "link",
}


# Devices that recordings leave out.
DEVICES = {"/dev/null", "/dev/tty"}


def name(op, path):
    """What makes a refusal one: numbers of processes left out."""
    return DECIDED[op], re.sub(r"/proc/\d+", "/proc/PID", path)


def predicted(path):
    with open(path) as file:
        report = json.loads(file.readline())
    return {name(g["op"], g["object"]) for g in report["refused"] if g["op"] in DECIDED}


def would(path):
    with open(path) as file:
        records = [json.loads(line) for line in file]
    asked = [(r["op"], r.get("object", {}).get("path", "")) for r in records]
    # that a directory is read is not recorded; some are gone by now
    below = {os.path.dirname(target) for _, target in asked}
    below |= {target for _, target in asked if os.path.isdir(target)}
    decided = [(op, target) for op, target in asked if op in DECIDED and target not in DEVICES]
    return {name(op, target) for op, target in decided if op != "open-read" or target not in below}


def main():
    says, came = predicted(sys.argv[1]), would(sys.argv[2])
    for title, rest in ("only predicted", says - came), ("only recorded", came - says):
        for refusal in sorted(rest):
            print(f"{title}: {' '.join(refusal)}")
    if says != came or not says:
        sys.exit(1)
    print(f"same: {len(says)} kinds")


main()
