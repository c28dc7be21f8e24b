"""docs/reference/config.md describes exactly the options of the table in src/config/config.cc."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ROW = re.compile(r'^    \{(""|k\w+), "(\w+)", \w+\},$', re.MULTILINE)
CONSTANT = re.compile(r'^constexpr std::string_view (k\w+) = "(\w+)";$', re.MULTILINE)


def options_in_code() -> set[tuple[str, str]]:
    """(section, option) of every row of kOptions."""
    text = (ROOT / "src/config/config.cc").read_text()
    names = dict(CONSTANT.findall(text))
    table = re.search(r"kOptions\[\] = \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL)
    assert table is not None
    rows = ROW.findall(table.group(1))
    assert len(rows) == len(table.group(1).strip().splitlines()), "a row of another form"
    return {("" if section == '""' else names[section], option) for section, option in rows}


def descriptions() -> list[tuple[list[str], str]]:
    """(sections named in a heading, text below it) of the headings that describe options."""
    text = (ROOT / "docs/reference/config.md").read_text()
    found = []
    for heading, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text,
                                    re.MULTILINE | re.DOTALL):
        if heading == "Top level" or heading.startswith("Section"):
            found.append((re.findall(r"`(\w+)`", heading) or [""], body))
    return found


def test_every_option_is_described() -> None:
    """Each is named in a table or a sentence below the heading of its section."""
    described = {(section, name) for sections, body in descriptions() for section in sections
                 for name in re.findall(r"`(\w+)`", body)}
    assert options_in_code() - described == set()


def test_no_other_option_is_described() -> None:
    """Each table row names options of the section: those in its brackets, else of the heading."""
    code, rows, unknown = options_in_code(), 0, []
    for sections, body in descriptions():
        for first in re.findall(r"^\| (`.*?) \|", body, re.MULTILINE):
            rows += 1
            named = re.search(r"\(([\w, ]+)\)", first)
            places = named.group(1).split(", ") if named else sections
            unknown += [name for name in re.findall(r"`(\w+)`", first)
                        if not any((place, name) in code for place in places)]
    assert unknown == []
    assert rows > 15
