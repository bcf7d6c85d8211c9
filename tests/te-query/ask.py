"""Asks setools' own sesearch and seinfo many questions about one policy, which is read once.

ask.py POLICY PROGRAMS OUT < QUESTIONS     a question a line; the answer to question N goes to OUT/N.theirs
"""
import contextlib
import io
import runpy
import shlex
import sys

import setools

path, programs, out = sys.argv[1:]
policy = setools.SELinuxPolicy(path)
setools.SELinuxPolicy = lambda _: policy
for number, line in enumerate(sys.stdin, 1):
    program, *words = shlex.split(line)
    # what is asked comes last, as an option without a name would take the policy for one
    sys.argv = [program, path, *words]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            runpy.run_path(f"{programs}/{program}", run_name="__main__")
        text = said.getvalue()
    except SystemExit as end:
        text = "refused\n" if end.code else said.getvalue()
    with open(f"{out}/{number}.theirs", "w", encoding="utf-8") as answer:
        answer.write(text)
