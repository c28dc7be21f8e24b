"""The workbook of plumb compare against that of upstream 1.2.2 on the same dumps, cell by cell.

tests/data/compare_1.2.2 holds upstream's cells, made once by tests/data/make_compare_fixtures.py.
Value, type (text or number) and fill must be equal. What docs/reference/compare.md lists as repairs
is listed here too, with the rule, and every entry must be needed.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from compare_cases import CASES, FUZZY
from recording import PLUMB

FIXTURES = Path(__file__).resolve().parents[1] / "data" / "compare_1.2.2"
Row = dict[str, Any]
Table = list[tuple[Row, str | None]]
Results = Callable[[str], dict[str, Any]]


def upstream(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())
    return content


def ours(name: str, folder: Path) -> dict[str, Any]:
    """The same form, from plumb's workbook; codes instead of the sentences behind them."""
    target, golden = (side.write(folder / key) for side, key in
                      zip(CASES[name](), ("target", "golden"), strict=True))
    (folder / "compare.json").write_text(json.dumps(
        {"npu_path": str(target), "bench_path": str(golden), "is_print_compare_log": False}))
    words = ["-f"] if name in FUZZY else []
    done = subprocess.run([str(PLUMB), "-f", "pytorch", "compare", "-i", "compare.json", "-o",
                           "out", *words], cwd=folder, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    [workbook] = (folder / "out").glob("*.xlsx")
    sheet = openpyxl.load_workbook(workbook).active
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    fills = []
    for row in sheet.iter_rows(min_row=2):
        [colour] = {cell.fill.fgColor.rgb[2:] if cell.fill.fill_type else None for cell in row}
        fills.append(colour)
    if "Err_message" in rows[0]:
        column = rows[0].index("Err_message")
        for row in rows[1:]:
            row[column] = re.findall(r"\[([\w-]+)\]", row[column] or "")
    [advisor] = (folder / "out").glob("advisor*.txt")
    text = advisor.read_text()
    places = [re.search(rf"{key}: (.*)", text) for key in ("Line", "Suspect Nodes")]
    assert all(places), text
    return {"header": rows[0], "rows": rows[1:], "fills": fills,
            "advisor": dict(zip(("line", "node"), (p[1].strip() for p in places if p),
                                strict=True))}


def table(content: dict[str, Any]) -> Table:
    return [(dict(zip(content["header"], row, strict=False)), fill)
            for row, fill in zip(content["rows"], content["fills"], strict=True)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What plumb writes for a pair; every pair is compared once."""
    return functools.cache(lambda name: ours(name, tmp_path_factory.mktemp(name)))


@dataclass(frozen=True)
class Repair:
    """Cells that plumbline writes otherwise on purpose; `accept` sees upstream's row and ours."""

    key: str
    columns: tuple[str, ...]
    accept: Callable[[Row, Row], bool]
    cases: tuple[str, ...]


METRICS = ("Cosine", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio",
           "Five Thousandths Err Ratio")
JUDGED = (*METRICS, "Accuracy Reached or Not", "Err_message")
ANY = ("*",)
PAIRED_HERE = ("precision", "other_order", "fuzzy", "brain_float", "scalar_types")


def equal_values(row: Row) -> bool:
    """The row shows two equal values: no difference, and the statistics of the target."""
    sides = [row[f"NPU {key}"] == row[f"Bench {key}"] for key in ("max", "min", "mean", "l2norm")]
    found = [row[key] for key in ("Max diff", "Mean diff", "MaxAbsErr", "MaxRelativeErr")
             if key in row]
    return all(sides) and all(value in (0, "0.0%", "N/A") for value in found)


def is_output(row: Row, name: str) -> bool:
    return row["NPU Name"] == f"Torch.{name}.0.forward.output.0"


REPAIRS = [
    # compare 3.1, 3.2: calls that upstream leaves without counterpart, though there is one.
    Repair("paired", ANY, lambda theirs, ours: theirs["Bench Name"] == "N/A" != ours["Bench Name"]
           and equal_values(ours), PAIRED_HERE),
    # compare 3.3: recomputation makes numbers jump; upstream compares calls that do not belong
    # together. The values agree when they are paired by their order.
    Repair("renumbered", ANY, lambda theirs, ours: "renumbered" in ours["Err_message"]
           and equal_values(ours) and ours["Bench Name"] != theirs["Bench Name"],
           ("recomputation",)),
    # decisions 3: the digest of a call without counterpart is not lost (as MindSpore keeps it).
    Repair("own-digest", ("NPU MD5",), lambda theirs, ours: ours["Bench Name"] == "N/A"
           == theirs["NPU MD5"] and len(ours["NPU MD5"]) == 8, ("md5",)),
    # compare 7.3: the imaginary part counts.
    Repair("complex", JUDGED, lambda theirs, ours: "complex" in ours["NPU Dtype"]
           and ours["MaxAbsErr"] == 0.125, ("zoo",)),
    # compare 19 #5: opposite infinities differ, empty tensors are not judged, scalars are.
    Repair("infinite-sign", JUDGED, lambda theirs, ours: is_output(ours, "inf_sign")
           and ours["Accuracy Reached or Not"] == "No" != theirs["Accuracy Reached or Not"],
           ("zoo",)),
    Repair("empty", JUDGED, lambda theirs, ours: ours["NPU Tensor Shape"] == "[0, 3]"
           and ours["Accuracy Reached or Not"] == "None" and ours["Cosine"] == "unsupported",
           ("zoo",)),
    Repair("scalar-judged", ("Accuracy Reached or Not",), lambda theirs, ours:
           ours["NPU Tensor Shape"] in ("[]", "[1]")
           and ours["Accuracy Reached or Not"] == ("No" if ours["MaxAbsErr"] else "Yes"),
           ("zoo",)),
    # decisions 3: a cosine of NaN is no pass.
    Repair("nan-cosine", ("Accuracy Reached or Not",), lambda theirs, ours:
           (ours["Cosine"], ours["Accuracy Reached or Not"]) == ("Nan", "No")
           and theirs["Accuracy Reached or Not"] == "Yes", ("zeros_and_ones",)),
    # compare 19 #6: float16 is divided in double, where the regulator does not vanish.
    Repair("half-zero", ("MaxRelativeErr", "One Thousandth Err Ratio",
                         "Five Thousandths Err Ratio", "Err_message", "fill"),
           lambda theirs, ours: (ours["MaxRelativeErr"], ours["One Thousandth Err Ratio"]) == (0, 1)
           and theirs["MaxRelativeErr"] == "Nan", ("half_zero",)),
    # The same: upstream divides in the tensors' own precision, plumbline in double.
    Repair("relative-in-double", ("MaxRelativeErr",), lambda theirs, ours: close(
        theirs["MaxRelativeErr"], ours["MaxRelativeErr"]), ("zoo",)),
    # compare 19 #8: NaN is coloured as infinities are; a negative maximum is no reason.
    Repair("nan-coloured", ("fill", "Err_message"), lambda theirs, ours:
           str(ours["NPU max"]).lower() == "nan" and "red-naninf" in ours["Err_message"], ("zoo",)),
    Repair("negative-maximum", ("fill", "Err_message"), lambda theirs, ours:
           theirs["Err_message"] == ["red-max-relative"] and ours["Err_message"] == []
           and ours["Bench max"] == -5, ("negative_max",)),
    # decisions 3: an infinite statistic on one side is a warning.
    Repair("infinite-statistic", ("Result", "Err_message"), lambda theirs, ours:
           ours["NPU max"] == "inf\t" != ours["Bench max"] and ours["Result"] == "Warning"
           and theirs["Result"] is None, ("infinite",)),
    # compare 2.2: the text of a slice or size is shown, so that another one can be seen.
    Repair("value-shown", ("NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max",
                           "Bench min", "Bench mean", "Bench l2norm"),
           lambda theirs, ours: ours["NPU Dtype"] in ("slice", "torch.Size")
           and theirs["NPU max"] == "None" and ours["NPU max"] == ours["Bench max"], ("scalars",)),
    # compare 7.1: upstream's note says that nothing matched, though the row has a counterpart.
    Repair("no-file", ("Err_message",), lambda theirs, ours: ours["Err_message"] == ["no-file"]
           and theirs["Err_message"] == ["no-bench"] and ours["Bench Name"] != "N/A",
           ("kwargs_tensor",)),
]
# Codes that say more than upstream does and change nothing else.
MORE = {"golden-zero", "dtype", "narrowed", "shape", "naninf", "red-max-relative", "red-naninf",
        "fuzzy"}


def close(theirs: Any, ours: Any) -> bool:
    both = isinstance(theirs, float | int) and isinstance(ours, float | int)
    return both and abs(theirs - ours) <= 2**-23 * abs(ours) + 1e-12


def same(column: str, theirs: Any, ours: Any) -> bool:
    if column == "Err_message":
        return set(theirs) <= set(ours) <= set(theirs) | MORE
    return bool(theirs == ours) and isinstance(theirs, str) == isinstance(ours, str)


def with_counterparts(theirs: Table, found: Table) -> tuple[list[Any], list[str]]:
    """Upstream's rows beside ours, in order, and the names of those that only we have."""
    left = iter(theirs)
    row = next(left, None)
    pairs, more = [], []
    for one in found:
        if row is not None and one[0]["NPU Name"] == row[0]["NPU Name"]:
            pairs.append((row, one))
            row = next(left, None)
        else:
            more.append(one[0]["NPU Name"])
    assert row is None, f"a row of upstream is missing or in another place: {row}"
    return pairs, more


@pytest.mark.parametrize("name", CASES)
def test_cells(name: str, results: Results) -> None:
    theirs, found = upstream(name), results(name)
    assert found["header"] == [*theirs["header"], "Verdict", "Reason"]
    pairs, more = with_counterparts(table(theirs), table(found))
    # Row 7: calls of the target that upstream loses; and calls of the golden side, at the end.
    lost = [f"Torch.x{k}.0.forward.{part}.0" for k in (2, 3, 4) for part in ("input", "output")]
    named = [row for row in more if row != "N/A"]
    assert named == (lost if name == "lost_calls" else [])
    assert more == named + ["N/A"] * (len(more) - len(named))
    different, used = [], set()
    for (a, fill), (b, our_fill) in pairs:
        cells = [(column, a[column], b[column]) for column in theirs["header"]]
        for column, left, right in [*cells, ("fill", fill, our_fill)]:
            if same(column, left, right):
                continue
            known = [repair.key for repair in REPAIRS if name in repair.cases
                     and {column, "*"} & set(repair.columns) and repair.accept(a, b)]
            used.update(known)
            if not known:
                different.append((a["NPU Name"], column, left, right))
    assert not different
    assert used == {repair.key for repair in REPAIRS if name in repair.cases}


@pytest.mark.parametrize("name", CASES)
def test_advisor_names_the_same_row(name: str, results: Results) -> None:
    """Line and name, but where a repaired verdict comes first."""
    repaired = {"zeros_and_ones": ("1", "Torch.f.0.forward.output.0"),
                "infinite": ("1", "Torch.one.0.forward.output.0")}
    found = results(name)["advisor"]
    expected = upstream(name)["advisor"]
    if name in repaired:
        assert found != expected
        expected = dict(zip(("line", "node"), repaired[name], strict=True))
    assert found == expected


def test_numbers_of_other_types_are_compared_by_value(results: Results) -> None:
    """Row 12: 1 against 1.0 is no pair upstream; it is one here, and only equal values agree."""
    found = table(results("scalar_types"))
    assert {row["Verdict"] for row, _ in found} == {"same"}
    assert all(row["Bench Name"] != "N/A" for row, _ in found)
