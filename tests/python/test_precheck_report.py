"""Files and rows of a pre-check, read with what people read them with."""

from __future__ import annotations

import csv
import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import openpyxl
import pytest
from browser import drawn, needs_browser
from precheck_dumps import (
    broken_python,
    precheck,
    result_file,
    rows,
    small_model,
    statuses,
    tensor,
)

ROOT = Path(__file__).resolve().parents[2]
WRONG_SOFTMAX = """
softmax = torch.nn.functional.softmax
def wrong(x, dim):
    return softmax(x, dim) * (1.02 if x.dtype == torch.float16 else 1)
torch.nn.functional.softmax = wrong"""
SOFTMAX = "Functional.softmax.0.forward.output.0"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run with an error, passes and calls that are skipped, in every format."""
    root = tmp_path_factory.mktemp("precheck report")
    dump = small_model()
    dump.call("Distributed.all_reduce.0", [tensor([3])], [tensor([3])])
    dump.call("Torch.rand.0", [{"type": "int", "value": 3}], [tensor([3])])
    done = precheck(dump.write(root), root / "out", "--format", "xlsx,html,junit", "--sorted",
                    "--python", broken_python(root, WRONG_SOFTMAX))
    assert done.returncode == 0, done.stderr
    (root / "out" / "answer.txt").write_text(done.stdout)
    return root / "out"


def page_data(page: Path) -> dict[str, Any]:
    """The JSON inside a page."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data


def number(text: str) -> float | str | None:
    """A cell of the csv file as the workbook has it."""
    text = text.strip()
    try:
        return float(text)
    except ValueError:
        return text or None


def test_the_answer_names_the_files_and_the_next_step(run: Path) -> None:
    lines = (run / "answer.txt").read_text().splitlines()
    assert lines[0].startswith("wrong: Functional.softmax.0 forward output.0")
    assert lines[1] == f"  as a test: plumb extract '{run.parent}/dump.json' Functional.softmax.0"
    stamp = result_file(run).stem.rpartition("_")[2]
    for name in (f"tables_{stamp}.xlsx", f"report_{stamp}.html", f"junit_{stamp}.xml"):
        assert f"  written: {run}/accuracy_checking_{name}" in lines


def test_the_workbook_holds_the_csv_files(run: Path) -> None:
    (path,) = run.glob("*.xlsx")
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["result", "details"]
    for sheet, kind in (("result", "result"), ("details", "details")):
        with result_file(run, kind).open(encoding="utf-8-sig", newline="") as file:
            header, *truth = csv.reader(file)
        head, *cells = book[sheet].iter_rows(values_only=True)
        assert list(head) == header
        assert len(cells) == len(truth)
        for row, texts in zip(cells, truth, strict=True):
            texts += [""] * (len(header) - len(texts))
            shown = [text.strip() or None for text in texts]
            if sheet == "details":
                shown[4:21] = [number(text) for text in texts[4:21]]
                shown = [None if isinstance(one, float) and one != one else one for one in shown]
                row = tuple(None if one == "nan" else one for one in row)
            assert list(row) == shown


def test_rows_of_the_workbook_have_the_colour_of_their_status(run: Path) -> None:
    (path,) = run.glob("*.xlsx")
    sheet = openpyxl.load_workbook(path)["details"]
    status = next(cell.column for cell in sheet[1] if cell.value == "Status")
    colours = {row[status - 1].value: {cell.fill.fgColor.rgb if cell.fill.fill_type else None
                                       for cell in row}
               for row in sheet.iter_rows(min_row=2)}
    assert colours == {"error": {"FFFF0000"}, "SKIP": {"FFD9D9D9"}, "pass": {None}}


def test_junit_has_a_case_for_each_direction(run: Path) -> None:
    (path,) = run.glob("*.xml")
    (suite,) = ElementTree.parse(path).getroot()
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    expected = {f"{call}.{direction}": status
                for call, both in statuses(run).items()
                for direction, status in zip(("forward", "backward"), both, strict=True)
                if status.strip()}
    assert cases.keys() == expected.keys()
    shown = {"pass": [], "error": ["failure"], "SKIP": ["skipped"]}
    for name, case in cases.items():
        assert [child.tag for child in case] == shown[expected[name]], name
    failure = cases["Functional.softmax.0.forward"].find("failure")
    assert failure is not None and failure.text is not None
    assert "elements off by more than" in failure.get("message", "")
    (message,) = [row[-1] for row in rows(run, "details") if row[0] == SOFTMAX]
    assert message.strip() in failure.text
    assert "plumb extract" in failure.text
    skipped = cases["Torch.rand.0.forward"].find("skipped")
    assert skipped is not None and skipped.get("message", "").startswith("random: ")
    assert suite.get("tests") == str(len(cases))
    assert suite.get("skipped") == "4"


def test_the_page_holds_what_is_wrong(run: Path) -> None:
    (path,) = run.glob("*.html")
    data = page_data(path)
    assert data["answer"] == (run / "answer.txt").read_text().splitlines()[0]
    assert data["counts"]["calls"] == {"error": 1, "Warning": 0, "pass": 4, "SKIP": 2}
    assert data["facts"]["device"] == "cpu"
    assert {cause["cause"]: cause["calls"] for cause in data["causes"]} == {
        "random": 1, "unsupported-type": 1}
    truth = {row[0]: row for row in rows(run, "details") if row[-2] not in ("pass", " ")}
    assert {row["name"] for row in data["findings"]} == truth.keys()
    for row in data["findings"]:
        assert row["status"] == truth[row["name"]][-2]
        assert row["message"] == truth[row["name"]][-1].strip()
    worst = data["findings"][0]
    assert worst["name"] == SOFTMAX
    # Every element of a 4 x 8 output is off by two percent: between 1e-2 and 1e-1.
    assert worst["worst"]["histogram"][11] == 32 == sum(worst["worst"]["histogram"])
    assert worst["worst"]["device"] == pytest.approx(1.02 * worst["worst"]["bench"], rel=2e-3)
    assert worst["as_test"].endswith(" Functional.softmax.0")


@needs_browser
def test_the_page_draws_without_an_error(run: Path, tmp_path: Path) -> None:
    (path,) = run.glob("*.html")
    document = html.unescape(drawn(path, tmp_path))
    for said in ("Functional.softmax.0 forward output.0", "elements off by more than",
                 "plumb extract", "random", "4 of 4 outputs shown"):
        assert said in document, said
    assert '<span class="mini"' in document
    assert document.count("<rect") == 16


@needs_browser
def test_text_of_a_recording_is_never_markup(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)><!--"
    dump = small_model()
    dump.call(f"Torch.{evil}.0", [tensor([3])], [tensor([3])])
    done = precheck(dump.write(tmp_path), tmp_path / "out", "--format", "xlsx,html,junit")
    assert done.returncode == 0, done.stderr
    (page,) = (tmp_path / "out").glob("*.html")
    assert page.read_text().count("</script>") == 2
    assert [row["output"] for row in page_data(page)["findings"]] == [
        f"Torch.{evil}.0 forward output.0"]
    assert "<img" not in drawn(page, tmp_path)
    (junit,) = (tmp_path / "out").glob("*.xml")
    (suite,) = ElementTree.parse(junit).getroot()
    assert f"Torch.{evil}.0.forward" in {case.get("name") for case in suite.iter("testcase")}


def test_a_run_that_goes_on_reports_all_of_it(tmp_path: Path) -> None:
    """The first run is cut behind its row of an error: the second one only knows it by the file."""
    dump = small_model().write(tmp_path)
    output = tmp_path / "out"
    python = broken_python(tmp_path, WRONG_SOFTMAX)
    assert precheck(dump, output, "--python", python, "--format", "csv").returncode == 0
    assert not list(output.glob("*.html"))
    path = result_file(output)
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b"Functional.linear" not in line]
    assert len(kept) == len(lines) - 1
    path.write_bytes(b"".join(kept))
    done = precheck(dump, output, "--python", python, "--csv_path", path, "--format", "html,junit")
    assert done.returncode == 0, done.stderr
    (page,) = output.glob("*.html")
    data = page_data(page)
    assert [row["name"] for row in data["findings"]] == [SOFTMAX,
                                                         SOFTMAX.replace("forward", "backward")]
    assert not any("worst" in row for row in data["findings"])
    (suite,) = ElementTree.parse(next(output.glob("*.xml"))).getroot()
    assert suite.get("failures") == "2"
    assert {case.get("name", "").rpartition(".")[0] for case in suite.iter("testcase")} == set(
        statuses(output))


def test_formats_by_default(tmp_path: Path) -> None:
    dump = small_model().write(tmp_path)
    assert precheck(dump, tmp_path / "out").returncode == 0
    assert [path.suffix for path in sorted((tmp_path / "out").iterdir())] == [
        ".csv", ".html", ".csv", ".json"]
    done = precheck(dump, tmp_path / "two", "--format", "pdf")
    assert done.returncode == 2
    assert "pdf" in done.stderr and "csv, xlsx, html or junit" in done.stderr
    assert not (tmp_path / "two").exists()


def test_the_example_runs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, ROOT / "examples/precheck_wrong_operator.py", tmp_path],
                          capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as it is: no wrong API in " in done.stdout
    assert "broken:   wrong: Functional.gelu.0 " in done.stdout
    assert re.search(r"as a unit test: plumb extract \S+/dump.json Functional.gelu.0", done.stdout)
