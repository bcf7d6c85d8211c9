#!/usr/bin/env python3
"""What of a file system the profiles that Debian ships are asked about, and what two systems say of it.

shipped.py list RULES NAMES    rules as apparmor_parser --debug prints them, names as --names does: for each
                               profile the paths of its own rules and of others' to be tried under it
shipped.py played NAMES        the profiles under which all operations of profile-ops are played
shipped.py compare A B LIST…   what two systems printed of these; the last line is `N passed, N failed`
"""

import hashlib
import re
import sys
from pathlib import Path

# paths that each profile is asked about, of all rules; and of its own rules
COMMON, OWN = 200, 120
# profiles of each list under which all operations are played
PLAYED = 20
# what is done with each path, by user (src/survey.rs)
ACTS = {"root": "rwax", "user": "rw"}
# whose executions lead to several profiles at once, which the second system refuses by design
STACKING = {"/usr/bin/man", "unprivileged_userns", "bwrap", "unpriv_bwrap", "unshare", "unpriv_unshare"}


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
            at = line.split("\t")[-1]
            found.setdefault(at, [])
        elif line.startswith("Local To:") and not line.endswith("<NULL>"):
            at = line.split("\t")[-1] + f"//{at}"
            found.setdefault(at, [])
        elif rule := pattern.match(line):
            found[at].append((rule[2], "x" in rule[1]))
    return found


def some(paths, n):
    """N of them that depend neither on what else there is nor on the order of a set."""
    return sorted(paths, key=lambda path: (hashlib.sha256(path[0].encode()).digest(), path))[:n]


def write_list(rules_file, names_file):
    of = rules(open(rules_file, encoding="utf-8").read())
    names = sorted(open(names_file, encoding="utf-8").read().splitlines())
    paths = {
        name: {(path, runs) for pattern, runs in patterns for path in instances(pattern)}
        for name, patterns in of.items()
    }
    common = some(set().union(*paths.values()), COMMON)
    for name in names:
        print(f"profile {name}")
        for path, runs in sorted(set(common + some(paths.get(name, ()), OWN))):
            print(f"{'run' if runs else 'look'} {path}")


def write_played(names_file):
    names = open(names_file, encoding="utf-8").read().splitlines()
    for (name,) in some([(name,) for name in names if name not in STACKING], PLAYED):
        print(name)


def asked(file):
    """The paths that each profile of a list is asked about."""
    found = {}
    for line in open(file, encoding="utf-8"):
        word, rest = line.rstrip("\n").split(" ", 1)
        if word == "profile":
            paths = found.setdefault(rest, [])
        else:
            paths.append(rest)
    return found


def answers(file):
    """The letters of each list, profile and asker; what became of each operation, by list, profile and operation."""
    letters, verdicts, loaded = {}, {}, None
    for line in open(file, encoding="utf-8", errors="replace"):
        line = line.rstrip("\r\n")
        if of := re.match(r"loaded: (\w+) ", line):
            loaded = of[1]
        elif answer := re.match(r"survey: (\w+) (\S*) (.*)$", line):
            letters[loaded, answer[3], answer[1]] = answer[2]
        elif verdict := re.match(r"verdict: (.*)=(.*)$", line):
            verdicts[loaded, verdict[1]] = verdict[2]
    return letters, verdicts


def compare(one, other, lists):
    profiles = refused = equal = stacked = 0
    stacking, played = set(), len(lists) * PLAYED
    (one, first), (other, second) = answers(one), answers(other)
    operations = sorted(first.keys() | second.keys())
    wrong = [
        f"{' '.join(key)}: {first.get(key)} and {second.get(key)}"
        for key in operations
        if first.get(key) != second.get(key)
    ]
    same = len(operations) - len(wrong)
    if same < 150 * played:
        wrong.append("too few operations to compare")
    for file in lists:
        for name, paths in asked(file).items():
            profiles += 1
            for who, acts in ACTS.items():
                key = Path(file).stem, name, who
                a, b = one.get(key, ""), other.get(key, "")
                if len(a) != len(paths) * len(acts) or len(a) != len(b):
                    wrong.append(f"{name}, {who}: not played: {a[:40]!r} and {b[:40]!r}")
                    continue
                for at, (x, y) in enumerate(zip(a, b)):
                    act, path = acts[at % len(acts)], paths[at // len(acts)]
                    if x == y == "-":
                        continue
                    refused += x == "a"
                    if x == y:
                        equal += 1
                    elif name in STACKING and act + x + y == "x.a":
                        stacked += 1
                        stacking.add(name)
                    else:
                        wrong.append(f"{name}: {who} {act} {path}: {x} and {y}")
    wrong += [f"{name}: nothing of it leads to several profiles" for name in STACKING - stacking]
    if equal < 100 * profiles or not refused:
        wrong.append("too few verdicts to compare")
    for line in wrong[:60]:
        print(f"FAILED  {line}")
    print(f"{profiles} profiles: {refused} refusals; {stacked} executions that lead to several profiles")
    print(f"{played} profiles: {len(operations)} operations")
    print(f"{same + equal + stacked} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["list", rules_file, names_file]:
            write_list(rules_file, names_file)
        case ["played", names_file]:
            write_played(names_file)
        case ["compare", one, other, *lists]:
            sys.exit(compare(one, other, lists))
        case _:
            sys.exit(__doc__)
