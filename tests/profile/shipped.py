#!/usr/bin/env python3
"""What of a file system the profiles that Debian ships are asked about, and what two systems say of it.

shipped.py list RULES NAMES    rules as apparmor_parser --debug prints them, names as --names does: for each
                               profile the paths of its own rules and of others' to be tried under it
shipped.py compare LIST A B    what two systems printed of that; the last line is `N passed, N failed`
"""

import hashlib
import re
import sys

# paths that each profile is asked about, of all rules; and of its own rules
COMMON, OWN = 200, 120
# what is done with each path, as who (src/survey.rs)
ACTS = {"root": "rwax", "user": "rw"}


def instances(pattern):
    """Paths that a pattern matches: the first and the last alternative of each kind."""
    pattern = pattern.replace("//", "/")
    pattern = re.sub(r"^/proc/(\{[^}]*\}|\[[^/]*|\*)/", "/proc/self/", pattern)
    brace = re.search(r"\{([^{}]*)\}", pattern)
    if brace:
        words = brace[1].split(",")
        for word in dict.fromkeys((words[0], words[-1])):
            yield from instances(pattern[: brace.start()] + word + pattern[brace.end() :])
        return
    path = pattern.replace("**", "any/way").replace("*", "any").replace("?", "q")
    path = re.sub(r"\[\^[^]]*\]", "_", path)
    path = re.sub(r"\[(.)[^]]*\]", r"\1", path)
    if path.startswith("/") and "\\" not in path and "@{" not in path:
        yield path


def rules(text):
    """The patterns of files of each profile, by its name."""
    found, pattern = {}, re.compile(r"Perms:\s(\S*).*\tName:\t\((.*)\)$")
    for line in text.splitlines():
        if line.startswith("Name:\t"):
            name = line.split("\t")[-1]
            found.setdefault(name, [])
            at = name
        elif line.startswith("Local To:") and not line.endswith("<NULL>"):
            parent = line.split("\t")[-1]
            own = found.pop(at) if not found[at] else []
            at = f"{parent}//{at}"
            found.setdefault(at, own)
        elif rule := pattern.match(line):
            found[at].append((rule[2], "x" in rule[1]))
    return found


def some(paths, n):
    """N of them that do not depend on what else there is."""
    return sorted(paths, key=lambda path: hashlib.sha256(path[0].encode()).digest())[:n]


def write_list(rules_file, names_file):
    of = rules(open(rules_file, encoding="utf-8").read())
    names = open(names_file, encoding="utf-8").read().splitlines()
    paths = {
        name: {(path, runs) for pattern, runs in patterns for path in instances(pattern)}
        for name, patterns in of.items()
    }
    common = some(set().union(*paths.values()), COMMON)
    for name in names:
        print(f"profile {name}")
        for path, runs in sorted(set(common + some(paths.get(name, ()), OWN))):
            print(f"{'run' if runs else 'look'} {path}")


def answers(file):
    found = {}
    for line in open(file, encoding="utf-8", errors="replace"):
        if answer := re.search(r"survey: (\w+) (\S*) (.*)$", line.rstrip("\r\n")):
            found[answer[3], answer[1]] = answer[2]
    return found


def compare(list_file, one, other):
    asked, equal, wrong, refused = {}, 0, [], 0
    for line in open(list_file, encoding="utf-8"):
        word, rest = line.rstrip("\n").split(" ", 1)
        if word == "profile":
            paths = asked.setdefault(rest, [])
        else:
            paths.append(rest)
    one, other = answers(one), answers(other)
    for name, paths in asked.items():
        for who, acts in ACTS.items():
            a, b = one.get((name, who), ""), other.get((name, who), "")
            if len(a) != len(paths) * len(acts) or len(a) != len(b):
                wrong.append(f"{name}, {who}: not played: {a[:40]!r} and {b[:40]!r}")
                continue
            for at, (x, y) in enumerate(zip(a, b)):
                if x == y == "-":
                    continue
                refused += x == "a"
                if x == y:
                    equal += 1
                else:
                    wrong.append(f"{name}: {who} {acts[at % len(acts)]} {paths[at // len(acts)]}: {x} and {y}")
    for line in wrong[:60]:
        print(f"FAILED  {line}")
    print(f"{len(asked)} profiles, of {equal} equal verdicts {refused} refusals")
    few = equal < 100 * len(asked) or not refused
    if few:
        print("FAILED  too few verdicts to compare")
    print(f"{equal} passed, {len(wrong) + few} failed")
    return 1 if wrong or few else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["list", rules_file, names_file]:
            write_list(rules_file, names_file)
        case ["compare", list_file, one, other]:
            sys.exit(compare(list_file, one, other))
        case _:
            sys.exit(__doc__)
