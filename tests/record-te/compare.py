"""Holds what `replay` predicted by a SELinux policy against the `would` records of the same work.

compare.py PREDICTED.json WOULD.jsonl: prints `same`, or what one has and the other has not, and ends with 1. Each
permission of each program on each object counts. What a recording does not have is left out of the records: it is listed
here, and in docs/how-to/try-on-recorded-work.md.
"""

import json
import sys

# attributes that are read, and what is done with directories other than with the names in them
UNSEEN = {"getattr", "ioctl", "lock"}
NAMES = {"create", "unlink", "rename", "link"}
# what the guard refuses once more, of descriptors that an execution took along
GUARD = {"read-revoked", "write-revoked"}


def key(program, op, tclass, permission, source, target, path):
    # a directory is told by the name in it, or by itself
    is_file = tclass.endswith("file")
    kinds = [context.split(":")[2] if ":" in context else f"{context}_t" for context in (source, target)]
    return (program, op, tclass, permission, *kinds, path if is_file else "")


def predicted(path):
    with open(path) as file:
        report = json.loads(file.readline())
    return {
        key(g["program"], g["op"], t["class"], p, t["context"], t["object_context"], g["object"])
        for g in report["refused"]
        if (t := g.get("te"))
        for p in t["permissions"]
    }


def would(path):
    found = set()
    with open(path) as file:
        for line in file:
            r = json.loads(line)
            if "tclass" not in r:
                continue
            name = r.get("object", {}).get("path", "")
            # links of the kernel's own filesystems are not recorded
            if r["op"] in GUARD or (r["op"] == "readlink" and name.startswith("/proc/")):
                continue
            for p in r["denied"].split():
                if p in UNSEEN or (r["tclass"] == "dir" and r["op"] not in NAMES):
                    continue
                found.add(key(r["subject"]["comm"], r["op"], r["tclass"], p, r["scontext"], r["tcontext"], name))
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
