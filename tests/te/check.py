#!/usr/bin/env python3
"""What SELinux says of operations, looked at, and compared with what Tidegate says.

    check.py CONTEXTS ASKED|- SELINUX_LOG [--again LOG] [--tidegate LOG --differs LIST]

Of SELinux's side: a domain that may do everything is refused nothing; each operation that asks for something is refused in
some domain; each domain that lacks one permission is refused something that asks for it, and nothing that does not.
Of Tidegate's side: each verdict is SELinux's, but for those listed, each of which is as the list has it.
The last line is `N passed, N failed`.
"""

import argparse
import collections
import fnmatch
import re
import sys

# What SELinux is asked about, and whose answer nothing depends on: why.
UNDECIDED = {
    "cap_userns:setuid": "the user changes to the one that it is",
    "capability2:bpf": "sys_admin does as well",
    "capability2:checkpoint_restore": "sys_admin does as well",
    "capability2:perfmon": "sys_admin does as well",
    "key:read": "who has found a key by search may read it",
    "system:module_request": "whoever may not have a module looked for does without",
}


def read_log(path):
    """(domain, operation) to verdict, of each kind of line; and lines that say what failed."""
    found = collections.defaultdict(dict)
    failed = []
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            line = line.rstrip("\r\n")
            kind, _, rest = line.partition(": ")
            if kind in ("verdict", "own", "label"):
                what, _, verdict = rest.rpartition("=")
                domain, _, operation = what.partition(": ")
                found[kind][domain, operation] = verdict
            elif line.startswith("FAILED"):
                failed.append(line)
    return found, failed


def read_asked(path):
    """Operation to the permissions that it asks for."""
    asked = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("\t"):
                asked[operation].add(line.split()[0])
            else:
                operation = line.rstrip("\n")
                asked[operation] = set()
    return asked


def lacking(permissions, lacks):
    """Whether any of them is lacked: one permission, or all of a class."""
    return any(p == lacks or lacks.endswith(":") and p.startswith(lacks) for p in permissions)


class Count:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, good, text):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED  {text}")


def plausible(count, contexts, asked, verdicts, some):
    refused = {operation for (_, operation), verdict in verdicts.items() if verdict != "ok"}
    for operation, permissions in asked.items():
        # some operations are for SELinux alone
        if some and ("all", operation) not in verdicts:
            continue
        verdict = verdicts.get(("all", operation), "not played")
        count.check(verdict == "ok", f"who may do everything: {operation}={verdict}")
        if not some and not permissions <= set(UNDECIDED):
            count.check(operation in refused, f"refused nowhere: {operation}")
    of_domain = collections.defaultdict(dict)
    for (domain, operation), verdict in verdicts.items():
        of_domain[domain][operation] = verdict
    known = {permission for permissions in asked.values() for permission in permissions}
    for domain, _, lacks, *_ in contexts:
        played = of_domain[domain]
        count.check(played, f"{domain}: nothing was played")
        if lacks == "-":
            continue
        asking = {operation for operation in played if lacking(asked[operation], lacks)}
        if lacking(known, lacks) and lacks not in UNDECIDED:
            count.check(any(played[operation] != "ok" for operation in asking), f"{domain}: nothing is refused")
        for operation, verdict in played.items():
            if operation not in asking:
                count.check(verdict == "ok", f"{domain}: {operation}={verdict}, which does not ask for it")


def decided(count, contexts, verdicts):
    """Of a policy that somebody ships: each domain is refused something, and allowed something."""
    of_domain = collections.defaultdict(set)
    operations = {operation for _, operation in verdicts}
    for (domain, _), verdict in verdicts.items():
        of_domain[domain].add(verdict)
    for domain, *_ in contexts:
        played = sum(1 for one, _ in verdicts if one == domain)
        count.check(played == len(operations), f"{domain}: {played} of {len(operations)} operations were played")
        count.check("ok" in of_domain[domain], f"{domain}: nothing is allowed")
        count.check("EACCES" in of_domain[domain] or domain == "unconfined_t", f"{domain}: nothing is refused")


class Known:
    """A line of a list of differences: `DOMAIN: OPERATION: SELinux VERDICT, Tidegate VERDICT`. Domain and operation may
    have the shell's wildcards; all that they name is so, and something is. `ok or EACCES` is what depends on whether the
    guard is there."""

    def __init__(self, line):
        found = re.fullmatch(r"([^:]*): (.*): SELinux (.*), Tidegate (.*)", line)
        if not found:
            sys.exit(f"not a difference: {line}")
        self.line = line
        self.domain, self.operation, self.theirs, ours = found.groups()
        self.ours = ours.split(" or ")
        self.met = False

    def names(self, key):
        return fnmatch.fnmatchcase(key[0], self.domain) and fnmatch.fnmatchcase(key[1], self.operation)


def read_known(path):
    with open(path, encoding="utf-8") as lines:
        return [Known(line.strip()) for line in lines if line.strip() and not line.startswith("#")]


def compare(count, one, other, names, listed=()):
    for key in sorted(one.keys() | other.keys()):
        said = [verdicts.get(key, "not played") for verdicts in (one, other)]
        both = ", ".join(f"{name} {verdict}" for name, verdict in zip(names, said))
        known = next((known for known in listed if known.names(key)), None)
        if known:
            known.met = True
            count.check(said[0] == known.theirs and said[1] in known.ours, f"{key[0]}: {key[1]}: {both}, listed as {known.line}")
        else:
            count.check(said[0] == said[1], f"{key[0]}: {key[1]}: {both}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contexts")
    parser.add_argument("asked")
    parser.add_argument("selinux")
    parser.add_argument("--some", action="store_true",
                        help="of some domains: an operation need not be refused anywhere, nor a difference met")
    parser.add_argument("--again")
    parser.add_argument("--tidegate")
    parser.add_argument("--differs", help="the differences that there are")
    args = parser.parse_args()
    with open(args.contexts, encoding="utf-8") as lines:
        contexts = [line.split() for line in lines]
    asked = {} if args.asked == "-" else read_asked(args.asked)
    found, failed = read_log(args.selinux)
    # of the whole's log those that are asked about
    played = {name for name, *_ in contexts}
    for kind, verdicts in found.items():
        found[kind] = {key: verdict for key, verdict in verdicts.items() if key[0] in played}
    print("\n".join(failed))
    count = Count()
    count.failed += len(failed)
    if asked:
        plausible(count, contexts, asked, found["verdict"] | found["own"], args.some)
    else:
        decided(count, contexts, found["verdict"])
    tally = collections.Counter(found["verdict"].values())
    operations = {operation for _, operation in found["verdict"]}
    print(f"{len(contexts)} domains, {len(operations)} operations:",
          ", ".join(f"{n} times {verdict}" for verdict, n in tally.most_common()))
    if args.again:
        again, _ = read_log(args.again)
        for kind in ("verdict", "own", "label"):
            compare(count, found[kind], again[kind], ("once", "again"))
    if args.tidegate:
        tidegate, failed = read_log(args.tidegate)
        print("\n".join(failed))
        count.failed += len(failed)
        names = ("SELinux", "Tidegate")
        listed = read_known(args.differs) if args.differs else []
        compare(count, found["verdict"], tidegate["verdict"], names, listed)
        if not args.some:
            for known in listed:
                count.check(known.met, f"there is no such thing as {known.line}")
        if tidegate["label"]:
            compare(count, {k: v for k, v in found["label"].items() if k in found["verdict"]}, tidegate["label"], names)
        else:
            print("Tidegate's side tells no labels: they are not compared")
    print(f"{count.passed} passed, {count.failed} failed")
    return 1 if count.failed else 0


if __name__ == "__main__":
    sys.exit(main())
