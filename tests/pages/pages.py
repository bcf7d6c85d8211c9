#!/usr/bin/env python3
"""Reads the commands of a page of the documentation, and judges what they printed.

    pages.py commands PAGE.md DIR        writes each command of the page as DIR/N.sh, and DIR/commands: a line `N READER` for each
    pages.py judge PAGE.md DIR           says of each command whether DIR/N.out is what the page says; DIR/N.ok: it succeeded

docs/dev/testing.md says how a page is written. In short: a block of code is a list of commands, or a session with the prompts
`$ ` (alice) and `# ` (root), or has a mark, a comment in the line before it:

    <!-- as: root -->             who types it, if that is not the page's usual reader
    <!-- file: PATH -->           the block is a file, which the reader saves there
    <!-- printed -->              the block is what the command before it prints
    <!-- lasts -->                the last command of the block goes on while the next ones are done
    <!-- not run: REASON -->      nothing of the block is run or compared
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

READERS = {"$": "alice", "#": "root"}
MARKS = ("as", "file", "printed", "lasts", "not run")

# Pages of which one section has the commands; all others are commands as a whole.
SECTIONS = {"README.md": "Try it on your machine"}

# What differs from run to run: numbers of processes and records, times.
VARIES = re.compile(
    r"(?<=\w\()\d+(?=\))|(?<=\bpid )\d+|(?<=\bprocess )\d+|(?<=@)\d+|\b\d\d:\d\d:\d\d\b|\b\d{4}-\d\d-\d\d\b"
)


@dataclass
class Block:
    """A block of code: its first line, its lines without their indentation, the marks before it."""

    number: int
    lines: list
    fenced: bool
    marks: dict


@dataclass
class Command:
    """A command: its line in the page, the reader if the page says it, what the shell gets, and what is printed."""

    number: int
    reader: str
    script: str
    # lines that are all of the output; or one that is among it
    printed: list = None
    among: str = None


def blocks(text):
    """The blocks of code of a page.

    >>> [(b.number, b.lines, b.marks) for b in blocks("Do\\n\\n<!-- as: root -->\\n    a\\n\\n    b\\n\\ntext\\n```\\nc\\n```")]
    [(4, ['a', '', 'b'], {'as': 'root'}), (10, ['c'], {})]
    >>> [b.lines for b in blocks("1. Ask:\\n\\n       $ a\\n       b\\n\\n   It is text\\n       as is this\\n")]
    [['$ a', 'b']]
    """
    lines = text.splitlines()
    marks, at = {}, 0
    while at < len(lines):
        line = lines[at]
        begins = at == 0 or not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("<!--")
        if mark := re.fullmatch(r"\s*<!-- ([a-z ]+?)(?:: (.*))? -->", line):
            marks[mark[1]] = mark[2] or ""
        elif line.lstrip().startswith("```"):
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == "```"), len(lines))
            yield Block(at + 2, [x.rstrip() for x in lines[at + 1 : end]], True, marks)
            marks, at = {}, end
        elif begins and re.match(r" {4}", line):
            end = at
            while end < len(lines) and (not lines[end].strip() or re.match(r" {4}", lines[end])):
                end += 1
            found = "\n".join(lines[at:end]).rstrip().splitlines()
            margin = min(len(x) - len(x.lstrip()) for x in found if x.strip())
            yield Block(at + 1, [x[margin:].rstrip() for x in found], False, marks)
            marks, at = {}, end - 1
        elif line.strip():
            marks = {}
        at += 1


def section(name, text):
    """The part of a page that has the commands, in its own lines; the others are empty."""
    if name not in SECTIONS:
        return text
    inside, kept = False, []
    for line in text.splitlines():
        if line.startswith("## "):
            inside = line == f"## {SECTIONS[name]}"
        kept.append(line if inside else "")
    return "\n".join(kept)


def session(block, reader):
    """The commands of a block with prompts, each with what it prints.

    >>> [(c.reader, c.script, c.printed) for c in session(Block(1, ["$ a", "x", "# b"], True, {}), None)]
    [('alice', 'a', ['x']), ('root', 'b', None)]
    """
    found = []
    for number, line in enumerate(block.lines, block.number):
        if line[:2] in ("$ ", "# "):
            found.append(Command(number, reader or READERS[line[0]], line[2:]))
        else:
            found[-1].printed = [*(found[-1].printed or []), line]
    return found


def typed(block, reader):
    """The commands of a block without prompts: one a line, but for what a backslash continues.

    >>> [(c.number, c.script, c.among) for c in typed(Block(1, ["a \\\\", "  b", "c   # → d"], False, {}), None)]
    [(1, 'a \\\\\\n  b', None), (3, 'c', 'd')]
    """
    found = []
    for number, line in enumerate(block.lines, block.number):
        if found and found[-1].script.endswith("\\"):
            found[-1].script += "\n" + line
        elif line:
            command, _, among = line.partition("# → ")
            found.append(Command(number, reader, command.rstrip(), among=among or None))
    return found


def read(path):
    """The commands of a page, and what is wrong with the page: pairs of a line and words."""
    commands, wrong = [], []
    for block in blocks(section(path.name, path.read_text(encoding="utf-8"))):
        marks, reader = block.marks, block.marks.get("as")
        wrong += [(block.number - 1, f"there is no mark `{mark}`") for mark in marks if mark not in MARKS]
        if reader not in (None, *READERS.values()):
            wrong.append((block.number - 1, f"the readers are alice and root, not {reader}"))
        if "not run" in marks:
            if len(marks["not run"].split()) < 3:
                wrong.append((block.number - 1, "a block that is not run has a reason, of three words at least"))
        elif "file" in marks:
            text = "\n".join(block.lines)
            commands.append(Command(block.number, reader, f"cat >{marks['file']} <<'END OF FILE'\n{text}\nEND OF FILE"))
        elif "printed" in marks:
            if not commands or commands[-1].printed or commands[-1].among:
                wrong.append((block.number, "no command before it has this as what it prints"))
            else:
                commands[-1].printed = block.lines
        elif block.lines and block.lines[0][:2] in ("$ ", "# "):
            commands += session(block, reader)
        elif block.fenced:
            wrong.append((block.number, "a block in fences is a session, or has a mark before it"))
        else:
            commands += typed(block, reader)
        if "lasts" in marks and commands:
            commands[-1].script = re.sub(r"\s+# .*", "", commands[-1].script) + " &"
    return commands, wrong


def plain(line):
    """A line without what differs from run to run, and with single spaces.

    >>> plain("2026-11-28 10:12:05 @7  sh(41)  is process 41")
    'N N @N sh(N) is process N'
    """
    return VARIES.sub("N", re.sub(r"\s+", " ", line).rstrip())


def pattern(line):
    """The expression for a line, in which … is anything."""
    return "[^\n]*".join(re.escape(part) for part in plain(line).split("…")) + "\n"


def is_printed(expected, lines):
    """Whether these lines are what is expected; a line `…` stands for any lines.

    >>> is_printed(["a  … b", "…", "d"], ["a x b", "c", "", "d"])
    True
    >>> is_printed(["a"], ["a", "b"]) or is_printed(["…", "b"], ["b", "c"])
    False
    >>> is_printed(["sh(1) at workstation.plm:23"], ["sh(2) at workstation.plm:24"])
    False
    """
    expression = "".join(r"(?:[^\n]*\n)*?" if line.strip() == "…" else pattern(line) for line in expected)
    return re.fullmatch(expression, "".join(plain(line) + "\n" for line in lines)) is not None


def judged(command, succeeded, ended, lines):
    """What is wrong with a command, or None. One without output in the page has to succeed."""
    if not ended:
        return "it did not come to its end"
    if command.printed is not None:
        return None if is_printed(command.printed, lines) else "another output is expected"
    if command.among is not None:
        return None if any(is_printed([command.among], [line]) for line in lines) else "a line is missing"
    return None if succeeded else "it failed"


def judge(path, directory):
    """Says of each command whether it did what the page says."""
    for n, command in enumerate(read(path)[0], 1):
        succeeded, ended = (directory / f"{n}.ok").exists(), (directory / f"{n}.no").exists()
        out = directory / f"{n}.out"
        lines = out.read_text(encoding="utf-8", errors="replace").splitlines() if out.exists() else []
        wrong = judged(command, succeeded, succeeded or ended, lines)
        name = f"{path.name}:{command.number} {command.script.splitlines()[0]}"
        print(f"FAILED  {name}: {wrong}" if wrong else f"ok      {name}")
        if wrong:
            expected = command.printed or ([command.among] if command.among else [])
            for title, said in (("expected", expected), ("printed", lines[-40:])):
                print(f"        {title}:")
                print("".join(f"        | {line}\n" for line in said), end="")


def main():
    what, path, directory = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if what == "judge":
        judge(path, directory)
        return
    commands = read(path)[0]
    for n, command in enumerate(commands, 1):
        (directory / f"{n}.sh").write_text(command.script + "\n", encoding="utf-8")
    table = "".join(f"{n} {command.reader or '-'}\n" for n, command in enumerate(commands, 1))
    (directory / "commands").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
