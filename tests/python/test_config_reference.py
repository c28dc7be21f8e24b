"""docs/reference/config.md holds the tables that tools/make_config_reference.py makes of the table
in src/config/options.cc, and `plumb inspect config` shows the same options.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/reference/config.md"


def make_reference(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs the tool."""
    return subprocess.run(
        [sys.executable, ROOT / "tools/make_config_reference.py", PLUMB, *map(str, words)],
        text=True, capture_output=True, check=False, timeout=60)


def inspect_config(*words: str) -> str:
    """What `plumb inspect config` prints."""
    return subprocess.run([PLUMB, "inspect", "config", *words], text=True, capture_output=True,
                          check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def options() -> list[dict[str, Any]]:
    """The rows of the table in code."""
    found: list[dict[str, Any]] = json.loads(inspect_config("--json"))["options"]
    return found


def table_rows() -> list[tuple[str, str]]:
    """(heading, first cell) of every table row that describes options."""
    found = []
    for heading, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(),
                                    re.MULTILINE | re.DOTALL):
        if heading == "Top level" or heading.startswith("Section"):
            found += [(heading, cell) for cell in re.findall(r"^\| (`.*?) \|", body, re.MULTILINE)]
    return found


def test_page_is_up_to_date() -> None:
    """Otherwise: python tools/make_config_reference.py build/.../plumb."""
    done = make_reference("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_option_has_one_row_below_its_heading(options: list[dict[str, Any]]) -> None:
    """The page read back, without the tool."""
    described = []
    for heading, cell in table_rows():
        only_in = re.search(r"\(([\w, ]+)\)", cell)
        sections = (only_in.group(1).split(", ") if only_in
                    else re.findall(r"`(\w+)`", heading) or [""])
        described += [(section, name) for section in sections
                      for name in re.findall(r"`(\w+)`", cell)]
    code = [(section, option["name"]) for option in options for section in option["sections"]]
    assert sorted(described) == sorted(code)
    assert len(code) > 40


def test_a_changed_cell_is_found_and_repaired(tmp_path: Path) -> None:
    """Only the tables are rewritten."""
    page = tmp_path / "config.md"
    text = PAGE.read_text()
    page.write_text(text.replace("| 536870912 |", "| 12 |"))
    done = make_reference("--check", page)
    assert done.returncode == 1
    assert "-| `buffer_bytes` | integer | 12 |" in done.stdout
    assert page.read_text() != text
    assert make_reference(page).returncode == 0
    assert page.read_text() == text


@pytest.mark.parametrize(("find", "replacement", "expected"), [
    ("<!-- options of: top level -->\n", "", "does not alternate"),
    ("overflow_check, nan_check -->", "overflow_check -->", "tables for the sections"),
    ("<!-- end of options -->", "", "does not alternate"),
])
def test_a_page_with_damaged_marks_is_left_alone(tmp_path: Path, find: str, replacement: str,
                                                 expected: str) -> None:
    """The tool says what is wrong with the marks."""
    page = tmp_path / "config.md"
    damaged = PAGE.read_text().replace(find, replacement, 1)
    page.write_text(damaged)
    done = make_reference(page)
    assert done.returncode == 1
    assert expected in done.stderr
    assert page.read_text() == damaged


def test_human_form_shows_the_same(options: list[dict[str, Any]]) -> None:
    """Name with section, type, default and meaning of every option."""
    text = inspect_config()
    for option in options:
        names = ", ".join(f"{section}.{option['name']}".lstrip(".")
                          for section in option["sections"])
        assert (f"{names}\n  {option['type']}, default {option['default']}\n"
                f"  {option['meaning']}\n") in text
