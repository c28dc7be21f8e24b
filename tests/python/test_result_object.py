"""Methods of the object that `plumbline.compare()` returns."""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
from pathlib import Path

import pytest

import plumbline

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps  # noqa: E402


def test_files_go_where_they_are_asked(tmp_path: Path) -> None:
    make_dumps.wrong_scale(str(tmp_path / "new"))
    make_dumps.sound(str(tmp_path / "good"))
    result = plumbline.compare(tmp_path / "new", tmp_path / "good")
    assert result.first_divergence is not None
    assert result.first_divergence["name"] == result.first_wrong_call
    out = tmp_path / "out"
    out.mkdir()
    result.to_csv(out / "a.csv")
    result.to_csv(out / "a.csv")  # replaces
    result.to_html(out / "a.html")
    result.to_sqlite(out / "a.db")
    result.to_xlsx(out / "a.xlsx")
    assert sorted(path.name for path in out.iterdir()) == ["a.csv", "a.db", "a.html", "a.xlsx"]
    with (out / "a.csv").open(newline="") as stream:
        assert len(list(csv.DictReader(stream))) == len(result.rows)
    with sqlite3.connect(out / "a.db") as database:
        assert database.execute("SELECT count(*) FROM rows").fetchone()[0] == len(result.rows)
    assert (out / "a.xlsx").read_bytes()[:2] == b"PK"
    result.to_json(out / "a.json")
    assert json.loads((out / "a.json").read_text())["rows"] == result.rows


def test_an_error_names_the_path_that_was_given(tmp_path: Path) -> None:
    make_dumps.sound(str(tmp_path / "good"))
    result = plumbline.compare(tmp_path / "good", tmp_path / "good")
    wanted = tmp_path / "none" / "a.html"
    with pytest.raises(FileNotFoundError) as missing:
        result.to_html(wanted)
    assert missing.value.filename == str(wanted)
    with pytest.raises(IsADirectoryError) as directory:
        result.to_csv(tmp_path)
    assert directory.value.filename == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["good"]  # nothing is left behind
    with pytest.raises(OSError) as refused:
        result.to_xlsx("/proc/a.xlsx")
    assert refused.value.filename == "/proc/a.xlsx"


def test_its_text_is_one_line(tmp_path: Path) -> None:
    make_dumps.wrong_scale(str(tmp_path / "new"))
    make_dumps.sound(str(tmp_path / "good"))
    result = plumbline.compare(tmp_path / "new", tmp_path / "good")
    assert repr(result) == (f"<ComparisonResult: {result.answer} ({len(result.rows)} rows, "
                            f"{result.mode})>")
    assert "\n" not in repr(result)
