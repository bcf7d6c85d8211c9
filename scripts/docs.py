#!/usr/bin/env python3
"""Checks the documentation and comments, and prints a line for each thing that is wrong: docs.py

- A link leads to a file of the tree, and to a heading that is there.
- A page that a file of the tree names (`docs/DIR/PAGE.md`) exists.
- Each page below docs/ is in the map of pages, docs/README.md.
- The figures of cost that README.md and docs/explain/cost.md name are those of docs/dev/cost.md.
- No line is longer than WIDTH, but tables, code, and words that cannot be broken. README.md has no exceptions.
- No sentence has a headless `who` as its subject or object: "a process that …" says which.
- Each block of commands of README.md, docs/start and docs/how-to is one that tests/pages runs, or says why it is not run.
"""

import doctest
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, "tests/pages")

import pages as commands

WIDTH = 88
README_LINES = 90
# The page of cost that the lab writes, and what other pages say of it.
COST = Path("docs/dev/cost.md")
COST_NAMED = [
    (Path("README.md"), "median {} %, at most {} %", ["Tidegate, governed"]),
    (Path("README.md"), "{} and {}", ["SELinux, unconfined_t", "AppArmor, confined"]),
    (
        Path("docs/explain/cost.md"),
        "| {} % | {} % |",
        ["Tidegate, governed", "Tidegate, guard attached", "SELinux, unconfined_t", "AppArmor, confined", "Landlock"],
    ),
]

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PAGE = re.compile(r"(?<![\w/-])docs/(?:[a-z-]+/)*[a-z-]+\.(?:md|html|json)")
HEADLESS = re.compile(r"(?:^|[.;:,(] |\b(?:to|of|by|for|from|and|or|that|as|is|with) )[Ww]ho(?:ever|m)? (?!\w+ you\b)")

# Where comments are read, and the comments of a file by the end of its name. Text in quotes is matched first, so that it
# is not taken for a comment. Comments of whole lines that follow each other are one.
COMMENTED = {"kernel", "crates", "tests", "examples", "include"}
C_COMMENT = r"""/\*.*?\*/|(?://[^\n]*(?:\n[ \t]*(?=//))?)+"""
C = re.compile(r"""'(?:\\.[^']*|[^'\\\n])'|"(?:\\.|[^"\\])*"|(?P<comment>%s)""" % C_COMMENT, re.S)
RUST = re.compile(r"""\br(#*)".*?"\1|'(?:\\[^']*|[^'\\])'|"(?:\\.|[^"\\])*"|(?P<comment>%s)""" % C_COMMENT, re.S)
HASH = re.compile(r"""^(?P<comment>[ \t]*# [^\n]*(?:\n[ \t]*# [^\n]*)*)""", re.M)
COMMENTS = {".c": C, ".h": C, ".rs": RUST, ".sh": HASH, ".py": HASH, ".pl": HASH}
# How each line of a comment begins, and what in it is code.
MARGIN = re.compile(r"^[ \t]*(?:/\*+|//[/!]?|\*(?!/)|#)?[ \t]*", re.M)
CODE = re.compile(r"`[^`]*`")
# In comments a `who` has one of these words before it: a noun or a pronoun, or a verb that a question follows.
WHO = re.compile(r"(?<![\w'])[Ww]hom?(?![\w'])")
NOUNS = "all|another|anybody|everybody|first|nobody|ones?|operator|others?|person|process|reader|somebody|stranger|those|two|users?"
VERBS = "asks?|knows?|said|says?|tells?"
BEFORE = re.compile(rf"\b(?:{NOUNS}|{VERBS})\s$")


def tracked():
    """All files of the tree, those that are new too."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")
    return sorted({Path(name) for name in names if name and Path(name).is_file()})


def anchor(heading):
    """What a heading is called in links, as the common renderers have it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def lines(page):
    """The page's lines: number, text, and whether it is prose, neither code nor a table's row."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = line.lstrip().startswith("```")
        prose = not (fenced or fence or line.startswith(("    ", "|", "#")))
        yield number, line, prose
        fenced ^= fence


def headings(page):
    """The names of all headings of a page."""
    fenced, found = False, set()
    for _, line, _ in lines(page):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and re.match(r"#+ ", line):
            found.add(anchor(line.lstrip("#")))
    return found


def broken_links(pages):
    """Links that lead nowhere."""
    known = {page: headings(page) for page in pages}
    for page in pages:
        for number, line, _ in lines(page):
            for target in LINK.findall(line):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, heading = target.partition("#")
                # without `..`, as the pages' names are
                to = Path(*((page.parent / path).resolve().relative_to(Path.cwd()).parts)) if path else page
                if not to.exists():
                    yield f"{page}:{number}: there is no {to}"
                elif heading and to in known and heading not in known[to]:
                    yield f"{page}:{number}: {to} has no heading #{heading}"


def missing_pages(files):
    """Pages that a file names and that are not there."""
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for name in PAGE.findall(line):
                if not Path(name).exists():
                    yield f"{file}:{number}: there is no {name}"


def unmapped(pages):
    """Pages below docs/ that the map of pages does not have."""
    mapped = Path("docs/README.md")
    text = mapped.read_text(encoding="utf-8")
    targets = {target.partition("#")[0] for target in LINK.findall(text)}
    for page in pages:
        if page.parts[0] == "docs" and page != mapped and str(page.relative_to("docs")) not in targets:
            yield f"{mapped}: {page} is not in it"


def too_long(page):
    """Lines of a page that are longer than they may be."""
    strict = page == Path("README.md")
    for number, line, prose in lines(page):
        breakable = prose and len(LINK.sub("", line).split()) > 1
        if len(line) > WIDTH and (strict or breakable):
            yield f"{page}:{number}: {len(line)} columns, of {WIDTH}"
    if strict and number > README_LINES:
        yield f"{page}: {number} lines, of {README_LINES}"


def headless(page):
    """Sentences with a `who` that has no noun before it. Questions may have one."""
    for number, line, prose in lines(page):
        if prose and HEADLESS.search(line) and "?" not in line:
            yield f"{page}:{number}: a headless `who`: {line.strip()}"


def comments(file):
    """The comments of a file: the line at which each begins, and its text, with its code left out."""
    text = file.read_text(encoding="utf-8")
    for found in COMMENTS[file.suffix].finditer(text):
        if comment := found["comment"]:
            blank = CODE.sub(lambda code: re.sub(r"[^\n]+", "`", code[0]), comment)
            yield text.count("\n", 0, found.start()) + 1, MARGIN.sub("", blank)


def headless_comment(file):
    """Comments with a `who` or `whom` that has no noun before it. A question that begins with it may be one."""
    for number, text in comments(file):
        for who in WHO.finditer(text):
            before, after = text[: who.start()], text[who.end() :]
            is_question = re.search(r"(?:^|[.;:?]\s)$", before) and re.match(r"[^.;]*\?", after)
            if not is_question and not BEFORE.search(before):
                line = before.count("\n")
                yield f"{file}:{number + line}: a headless `who`: {text.splitlines()[line]}"


def unrun(page):
    """Blocks of a page for readers that tests/pages can neither run nor leave out; and a page without what its reader has."""
    if page != Path("README.md") and page.parent not in (Path("docs/start"), Path("docs/how-to")):
        return
    found, wrong = commands.read(page)
    for number, words in wrong:
        yield f"{page}:{number}: {words}"
    if found and not Path(f"tests/pages/{page.stem}.sh").exists():
        yield f"{page}: there is no tests/pages/{page.stem}.sh, which prepares what its reader has"


def costs():
    """Figures of cost that are not those of the page that the lab writes."""
    rows = re.findall(r"^\| ([^|]+) \| \d+ \| [^|]+ \| \+([\d.]+) \| \+([\d.]+) \|", COST.read_text(encoding="utf-8"), re.M)
    measured = {name.replace("\\", ""): [f"{float(figure):.1f}".removesuffix(".0") for figure in both] for name, *both in rows}
    for page, form, systems in COST_NAMED:
        text = " ".join(page.read_text(encoding="utf-8").split())
        for system in systems:
            words = form.format(*measured[system])
            if words not in text:
                yield f"{page}: does not say `{words}`, as {COST} has it of {system}"


def main():
    """Prints what is wrong, and ends with 1 if anything is."""
    files = tracked()
    pages = [file for file in files if file.suffix == ".md"]
    wrong = [*broken_links(pages), *missing_pages(files), *unmapped(pages), *costs()]
    for page in pages:
        wrong += [*too_long(page), *headless(page), *unrun(page)]
    sources = [file for file in files if file.parts[0] in COMMENTED and file.suffix in COMMENTS]
    for source in sources:
        wrong += headless_comment(source)
    if doctest.testmod(commands).failed:
        wrong.append("tests/pages/pages.py: an example in it fails")
    print("\n".join(wrong) or f"{len(pages)} pages, and the comments of {len(sources)} files")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
