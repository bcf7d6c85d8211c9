#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the layout of kernel/, and writes the table of programs in kernel/README.md.

    kernel-check.py layers     every include obeys the layering rule; the exceptions below are all that there are
    kernel-check.py owned      a model's maps and globals are named and placed so that they are in the kernel only with it
    kernel-check.py alone      every header compiles without any other before it (clang; half a minute)
    kernel-check.py table      the table in kernel/README.md says what the sources say, and each program has one attach set
    kernel-check.py write      writes that table

Without an argument it is `layers`, `owned` and `table`, which need no compiler. The last line is `N passed, N failed`.
The layering rule is abi < lib < core < {lomac, profile, te, caps}: a header includes headers of its own folder and of folders
before it. Between the models there is no edge. The recorder is an object of its own that may include all.
"""

import glob
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

TREE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
KERNEL = os.path.join(TREE, "kernel")
README = os.path.join(KERNEL, "README.md")
ATTACH = os.path.join(TREE, "crates/monitor/src/attach.rs")
MODELS = ["lomac", "profile", "te", "caps"]
RANK = {"abi": 0, "lib": 1, "core": 2, "recorder": 4, **{model: 3 for model in MODELS}}

# Edges that are still there, with the reason. An edge that is gone has to go from here, too.
EXCEPTIONS = {
    ("caps/service/message.h", "lomac/net.h"): "the service monitor's program on a message runs lomac's check, too",
}

# The recorder's headers are read in this order, over its own maps.
RECORDER = [
    "recorder/maps.h",
    "lomac/rules.h",
    "lib/path_walk.h",
    "lib/inode_kind.h",
    "lib/file.h",
    "lomac/privilege.h",
    *(f"recorder/{name}.h" for name in ["emit", "files", "names", "sockets", "tasks", "system", "begin"]),
]

# What an includer has to have before: headers that two objects or the tests share, each with its own maps or places.
BEFORE = {
    "lib/kfuncs.h": ["lib/bpf.h"],
    "lib/automaton.h": ["lib/arena.h"],
    "te/rules.h": ["te/server.h"],
    "te/labelling.h": ["te/server.h"],
    "caps/rules.h": ["caps/ask.h"],
    "lomac/map_walk.h": ["lomac/map.h"],
    "lomac/rules.h": ["lib/bpf.h"],
    "profile/rules.h": ["lib/arena.h"],
    "lib/budget.h": ["lib/bpf.h"],
    "lib/path_walk.h": ["core/maps.h"],
    "lomac/system.h": ["lomac/check.h", "lomac/mount_owner.h"],
    **{header: RECORDER[: RECORDER.index(header)] for header in RECORDER if header.startswith("recorder/")},
}

BEGIN, END = "<!-- table: scripts/kernel-check.py write -->\n", "<!-- end of the table -->\n"


def headers():
    return sorted(os.path.relpath(f, KERNEL) for f in glob.glob(KERNEL + "/**/*.h", recursive=True))


def text(header):
    with open(os.path.join(KERNEL, header)) as f:
        return f.read()


def layers():
    """The edges against the rule that are no exceptions, and the exceptions that are no edges."""
    wrong, used = [], set()
    for header in headers():
        folder = header.split("/")[0]
        for other in re.findall(r'^#include "([^"]+)"', text(header), re.M):
            to = other.split("/")[0]
            if not os.path.exists(os.path.join(KERNEL, other)) or folder == "recorder":
                continue
            if folder == to or RANK[to] < RANK[folder]:
                continue
            if (header, other) in EXCEPTIONS:
                used.add((header, other))
            else:
                wrong.append(f"kernel/{header} includes {other}: {folder} may not know {to}")
    wrong += [f"{a} does not include {b} any more: take it from the exceptions" for a, b in EXCEPTIONS.keys() - used]
    return wrong


def owned():
    """The maps of a model beside lomac whose names do not begin with its name, and its globals in another section."""
    wrong = []
    for header in headers():
        model = header.split("/")[0]
        if model not in MODELS[1:]:
            continue
        maps = re.findall(r'^} (\w+) SEC\("\.maps"\)|^TASK_SLOTS\(\w+, (\w+)', text(header), re.M)
        for name in (plain or slots for plain, slots in maps):
            if not name.startswith(model + "_"):
                wrong.append(f"kernel/{header}: the map {name} has to be called {model}_{name}")
        types = r"(?:const )?(?:struct \w+|u8|u16|u32|u64|s32|bool)"
        for name in re.findall(rf"^{types} \*?(\w+)(?:\[[^=\n]*\])?;", text(header), re.M):
            wrong.append(f"kernel/{header}: {name} has to be GLOBAL_OF({model})")
        for other in re.findall(r"(?:GLOBAL_OF|TASK_SLOTS)\((\w+)", text(header)):
            if other != model:
                wrong.append(f"kernel/{header}: a global of {other}")
    return wrong


def same():
    spec = importlib.util.spec_from_file_location("same", os.path.join(TREE, "scripts/kernel-same.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def alone():
    """The headers that do not compile alone."""
    build, wrong = same(), []
    with tempfile.TemporaryDirectory() as scratch:
        tree = build.Tree(TREE, build.bpf_headers(os.environ.get("BPF_HEADERS")), scratch)
        for header in headers():
            source = os.path.join(scratch, "alone.c")
            with open(source, "w") as f:
                f.writelines(f'#include "{each}"\n' for each in [*BEFORE.get(header, []), header])
            # a function that a header declares for another one of its folder
            flags = [*tree.flags, "-Wno-unused-function", "-Wno-undefined-internal"]
            done = subprocess.run([build.clang(), *flags, "-fsyntax-only", source], capture_output=True, text=True)
            if done.returncode:
                errors = [line for line in done.stderr.splitlines() if "error:" in line]
                wrong.append(f"kernel/{header} does not compile alone: {errors[0] if errors else done.stderr}")
    return wrong


def attach_sets():
    """The sets of programs, what their programs' names begin with, and when they are attached, as the monitor's own table has them."""
    with open(ATTACH) as f:
        rows = f.read().split("const SETS: ")[1].split("\n];")[0]
    row = r'// (.+)\n +\("(\w+)", Set::(?:Profile|Te|Caps)?([A-Z]\w+)\)'
    return [(name.lower(), prefix, when) for when, prefix, name in re.findall(row, rows)]


# The first set whose prefix a program's name begins with is the program's.
SETS = attach_sets()


class Program:
    def __init__(self, name, section, header, line):
        self.name, self.header, self.line = name, header, line
        self.optional = section.startswith("?")
        self.kind, _, self.hook = section.lstrip("?").partition("/")

    def model(self):
        return self.header.split("/")[0]

    def set(self):
        return next(((name, when) for name, prefix, when in SETS if self.name.startswith(prefix)), None)


def programs():
    """Every program of the monitor, in the sources' order."""
    found = []
    for header in headers():
        if header.startswith("recorder/"):
            continue
        lines = text(header).split("\n")
        section = None
        for number, line in enumerate(lines, 1):
            if m := re.match(r'SEC\("([^"]+)"\)$', line):
                section = m.group(1)
            elif section and (m := re.match(r"int (?:BPF_PROG\()?(\w+)[,()]", line)):
                found.append(Program(m.group(1), section, header, number))
                section = None
            # a macro that makes a program of each line
            elif m := re.match(r"CAPS_DENY\((\w+), ", line):
                found.append(Program(f"caps_{m.group(1)}", f"lsm/{m.group(1)}", header, number))
    return found


def table():
    """The table's text."""
    all_programs = programs()
    rows = {}
    for p in all_programs:
        if p.kind in ("lsm", "lsm.s"):
            rows.setdefault(p.hook, {}).setdefault(p.model(), []).append(p)
    out = ["| hook | " + " | ".join(MODELS) + " |", "|---|" + "---|" * len(MODELS)]
    for hook in sorted(rows):
        cells = []
        for model in MODELS:
            of = rows[hook].get(model, [])
            cells.append("<br>".join(f"`{p.name}` {link(p)}{mark(p)}" for p in of))
        out.append(f"| `{hook}` | " + " | ".join(cells) + " |")
    out += ["", "Programs that are on no hook of the LSM:", "", "| program | file | kind | set |", "|---|---|---|---|"]
    for p in all_programs:
        if p.kind not in ("lsm", "lsm.s"):
            out.append(f"| `{p.name}` | {link(p)} | `{p.kind}{'/' + p.hook if p.hook else ''}` | {p.set()[0]} |")
    out += ["", "| set | programs | attached |", "|---|---|---|"]
    seen = {}
    for p in all_programs:
        seen.setdefault(p.set(), []).append(p)
    for name, _, when in SETS:
        if (name, when) in seen:
            out.append(f"| {name} | {len(seen.pop((name, when)))} | {when} |")
    return "\n".join(out) + "\n"


def link(p):
    """Without its line, which every change would make stale."""
    return f"[{p.header.split('/', 1)[1]}]({p.header})"


def mark(p):
    marks = [p.set()[0]] if p.set()[0] not in ("base", p.model()) else []
    marks += ["sleeps"] if p.kind == "lsm.s" else []
    marks += ["where the kernel has it"] if p.optional else []
    return f" ({', '.join(marks)})" if marks else ""


def checked_table(write):
    wrong = [f"{p.name} of kernel/{p.header} is in no attach set" for p in programs() if not p.set()]
    names = [p.name for p in programs()]
    wrong += [f"two programs are called {name}" for name in sorted({n for n in names if names.count(n) > 1})]
    if wrong:
        return wrong
    with open(README) as f:
        old = f.read()
    before, rest = old.split(BEGIN)
    new = before + BEGIN + table() + END + rest.split(END)[1]
    if write:
        with open(README, "w") as f:
            f.write(new)
    elif new != old:
        return ["the table in kernel/README.md is stale: scripts/kernel-check.py write"]
    return []


def main():
    checks = {
        "layers": layers,
        "owned": owned,
        "alone": alone,
        "table": lambda: checked_table(False),
        "write": lambda: checked_table(True),
    }
    names = sys.argv[1:] or ["layers", "owned", "table"]
    if any(name not in checks for name in names):
        sys.exit(__doc__)
    failed = 0
    for name in names:
        wrong = checks[name]()
        failed += bool(wrong)
        for line in wrong:
            print(f"{name}: {line}")
        print(f"{'fail' if wrong else 'pass'}: kernel {name}")
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
