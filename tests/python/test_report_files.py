"""The result files for programs, each read by an independent reader and held against the JSON."""

from __future__ import annotations

import json
import sqlite3
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

import plumbline

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps  # noqa: E402

FORMATS = "json,jsonl,sqlite,junit,sarif"
PAIRS = [
    ("sound", "sound"),
    ("wrong_scale", "sound"),
    ("missing_call", "extra_call"),
    ("odd_target", "odd_golden"),
    ("wrong_scale_md5", "sound_md5"),
    ("wrong_scale_tensor", "sound_tensor"),
    ("broken_files", "sound_tensor"),
]
Files = dict[str, Path]


def written(target: str, golden: str, tmp_path: Path) -> tuple[Files, dict[str, Any]]:
    """Result files by extension, and the machine form."""
    for name in (target, golden):
        if not (tmp_path / name).exists():
            getattr(make_dumps, name)(str(tmp_path / name))
    result = plumbline.compare(tmp_path / target, tmp_path / golden, tmp_path / "out",
                               formats=FORMATS)
    files = {Path(file).suffix: Path(file) for file in result.files}
    assert set(files) == {".json", ".jsonl", ".db", ".xml", ".sarif"}
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(
        p.name for p in files.values())
    return files, json.loads(files[".json"].read_text())


@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_json_lines_are_the_header_and_the_rows(target: str, golden: str, tmp_path: Path) -> None:
    files, machine = written(target, golden, tmp_path)
    lines = [json.loads(line) for line in files[".jsonl"].read_text().splitlines()]
    assert lines[0] == {key: value for key, value in machine.items() if key != "rows"}
    assert lines[1:] == machine["rows"]


def number(value: Any) -> Any:
    """As the database holds a number of the machine form."""
    if isinstance(value, bool):
        return int(value)
    return {"inf": float("inf"), "-inf": float("-inf")}.get(value, value) if isinstance(
        value, str) else value


def sides_and_metrics(truth: dict[str, Any]) -> dict[str, Any]:
    """Columns of one row of the database, from the machine form."""
    columns = {f"{side}_{key}": (truth[side] or {}).get(key)
               for side in ("target", "golden")
               for key in ("dtype", "shape", "max", "min", "mean", "norm")}
    metrics = {**truth, **truth.get("metrics", {})}
    endings = ("_diff", "_percent", "_abs_error", "_relative_error", "_ratio", "_ulp", "cosine")
    return {**columns, **{k: v for k, v in metrics.items() if k.endswith(endings)}}


@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_database_holds_every_row(target: str, golden: str, tmp_path: Path) -> None:
    files, machine = written(target, golden, tmp_path)
    with sqlite3.connect(files[".db"]) as database:
        database.row_factory = sqlite3.Row
        assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        facts = dict(database.execute("SELECT name, value FROM facts").fetchall())
        rows = database.execute("SELECT rows.*, target_name, golden_name FROM rows "
                                "JOIN calls USING (call) ORDER BY row").fetchall()
        wrong = database.execute("SELECT count(*) FROM wrong").fetchone()[0]
    assert facts["mode"] == machine["mode"]
    assert json.loads(facts["summary"])["first_wrong_call"] == machine["first_wrong_call"]
    assert wrong == machine["counts"]["suspicious"] + machine["counts"]["broken"]
    assert len(rows) == len(machine["rows"])
    for row, truth in zip(rows, machine["rows"], strict=True):
        assert (row["target_name"] or row["golden_name"]) == truth["call"]
        for key in ("role", "verdict", "reason", "result"):
            assert row[key] == truth[key], key
        for key in ("error", "explained_error"):
            assert row[key] == (None if truth[key] == "nan" else number(truth[key])), key
        for key, value in sides_and_metrics(truth).items():
            assert row[key] == number(value), key


@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_junit_has_a_case_per_call_and_fails_where_it_must(
    target: str, golden: str, tmp_path: Path
) -> None:
    files, machine = written(target, golden, tmp_path)
    [suite] = ET.parse(files[".xml"]).getroot().findall("testsuite")
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    calls = list(dict.fromkeys(row["call"] for row in machine["rows"]))
    assert list(cases)[:len(calls)] == calls
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    for attribute, element in kinds.items():
        assert int(suite.get(attribute, "-1")) == len(suite.findall(f"testcase/{element}"))
    assert int(suite.get("tests", "-1")) == len(suite.findall("testcase"))
    answer = machine["first_wrong_call"]
    bad = suite.findall("testcase/failure") + suite.findall("testcase/error")
    assert bool(bad) == (answer is not None or not machine["complete"])
    if answer:
        failure = cases[answer["name"]].find("failure")
        assert failure is not None
        assert failure.get("message") == answer["what"]
        assert failure.get("type") == "first-wrong-call"
        assert (failure.text or "") == answer["stack_line"]
    incomplete = cases["comparison complete"].find("error")
    assert (incomplete is None) == machine["complete"]


@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_sarif_has_what_the_schema_requires(target: str, golden: str, tmp_path: Path) -> None:
    files, machine = written(target, golden, tmp_path)
    log = json.loads(files[".sarif"].read_text())
    assert log["version"] == "2.1.0"
    assert set(log) <= {"$schema", "version", "runs"}
    [run] = log["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert run["tool"]["driver"]["name"] == "plumb compare"
    assert {result["ruleId"] for result in run["results"]} == rules
    for result in run["results"]:
        assert result["level"] in ("error", "warning")
        assert result["message"]["text"]
        [location] = result["locations"]
        assert location["logicalLocations"][0]["fullyQualifiedName"]
        assert result["ruleId"] != "inherited"
    answer = machine["first_wrong_call"]
    found = [r for r in run["results"] if r["ruleId"] == "first-wrong-call"]
    assert len(found) == (1 if answer else 0)
    if answer and answer["stack_line"]:
        place = found[0]["locations"][0]["physicalLocation"]
        path = unquote(urlparse(place["artifactLocation"]["uri"]).path)
        assert f"File {path}, line {place['region']['startLine']}," in answer["stack_line"]


def test_nothing_judged_is_no_pass(tmp_path: Path) -> None:
    for side in ("a", "b"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "dump.json").write_text(json.dumps(
            {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
             "data": {}}))
    result = plumbline.compare(tmp_path / "a", tmp_path / "b", tmp_path / "out",
                               formats="junit,sarif")
    junit, sarif = (Path(file) for file in result.files)
    [suite] = ET.parse(junit).getroot()
    assert int(suite.get("errors", "0")) == 2
    assert [r["ruleId"] for r in json.loads(sarif.read_text())["runs"][0]["results"]] == [
        "not-judged", "not-complete"]


def test_texts_that_xml_cannot_hold(tmp_path: Path) -> None:
    name = "Torch.f<&\"'>\u0007\u00e9.0.forward"
    for side, value in (("a", 1.0), ("b", 2.0)):
        tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": value,
                  "Min": value, "Mean": value, "Norm": 2 * value, "requires_grad": False}
        (tmp_path / side).mkdir()
        (tmp_path / side / "dump.json").write_text(json.dumps(
            {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
             "data": {name: {"input_args": [], "input_kwargs": {}, "output": [tensor]}}}))
    result = plumbline.compare(tmp_path / "a", tmp_path / "b", tmp_path / "out", formats="junit")
    [suite] = ET.parse(result.files[0]).getroot()
    assert suite.findall("testcase")[0].get("name") == name.replace("\u0007", "?")


@pytest.mark.parametrize("name", ["jsonl", "html", "sqlite", "junit", "sarif", "xlsx"])
def test_a_format_that_cannot_be_written_leaves_nothing(name: str, tmp_path: Path) -> None:
    make_dumps.sound(str(tmp_path / "a"))
    out = tmp_path / "out"
    out.mkdir(mode=0o500)
    import os
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    with pytest.raises(OSError, match="out"):
        plumbline.compare(tmp_path / "a", tmp_path / "a", out, formats=name)
    assert list(out.iterdir()) == []
