"""Checks the documents: every relative link leads somewhere, every README command runs.

    python tools/check_docs.py [--links-only] [ROOT]

The blocks marked ```sh, ```bash or ```python in README.md run in order, each as one script, in a
scratch directory that links to the repository's folders, with .venv/bin first on PATH. A block is
left out only if an HTML comment directly above it says `<!-- not run: <reason> -->`. Exit 1 if a
block fails or a link is broken; the message names file and block.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

RUN_FIRST = "README.md"
ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = {"sh": ["bash", "-euo", "pipefail"], "bash": ["bash", "-euo", "pipefail"],
             "python": [sys.executable, "-W", "ignore"]}
SKIP = re.compile(r"<!--\s*not run:\s*\S.*-->")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)")
TIME_LIMIT_S = 600
# Folders that scratch copies see; results of commands land in the scratch directory.
LINKED = ("examples", "tests", "benchmarks", "tools", "docs")


@dataclass(frozen=True)
class Block:
    """One fenced block of a document."""

    line: int
    language: str
    text: str
    skipped: bool


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a document, in order."""
    found = []
    lines = text.splitlines()
    index, previous = 0, ""
    while index < len(lines):
        fence = FENCE.match(lines[index])
        if not fence:
            previous = lines[index] if lines[index].strip() else previous
            index += 1
            continue
        start = index + 1
        index = start
        while index < len(lines) and not lines[index].startswith("```"):
            index += 1
        body = "\n".join(lines[start:index]) + "\n"
        found.append(Block(start, fence.group(1), body, bool(SKIP.search(previous))))
        previous = ""
        index += 1
    return found


def anchors_of(text: str) -> set[str]:
    """The anchors that a document's headings make."""
    headings = [line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def documents(root: Path) -> list[Path]:
    """Every Markdown file that is part of the documentation."""
    return sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")])


def broken_links(root: Path) -> list[str]:
    """One line for each relative link that leads nowhere."""
    broken = []
    for path in documents(root):
        prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        for match in LINK.finditer(prose):
            link = match.group(1) or match.group(2)
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = path.parent / name if name else path
            where = path.relative_to(root).as_posix()
            if not target.exists():
                broken.append(f"{where}: link to {link}: no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors_of(target.read_text()):
                broken.append(f"{where}: link to {link}: no such heading")
    return broken


def run_blocks(root: Path, document: str) -> list[str]:
    """Runs a document's blocks and returns one line for each that fails."""
    path = root / document
    if not path.exists():
        return [f"{document}: missing"]
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in LINKED:
            if (root / name).exists():
                (Path(scratch) / name).symlink_to(root / name)
        search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        for number, block in enumerate(blocks_of(path.read_text()), 1):
            if block.language not in LANGUAGES or block.skipped:
                continue
            print(f"{document}: running block {number} (line {block.line})", flush=True)
            done = subprocess.run([*LANGUAGES[block.language], "-c", block.text], cwd=scratch,
                                  env=os.environ | {"PATH": search}, text=True, check=False,
                                  capture_output=True, timeout=TIME_LIMIT_S)
            if done.returncode != 0:
                tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
                failures.append(f"{document}: block {number} (line {block.line}) ended with "
                                f"status {done.returncode}:\n{tail}")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--links-only", action="store_true")
    args = parser.parse_args()
    root = args.root.resolve()
    failures = broken_links(root)
    if not args.links_only:
        failures += run_blocks(root, RUN_FIRST)
    for line in failures:
        print(line)
    if not failures:
        blocks = "blocks not run" if args.links_only else "every block runs"
        print(f"docs: {len(documents(root))} documents, no broken link, {blocks}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
