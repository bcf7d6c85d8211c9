#!/usr/bin/env python3
"""Writes the manual's pages that are documents of docs/: man.py VERSION DIRECTORY. `tidegate man` writes those of commands.

A document's first heading says what the page is about, its text before the second heading is the description, and its section
`Synopsis` stands before that. A link is left with its text, with the page's name in the manual if it has one.
"""

import re
import subprocess
import sys
from pathlib import Path

# The document, the section of the manual, the page.
PAGES = [
    ("reference/map-language", 5, "tidegate.plm"),
    ("reference/capability-files", 5, "tidegate.caps"),
    ("reference/audit-log", 5, "tidegate-audit"),
    ("reference/lomac", 7, "tidegate-lomac"),
    ("reference/profiles", 7, "tidegate-profiles"),
    ("reference/selinux", 7, "tidegate-selinux"),
    ("reference/capability", 7, "tidegate-capability"),
    ("reference/object-managers", 7, "tidegate-object-managers"),
    ("reference/service-monitor", 7, "tidegate-services"),
    ("start/install", 7, "tidegate-install"),
    ("start/before-you-enforce", 7, "tidegate-enforcing"),
    ("how-to/fix-a-refusal", 7, "tidegate-refusals"),
    ("how-to/troubleshooting", 7, "tidegate-troubleshooting"),
]
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
# A list right below a paragraph, which go-md2man takes for a part of that.
LIST = re.compile(r"^((?![-|>]|\d+\. |  ).+)\n((?:- |1\. ))", re.M)
COMMENT = re.compile(r"^ *<!-- .* -->\n", re.M)
ALSO = "**tidegate**(1), and all documents: /usr/share/doc/tidegate/docs/README.md"


def sections(text):
    """The page's title, and its sections by their headings; the description has the first lines."""
    title, heading, found, fenced = None, "Description", {}, False
    for line in COMMENT.sub("", text).splitlines():
        fenced ^= line.lstrip().startswith("```")
        if not fenced and line.startswith("# ") and title is None:
            title = line[2:]
        elif not fenced and line.startswith("## "):
            heading = line[3:]
        else:
            found.setdefault(heading, []).append(line)
    return title, {name: "\n".join(lines).strip("\n") for name, lines in found.items()}


def unlinked(text, document, named):
    """The text without links. The first one that leads to a page of the manual is followed by that page's name."""

    def words(link):
        text, target = link[1], link[2].partition("#")[0]
        path = (Path("docs", document).parent / target).resolve() if target else None
        for other, section, name in PAGES:
            if path == Path("docs", f"{other}.md").resolve() and other not in named:
                named.add(other)
                return f"{text} (**{name}**({section}))"
        return text

    return LINK.sub(words, text)


def page(document, section, name, version):
    """The page in Markdown, as go-md2man takes it."""
    title, parts = sections(Path("docs", f"{document}.md").read_text(encoding="utf-8"))
    order = [part for part in ("Synopsis", "Description") if part in parts]
    order += [part for part in parts if part not in order]
    lines = [f'% {name} {section} "" "Tidegate {version}"', "# NAME", f"{name} - {title}"]
    named = {document}
    for part in order:
        named = {document} if part == "See also" else named
        lines += ["", f"# {part.upper()}", unlinked(LIST.sub(r"\1\n\n\2", parts[part]), document, named)]
    lines += ["", ALSO] if "See also" in parts else ["", "# SEE ALSO", ALSO]
    return "\n".join(lines) + "\n"


def main():
    version, directory = sys.argv[1], Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    for document, section, name in PAGES:
        roff = subprocess.run(
            ["go-md2man"], input=page(document, section, name, version), capture_output=True, text=True, check=True
        ).stdout
        (directory / f"{name}.{section}").write_text(roff, encoding="utf-8")


if __name__ == "__main__":
    main()
