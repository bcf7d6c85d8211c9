#!/usr/bin/env python3
"""Builds the documentation as a site with search, into target/site: site.py [--no-rust]

The pages are those of the tree, in the order of docs/README.md. The manual's pages, the C headers, the crates' own
documentation (not with --no-rust, as it takes minutes) and the report of `make cost`, if it was made, are beside them.
mdBook is installed into target/tools when it is needed. MAN=DIR takes the manual's pages that are there already.
"""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

sys.dont_write_bytecode = True

from man import PAGES as DOCUMENTS

MDBOOK = "0.5.4"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
SOURCE, SITE = TARGET / "site-source", TARGET / "site"
MAP = Path("docs/README.md")
# Crates that others link.
CRATES = ("avc", "service", "restrict")
# Pages outside of docs/, by the part of the map that they are added to.
MORE = {
    "How to": ["examples/agent-host/README.md", "examples/docstore/README.md"],
    "Develop": ["CONTRIBUTING.md", "kernel/README.md", "crates/README.md", "SECURITY.md", "CHANGELOG.md"],
}

LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)((?:#[^)\s]*)?\))")

BOOK = """[book]
title = "Tidegate"
language = "en"
src = "."

[build]
build-dir = "{site}"
create-missing = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
additional-css = ["site.css"]
no-section-label = true

[output.html.fold]
enable = true

[output.html.print]
enable = false

[output.html.search]
use-boolean-and = true
heading-split-level = 3
"""

# The manual's pages as mandoc writes them, and wide tables, which scroll by themselves on a telephone.
CSS = """table.head, table.foot { display: none; }
.manual-text dd { margin-inline-start: 2em; margin-block-end: 0.6em; }
.manual-text a.permalink { color: inherit; text-decoration: none; }
.manual-text table { border-collapse: collapse; }
.content .table-wrapper { overflow-x: auto; }
.content pre { overflow-x: auto; }
.content :not(pre) > code { overflow-wrap: anywhere; }
.manual-text .Sh:nth-of-type(2) b { white-space: nowrap; }
.content td { vertical-align: top; }
@media (max-width: 600px) { .content td, .content th { padding: 4px 8px; } }
"""


def run(*command, **options):
    """Runs a command, which has to succeed, and returns what it prints."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options)
    return done.stdout


def mdbook():
    """The program, which is built once."""
    program = TARGET / "tools/bin/mdbook"
    if not program.exists() or run(program, "--version").strip() != f"mdbook v{MDBOOK}":
        install = ["cargo", "install", "mdbook", "--version", MDBOOK, "--locked", "--root", str(TARGET / "tools")]
        subprocess.run([*install, "--no-default-features", "--features", "search"], check=True)
    return program.resolve()


def title(page):
    """The page's first heading, without marks."""
    heading = next(line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
    return re.sub(r"[`*]", "", heading[2:])


def chapters():
    """The parts of the map, and the pages of each in its order."""
    part, parts = None, []
    for line in MAP.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            part = (line[3:], [])
            parts.append(part)
        for _, target, _ in LINK.findall(line) if part else ():
            page = Path(os.path.normpath(MAP.parent / target))
            if page.suffix == ".md" and not any(page in pages for _, pages in parts):
                part[1].append(page)
    for name, pages in parts:
        pages.extend(map(Path, MORE.get(name, ())))
    return parts


def placed(path):
    """Where a file of the tree is in the site's source: what a directory shows is its index."""
    return path.with_name("index.md") if path.name == "README.md" else path


def copy(page, known):
    """Copies a page, and the files that it links to. A link to a directory without a page is left with its text."""

    def moved(link):
        before, target, after = link.groups()
        if re.match(r"[a-z]+:", target):
            return link[0]
        path = Path(os.path.normpath(page.parent / target))
        if path.is_dir() and path / "README.md" in known:
            path /= "README.md"
        if path in known:
            return before + os.path.relpath(placed(path), page.parent) + after
        if not path.is_file():
            return before[1:-2]
        # A browser shows text, and would keep a file of code.
        shown = path.with_name(f"{path.name}.txt")
        (SOURCE / shown).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, SOURCE / shown)
        return f"{before}{os.path.relpath(shown, page.parent)})"

    text = LINK.sub(moved, page.read_text(encoding="utf-8"))
    to = SOURCE / placed(page)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(text, encoding="utf-8")


def manual():
    """Writes a page for each command's page of the manual, and returns the lines of the summary. The others are documents."""
    if not shutil.which("mandoc"):
        sys.exit("site: there is no mandoc: `make setup` installs it")
    directory = Path(os.environ.get("MAN", TARGET / "man"))
    if "MAN" not in os.environ:
        subprocess.run(["scripts/build.sh", "man"], check=True, stdout=subprocess.DEVNULL)
    (SOURCE / "man").mkdir(parents=True)
    pages = sorted(directory.glob("*.1"), key=lambda page: page.stem)
    to = {f"{page.stem}(1)": f"{page.name}.html" for page in pages}
    to |= {f"{name}({section})": f"../docs/{document}.html" for document, section, name in DOCUMENTS}

    def named(link):
        name = f"{link[1]}({link[2]})"
        return f'<a href="{to[name]}">{name}</a>' if name in to else link[0]

    lines = ["", "# Manual", "- [Pages of the manual](man/index.md)"]
    overview = ["# Pages of the manual", "", "## Commands", ""]
    for page in pages:
        name, file = f"{page.stem}(1)", f"{page.name}.md"
        html = run("mandoc", "-T", "html", "-O", "fragment", str(page))
        about = re.search(r'id="NAME".*?<p class="Pp">\S+ +[-–] (.*?)</p>', html, re.S)[1]
        html = re.sub(r"<b>(tidegate[\w.-]*)</b>\((\d)\)", named, html)
        # A blank line would end the block of HTML; the page's own heading is above.
        html = re.sub(r"<(/?)h1\b", r"<\1h2", re.sub(r"<(/?)h2\b", r"<\1h3", re.sub(r"\n(?=\n)", "\n<!-- -->", html)))
        (SOURCE / "man" / file).write_text(f"# {name}\n\n{html}\n", encoding="utf-8")
        lines.append(f"  - [{name}](man/{file})")
        overview.append(f"- [{name}]({file}): {' '.join(about.split())}")
    overview += ["", "## Formats, models and tasks", ""]
    for document, section, name in DOCUMENTS:
        overview.append(f"- [{name}({section})](../docs/{document}.md): {title(Path('docs', f'{document}.md'))}")
    (SOURCE / "man/index.md").write_text("\n".join(overview) + "\n", encoding="utf-8")
    return lines


def libraries(with_rust):
    """Writes pages for the C headers, links to the crates' documentation, and returns the lines of the summary."""
    (SOURCE / "api").mkdir(parents=True)
    lines = ["", "# Libraries", "- [Libraries for C and Rust](api/index.md)"]
    overview = ["# Libraries for C and Rust", "", "| library | for C | for Rust | guide |", "|---|---|---|---|"]
    guides = {"avc": "reference/object-managers", "service": "reference/service-monitor", "restrict": "reference/capability"}
    for crate in CRATES:
        header = Path(f"include/tidegate/{crate}.h").read_text(encoding="utf-8")
        page = f"# tidegate/{crate}.h\n\nLink with `-ltidegate-{crate}`, or by `pkg-config tidegate-{crate}`.\n\n"
        (SOURCE / f"api/{crate}.md").write_text(f"{page}```c\n{header}```\n", encoding="utf-8")
        lines.append(f"  - [tidegate/{crate}.h](api/{crate}.md)")
        rust = f"[tidegate_{crate}](../rust/tidegate_{crate}/index.html)" if with_rust else f"`tidegate_{crate}`"
        guide = f"[{title(Path('docs', guides[crate] + '.md'))}](../docs/{guides[crate]}.md)"
        overview.append(f"| {crate} | [header]({crate}.md) | {rust} | {guide} |")
    (SOURCE / "api/index.md").write_text("\n".join(overview) + "\n", encoding="utf-8")
    return lines


def cost():
    """Adds the whole report to the page of its summary, if it was made."""
    report = TARGET / "cost/cost.html"
    if report.exists():
        page = SOURCE / "docs/dev/cost.md"
        shutil.copy(report, page.with_suffix(".report.html"))
        page.write_text(page.read_text(encoding="utf-8").replace("`cost.html`", "[cost.html](cost.report.html)", 1))


class Page(HTMLParser):
    """The links of a page, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        self.anchors |= {names[name] for name in ("id", "name") if names.get(name)}
        if tag == "a" and names.get("href"):
            self.links.append(names["href"])


def broken():
    """Links of the site that lead nowhere; the crates' documentation is not looked at."""
    files = [file for file in SITE.rglob("*.html") if file.relative_to(SITE).parts[0] != "rust"]
    pages = {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in files}
    for file, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:|//", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            to = (file.parent / path).resolve() if path else file
            if not to.exists():
                yield f"{file}: there is no {link}"
            elif anchor and to in pages and anchor not in pages[to].anchors:
                yield f"{file}: there is no {link}: no such heading"


def main():
    with_rust = "--no-rust" not in sys.argv[1:]
    program = mdbook()
    for directory in (SOURCE, SITE):
        shutil.rmtree(directory, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    parts = chapters()
    known = {page for _, pages in parts for page in pages} | {MAP, Path("README.md")}
    summary = ["# Summary", "", "[Tidegate](index.md)", f"[All documentation]({placed(MAP)})"]
    for part, pages in parts:
        summary += ["", f"# {part}", *(f"- [{title(page)}]({placed(page)})" for page in pages)]
    for page in known:
        copy(page, known)
    cost()
    summary += manual() + libraries(with_rust)
    (SOURCE / "SUMMARY.md").write_text("\n".join(summary) + "\n", encoding="utf-8")
    (SOURCE / "site.css").write_text(CSS, encoding="utf-8")
    (SOURCE / "book.toml").write_text(BOOK.format(site=SITE.resolve()), encoding="utf-8")
    subprocess.run([program, "build", str(SOURCE)], check=True)
    if with_rust:
        packages = [word for crate in CRATES for word in ("--package", f"tidegate-{crate}")]
        subprocess.run(["cargo", "doc", "--locked", "--no-deps", *packages], check=True)
        shutil.copytree(TARGET / "x86_64-unknown-linux-gnu/doc", SITE / "rust")
    wrong = list(broken())
    print("\n".join(wrong) or f"{SITE}/index.html")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
