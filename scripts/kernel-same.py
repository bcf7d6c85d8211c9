#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the kernel objects of two commits or two trees: does a change leave every program as it was?

    kernel-same.py BEFORE [AFTER] [--rename OLD=NEW]... [--compile] [--headers DIR]

BEFORE and AFTER are commits, or directories that have `kernel/`. Without AFTER it is the tree that the script is in.
The script prints `identical`, or one line for each difference, and ends with status 0 or 1. Status 2 means
that a tree does not compile.

Where the preprocessed sources of both are the same, the objects are, too, and nothing is compiled (`--compile` compiles anyway).
Otherwise both are compiled, without inlining being changed in any way, and compared:
  - each function: its section, size, linkage and instructions. A call, a map or a variable counts by the name of what it refers to
    and by its content where it is a constant; a CO-RE relocation counts by the type and the path in it. Names of functions,
    source lines, numbers of types and the order in the object do not count: a function that has another name is found by its instructions,
    and the script prints which one it took for which. Only the functions that differ by themselves are printed, not their callers;
  - each map and each variable: its size, its section and its first content;
  - BTF: each type that has a name (the maps' definitions and the types that user space shares are among these), each function's
    prototype and the tags of its arguments.
`--rename` names variables, types and fields that the change renames on purpose, as a regular expression and its replacement
that are applied to the names of BEFORE (and to what the sources say, before they are compared).
`--headers` names the directory that has `bpf/bpf_helpers.h`; without it the build's own copy is looked for in target/.
"""

import argparse
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# As crates/monitor/build/main.rs and libbpf-cargo call it.
FLAGS = [
    "-mcpu=v3",
    "-D__TARGET_ARCH_x86",
    "-I/usr/include/x86_64-linux-gnu",
    "-Wall",
    "-Werror",
    "-fno-stack-protector",
    "-g",
    "-O2",
    "-target",
    "bpf",
]


def clang():
    return os.environ.get("TIDEGATE_CLANG") or shutil.which("clang-19") or "clang"


def bpf_headers(given):
    """The directory that has bpf/bpf_helpers.h: the given one, the build's, or the system's."""
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(TREE, "target"))
    found = sorted(glob.glob(target + "/**/libbpf-sys-*/out/include/bpf/bpf_helpers.h", recursive=True))
    for header in [os.path.join(given, "bpf/bpf_helpers.h")] if given else found:
        if os.path.exists(header):
            return os.path.dirname(os.path.dirname(os.path.abspath(header)))
    return "/usr/include"


def class_header(classmap):
    """The header of classes and permissions, as crates/flask/classmap.rs writes it."""
    sets, out, number = {}, [], 0
    for line in open(classmap):
        if line.startswith("#") or ": " not in line:
            continue
        name, words = line.rstrip("\n").split(": ", 1)
        permissions = []
        for word in words.split():
            permissions += sets[word[1:]] if word.startswith("@") else [word]
        if name.startswith("set "):
            sets[name[4:]] = permissions
            continue
        number += 1
        out.append(f"#define SECCLASS_{name.upper()} {number}")
        out += [f"#define {name.upper()}__{p.upper()} (1u << {bit})" for bit, p in enumerate(permissions)]
    out.append(f"#define SECCLASS_COUNT {number + 1}")
    return "\n".join(out) + "\n"


class Tree:
    """The kernel's part of one side, unpacked."""

    def __init__(self, given, headers, scratch):
        self.name = given
        if os.path.isdir(os.path.join(given, "kernel")):
            self.kernel = os.path.join(os.path.abspath(given), "kernel")
        else:
            archive = subprocess.run(["git", "-C", TREE, "archive", given, "kernel"], check=True, capture_output=True)
            subprocess.run(["tar", "-x", "-C", scratch], input=archive.stdout, check=True)
            self.kernel = os.path.join(scratch, "kernel")
        self.out = os.path.join(scratch, "out")
        os.makedirs(self.out)
        with open(os.path.join(self.out, "te_classes.h"), "w") as f:
            f.write(class_header(os.path.join(self.kernel, "te/classmap")))
        self.flags = FLAGS + ["-I", self.kernel, "-I", self.out, "-I", headers]

    def sources(self):
        return sorted(os.path.basename(f) for f in glob.glob(self.kernel + "/*.bpf.c"))

    def clang(self, source, *more):
        done = subprocess.run(
            [clang(), *self.flags, os.path.join(self.kernel, source), *more], capture_output=True, text=True
        )
        if done.returncode:
            print(f"{self.name}: {source} does not compile\n{done.stderr}", file=sys.stderr)
            sys.exit(2)
        return done.stdout

    def preprocessed(self, source):
        # where lines are broken does not count
        text = re.sub(r"\s+", " ", self.clang(source, "-E", "-P"))
        return re.sub(r" ?([^\w\s]) ?", r"\1", text)

    def object(self, source):
        out = os.path.join(self.out, source[:-2] + ".o")
        self.clang(source, "-c", "-o", out)
        return Object(open(out, "rb").read())


class Btf:
    """Types by their kind and name, each as a text that does not depend on numbers and order."""

    KINDS = "void int ptr array struct union enum fwd typedef volatile const restrict func func_proto var datasec float decl_tag type_tag enum64"

    def __init__(self, data):
        self.kinds = self.KINDS.split()
        _, _, _, head, type_off, type_len, str_off, str_len = struct.unpack_from("<HBBIIIII", data)
        self.strings = data[head + str_off : head + str_off + str_len]
        self.types = [("void", "", 0, 0, [])]
        at, end = head + type_off, head + type_off + type_len
        while at < end:
            name, info, size = struct.unpack_from("<III", data, at)
            at += 12
            kind, count, flag = self.kinds[info >> 24 & 31], info & 0xFFFF, info >> 31
            words = {"struct": 3, "union": 3, "enum": 2, "func_proto": 2, "datasec": 3, "enum64": 3}.get(kind, 0) * count
            words += {"int": 1, "array": 3, "var": 1, "decl_tag": 1}.get(kind, 0)
            body = struct.unpack_from(f"<{words}I", data, at)
            at += 4 * words
            self.types.append((kind, self.text(name), flag, count if kind == "func" else size, body))
            if kind == "func":
                self.types[-1] = (kind, self.text(name), count, size, body)

    def text(self, at):
        return self.strings[at : self.strings.index(b"\0", at)].decode()

    def short(self, number):
        """A type where another one refers to it: by name if it has one."""
        kind, name, _, size, body = self.types[number]
        if kind in ("struct", "union", "enum", "enum64", "typedef", "fwd", "int", "float") and name:
            return f"{'struct' if kind == 'fwd' else kind} {name}"
        return self.shape(number)

    def shape(self, number):
        """All that a type says, but for names of arguments."""
        kind, name, flag, size, body = self.types[number]
        if kind in ("struct", "union"):
            fields = [
                f"{self.text(body[i])}:{self.short(body[i + 1])}@{body[i + 2]}" for i in range(0, len(body), 3)
            ]
            return f"{kind} {name} {size} {flag} {{{'; '.join(fields)}}}"
        if kind in ("enum", "enum64"):
            step = 2 if kind == "enum" else 3
            each = [f"{self.text(body[i])}={body[i + 1:i + step]}" for i in range(0, len(body), step)]
            return f"{kind} {name} {size} {flag} {{{'; '.join(each)}}}"
        if kind == "array":
            return f"{self.short(body[0])}[{body[2]}]"
        if kind == "func_proto":
            return f"{self.short(size)}({', '.join(self.short(body[i + 1]) for i in range(0, len(body), 2))})"
        if kind in ("int", "float"):
            return f"{kind} {name} {size} {body}"
        if kind == "datasec" or kind == "void":
            return kind
        if kind == "ptr":
            return self.short(size) + "*"
        return f"{kind} {name if kind in ('typedef', 'type_tag', 'decl_tag') else ''} {flag} {self.short(size)}"

    def named(self):
        """For each kind and name the set of shapes, with the tags that belong to them."""
        tags = defaultdict(list)
        for kind, name, _, size, body in self.types:
            if kind == "decl_tag":
                tags[size].append((name, body[0]))
        all_types = defaultdict(set)
        for number, (kind, name, flag, size, body) in enumerate(self.types):
            if name and kind in ("struct", "union", "enum", "enum64", "typedef", "var", "func", "int"):
                linkage = f" linkage {body[0]}" if kind == "var" else ""
                all_types[kind, name].add(self.shape(number) + linkage + "".join(map(str, sorted(tags[number]))))
        return all_types


class Function:
    def __init__(self, name, section, size, binding):
        self.name, self.section, self.size, self.binding = name, section, size, binding
        self.body = []  # instructions, with ("call", name) and ("function", name) where another function is meant

    def refers(self):
        return [part[1] for part in self.body if part[0] in ("call", "function")]


class Object:
    def __init__(self, data):
        self.data = data
        shoff = struct.unpack_from("<Q", data, 40)[0]
        count, names = struct.unpack_from("<HH", data, 60)
        heads = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i) for i in range(count)]
        text = heads[names][4]
        self.sections = [(self.string(text + h[0]), h) for h in heads]
        self.symbols = []
        for name, h in self.sections:
            if h[1] == 2:  # SHT_SYMTAB
                strings = self.sections[h[6]][1][4]
                for at in range(h[4], h[4] + h[5], 24):
                    n, info, _, section, value, size = struct.unpack_from("<IBBHQQ", data, at)
                    self.symbols.append((self.string(strings + n), info & 15, info >> 4, section, value, size))
        self.btf = Btf(self.content(".BTF"))
        self.core = self.core_relocations(self.content(".BTF.ext"))
        self.variables = {}
        self.functions = {}
        self.at = {}
        for name, kind, binding, section, value, size in self.symbols:
            if kind == 2 and section:
                f = Function(name, self.sections[section][0], size, binding)
                self.functions[name] = f
                self.at[section, value] = name
            elif kind == 1:
                self.variables[name] = (self.sections[section][0], size, self.bytes_of(section, value, size).hex())
        self.relocations = defaultdict(dict)
        for name, h in self.sections:
            if h[1] == 9:  # SHT_REL
                for at in range(h[4], h[4] + h[5], 16):
                    offset, info = struct.unpack_from("<QQ", data, at)
                    self.relocations[h[7]][offset] = self.symbols[info >> 32]
        for name, kind, _, section, value, size in self.symbols:
            if kind == 2 and section:
                self.functions[name].body = list(self.instructions(section, value, size))

    def string(self, at):
        return self.data[at : self.data.index(b"\0", at)].decode()

    def content(self, wanted):
        for name, h in self.sections:
            if name == wanted:
                return self.data[h[4] : h[4] + h[5]]
        return b""

    def bytes_of(self, section, at, size):
        _, h = self.sections[section]
        return b"" if h[1] == 8 else self.data[h[4] + at : h[4] + at + size]  # 8: SHT_NOBITS

    def core_relocations(self, ext):
        found = {}
        _, _, _, head, _, _, _, _, off, length = struct.unpack_from("<HBBIIIIIII", ext)
        at, end = head + off + 4, head + off + length
        while at < end:
            section, count = struct.unpack_from("<II", ext, at)
            at += 8
            for _ in range(count):
                offset, number, access, kind = struct.unpack_from("<IIII", ext, at)
                at += 16
                what = (self.btf.short(number), self.btf.text(access), kind)
                found[self.btf.text(section), offset] = what
        return found

    def target(self, symbol, addend):
        """What a reference means: a function, a named variable, or a constant's content."""
        name, kind, _, section, value, _ = symbol
        if kind != 3 or not section:
            return ("symbol", name, addend)
        if (section, addend) in self.at:
            return ("function", self.at[section, addend])
        for other, k, _, s, v, size in self.symbols:
            if k == 1 and s == section and v <= addend < v + size:
                return ("symbol", other, addend - v)
        where, h = self.sections[section]
        rest = self.bytes_of(section, addend, h[5] - addend)
        return ("constant", where, rest[: rest.find(b"\0") + 1] if ".str" in where else addend)

    def instructions(self, section, start, size):
        name, h = self.sections[section]
        at = start
        while at < start + size:
            code, registers, offset, imm = struct.unpack_from("<BBhi", self.data, h[4] + at)
            symbol = self.relocations[section].get(at)
            core = self.core.get((name, at), ())
            if code == 0x85 and registers >> 4 == 1:  # a call of a function in the object
                if symbol is None:
                    yield ("call", self.at[section, at + (imm + 1) * 8])
                elif symbol[1] == 3:
                    yield ("call", self.at[symbol[3], (imm + 1) * 8])
                else:
                    yield ("call" if symbol[0] in self.functions else "extern", symbol[0])
            elif code == 0x18:
                high = struct.unpack_from("<i", self.data, h[4] + at + 12)[0]
                if core and core[2] in (6, 7):  # a type's number, which the loader puts in: `core` has its name
                    imm = 0
                if symbol is None:
                    yield ("load", registers, imm, high, core)
                else:
                    yield self.target(symbol, imm) + (registers, core)
                at += 8
            else:
                yield (code, registers, offset, imm, core) + ((symbol[0],) if symbol else ())
            at += 8


def hashes(functions):
    """For each function a value of its instructions and those of all that it calls, without any name of a function."""
    known = {}

    def value(name):
        if name not in known:
            known[name] = hash("recursive")
            f = functions[name]
            parts = [(p[0], value(p[1])) + tuple(p[2:]) if p[0] in ("call", "function") else p for p in f.body]
            known[name] = hash((f.section, f.size, f.binding, tuple(parts)))
        return known[name]

    return {name: value(name) for name in functions}


def pairs(before, after):
    """Which function of `before` is which of `after`: by name, or, of those with another name, by the instructions."""
    same = {name: name for name in before if name in after}
    lost = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    a, b = hashes(before), hashes(after)
    for name in lost:
        like = [n for n in new if b[n] == a[name] and n not in same.values()]
        # of several that are equal the one whose name ends alike
        like.sort(key=lambda n: -len(os.path.commonprefix([n[::-1], name[::-1]])))
        if like:
            same[name] = like[0]
    # a caller of a function that differs is found by its section, where that has one function on both sides
    for name in lost:
        if name not in same:
            there = lambda fs, s: [n for n, f in fs.items() if f.section == s]
            here, other = there(before, before[name].section), there(after, before[name].section)
            free = [n for n in other if n not in same.values()]
            if before[name].section != ".text" and len(free) == 1 and sum(n not in same for n in here) == 1:
                same[name] = free[0]
    return same


def compare(source, before, after, rename):
    """The differences, and the names that changed."""
    out = []
    same = pairs(before.functions, after.functions)
    for name in sorted(before.functions):
        if name not in same:
            out.append(f"function {name}: gone, or changed under another name")
    for name in sorted(set(after.functions) - set(same.values())):
        out.append(f"function {name}: new, or changed under another name")
    renamed_part = lambda p: tuple(rename(x) if isinstance(x, str) else x for x in p)
    for name, other in sorted(same.items()):
        f, g = before.functions[name], after.functions[other]
        if (f.section, f.binding) != (g.section, g.binding):
            out.append(f"function {name}: section {f.section} linkage {f.binding}, now {g.section} {g.binding}")
        old = []
        for p in f.body:
            if p[0] in ("call", "function"):
                old.append((p[0], same.get(p[1], p[1])) + tuple(p[2:]))
            else:
                core = tuple(renamed_part(x) if isinstance(x, tuple) else x for x in p)
                old.append(renamed_part(core[:2]) + core[2:] if p[0] in ("symbol", "extern") else core)
        if old != g.body:
            first = next((i for i, (p, q) in enumerate(zip(old, g.body)) if p != q), min(len(old), len(g.body)))
            at = lambda body: body[first] if first < len(body) else "the end"
            out.append(
                f"function {name}: {f.size // 8} instructions, now {g.size // 8}; at {first}: {at(old)}, now {at(g.body)}"
            )
    variables = {rename(n): v for n, v in before.variables.items()}
    for name in sorted(variables.keys() | after.variables.keys()):
        if variables.get(name) != after.variables.get(name):
            short = lambda v: v and (v[0], v[1])
            out.append(f"variable {name}: {short(variables.get(name))}, now {short(after.variables.get(name))}")
    named, other = defaultdict(set), after.btf.named()
    for (kind, name), shapes in before.btf.named().items():
        name = same.get(name, name) if kind == "func" else rename(name)
        named[kind, name] |= {rename(shape) for shape in shapes}
    for key in sorted(named.keys() | other.keys()):
        if named.get(key) != other.get(key):
            only = lambda a, b: " | ".join(sorted((a.get(key) or set()) - (b.get(key) or set())))
            out.append(f"type {' '.join(key)}: {only(named, other) or 'none'}, now {only(other, named) or 'none'}")
    changed = [f"{name} -> {other}" for name, other in sorted(same.items()) if name != other]
    return [f"{source}: {line}" for line in out], changed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default=TREE)
    parser.add_argument("--rename", action="append", default=[])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--headers")
    options = parser.parse_args()
    rules = [(re.compile(old), new) for old, _, new in (r.partition("=") for r in options.rename)]

    def rename(text):
        for old, new in rules:
            text = old.sub(new, text)
        return text

    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        headers = bpf_headers(options.headers)
        before, after = Tree(options.before, headers, one), Tree(options.after, headers, two)
        different, changed, how = [], [], "the preprocessed sources are the same"
        if before.sources() != after.sources():
            different.append(f"objects: {before.sources()}, now {after.sources()}")
        for source in sorted(set(before.sources()) & set(after.sources())):
            if not options.compile and rename(before.preprocessed(source)) == after.preprocessed(source):
                continue
            how = "compiled and compared"
            lines, names = compare(source, before.object(source), after.object(source), rename)
            different += lines
            changed += names
    for line in changed:
        print(f"renamed: {line}")
    for line in different:
        print(f"differs: {line}")
    print(f"{len(different)} differences" if different else f"identical ({how})")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
