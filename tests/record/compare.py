"""Holds what `replay` predicted against the `would` records of the same work.

compare.py PREDICTED.json WOULD.jsonl: prints `same`, or what one has and the other has
not, and ends with 1. What may differ is listed here, and in docs/how-to/try-on-recorded-work.md.
"""

import json
import re
import sys


def name(op, target):
    """What makes a refusal one: names made up at random and numbers of processes left out."""
    target = re.sub(r"/proc/\d+", "/proc/PID", target)
    target = re.sub(r"/tmp/cc\w{6}", "/tmp/ccRANDOM", target)
    target = re.sub(r"process \d+", "process", target)
    target = re.sub(r"/objects/(../[0-9a-f]{38}|../tmp_obj_\w+|pack/\w+)", "/objects/OBJECT", target)
    return op, target


def predicted(path):
    with open(path) as file:
        report = json.loads(file.readline())
    return {(g["program"], *name(g["op"], g["object"])) for g in report["refused"]}


def would(path):
    found = set()
    with open(path) as file:
        for line in file:
            record = json.loads(line)
            thing = record.get("object", {})
            target = thing.get("path") or thing.get("address") or ""
            if not target and "pid" in thing:
                target = "process"
            found.add((record["subject"]["comm"], *name(record["op"], target)))
    return found


def main():
    says, came = predicted(sys.argv[1]), would(sys.argv[2])
    for title, rest in ("only predicted", says - came), ("only recorded", came - says):
        for refusal in sorted(rest):
            print(f"{title}: {' '.join(refusal)}")
    if says != came or not says:
        sys.exit(1)
    print(f"same: {len(says)} kinds")


main()
