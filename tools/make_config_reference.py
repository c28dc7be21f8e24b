"""Writes the option tables of docs/reference/config.md from the table in src/config/options.cc.

    python tools/make_config_reference.py PLUMB [--check] [PAGE]

PLUMB is the built command-line program, which knows the options (`plumb inspect config --json`).
Only the lines between `<!-- options of: SECTIONS -->` and `<!-- end of options -->` are replaced.
--check writes nothing and exits 1 when the page is not up to date.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOP_LEVEL = "top level"
BEGIN = re.compile(r"^<!-- options of: (.*) -->$")
END = "<!-- end of options -->"
HEAD = ["| Field | Type | Default | Meaning |", "| --- | --- | --- | --- |"]


def table(options: list[dict[str, Any]], sections: list[str]) -> list[str]:
    """The rows of the options that may stand in one of the sections.

    Neighbours about which the same is said share a row.
    """
    def cells(option: dict[str, Any]) -> tuple[str, str, str, str]:
        places = [section for section in sections if section in option["sections"]]
        only_in = "" if places == sections else f" ({', '.join(places)})"
        return only_in, option["type"], option["default"], option["meaning"]

    lines = list(HEAD)
    listed = [option for option in options if set(sections) & set(option["sections"])]
    for (only_in, *texts), same in groupby(listed, key=cells):
        names = ", ".join(f"`{option['name']}`" for option in same)
        lines.append(f"| {' | '.join([names + only_in, *texts])} |")
    return lines


def rewritten(page: str, options: list[dict[str, Any]]) -> str:
    """The page with its tables made anew; ValueError when the marks or sections do not fit."""
    lines: list[str] = []
    shown: list[str] = []
    inside = False
    for line in page.splitlines():
        begin = BEGIN.match(line)
        if (begin and inside) or (line == END and not inside):
            raise ValueError(f"{line}: does not alternate with its counterpart")
        if begin:
            sections = ["" if name == TOP_LEVEL else name for name in begin.group(1).split(", ")]
            shown += sections
            inside = True
            lines += [line, *table(options, sections)]
        elif line == END:
            inside = False
        if not inside:
            lines.append(line)
    if inside:
        raise ValueError(f"no {END} after the last table")
    known = {section for option in options for section in option["sections"]}
    if sorted(shown) != sorted(known):
        raise ValueError(f"tables for the sections {sorted(shown)} (expected {sorted(known)})")
    return "\n".join(lines) + "\n"


def main() -> int:
    """0: written or up to date; 1: not up to date, or the page cannot be written."""
    parser = argparse.ArgumentParser(description="Write the option tables of config.md.")
    parser.add_argument("plumb", type=Path)
    parser.add_argument("page", type=Path, nargs="?", default=ROOT / "docs/reference/config.md")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_intermixed_args()
    answer = subprocess.run([arguments.plumb, "inspect", "config", "--json"], check=True,
                            capture_output=True, text=True, timeout=60)
    before = arguments.page.read_text()
    try:
        after = rewritten(before, json.loads(answer.stdout)["options"])
    except ValueError as error:
        print(f"{arguments.page}: {error}", file=sys.stderr)
        return 1
    if not arguments.check:
        arguments.page.write_text(after)
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        before.splitlines(True), after.splitlines(True), "the page", "the table in code"))
    return int(before != after)


if __name__ == "__main__":
    sys.exit(main())
