"""Compares two programs' answers to the same questions.

same.py DIR    DIR/questions: one a line; DIR/N.theirs, DIR/N.ours: the answers to the Nth; DIR/N.errors: what ours complained of

The order of lines does not count, nor that of names in braces, which setools leave to chance in constraints. What differs is
shown; the last line is `PASSED FAILED`, two numbers.
"""
import difflib
import re
import sys
from pathlib import Path


def even(answer):
    lines = (re.sub(r"\{([^}]*)\}", lambda m: " ".join(sorted(m[1].split())), line) for line in answer.splitlines())
    return sorted(" ".join(line.split()).replace(" )", ")") for line in lines)


out = Path(sys.argv[1])
passed = failed = 0
for number, question in enumerate((out / "questions").read_text().splitlines(), 1):
    theirs, ours = (even((out / f"{number}.{whose}").read_text()) for whose in ("theirs", "ours"))
    if theirs == ours:
        passed += 1
        continue
    failed += 1
    print("FAILED ", question)
    for line in list(difflib.unified_diff(theirs, ours, "setools", "tidegate", lineterm="", n=0))[:8]:
        print(line[:400])
    print((out / f"{number}.errors").read_text()[:400])
print(passed, failed)
