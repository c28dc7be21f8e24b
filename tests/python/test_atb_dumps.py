"""`plumb compare` on dumps of ATB, against release 26.2.0 cell by cell (row 25 of the acceptance
list), and what damaged ones give.
"""

from __future__ import annotations

import math
import pathlib
import subprocess

import openpyxl
import pytest
from atb_dumps import CULPRIT, write
from recording import PLUMB

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "atb"
KINDS = ("stats", "tensor")


def plumb(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *map(str, words)], text=True, capture_output=True, check=False,
                          timeout=60)


def table(path: pathlib.Path) -> list[dict[str, str]]:
    header, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
    return [dict(zip(header, ("" if cell is None else str(cell) for cell in row), strict=True))
            for row in rows]


def pair(tmp_path: pathlib.Path, kind: str) -> tuple[pathlib.Path, pathlib.Path]:
    return (write(tmp_path / "target", True, kind == "tensor"),
            write(tmp_path / "golden", False, kind == "tensor"))


def same(ours: str, theirs: str) -> bool:
    theirs = theirs.removeprefix("tensor(").removesuffix(")")
    try:
        return math.isclose(float(ours), float(theirs), rel_tol=2e-6, abs_tol=1e-12)
    except ValueError:
        return ours == theirs


@pytest.mark.parametrize("kind", KINDS)
def test_as_the_newest_release(tmp_path: pathlib.Path, kind: str) -> None:
    target, golden = pair(tmp_path, kind)
    done = plumb("msprobe", "compare", "-m", "atb", "-tp", target, "-gp", golden, "-o",
                 tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"first wrong call: {CULPRIT}\n")
    [path] = (tmp_path / "out").glob(f"atb_{kind}_compare_result_??????????????.xlsx")
    ours, theirs = table(path), table(DATA / f"upstream_{kind}.xlsx")
    assert list(ours[0])[:-3] == list(theirs[0]), "the same columns, then three of ours"
    assert len(ours) == len(theirs)
    for mine, row in zip(ours, theirs, strict=True):
        for column, value in row.items():
            # Repaired: the int8 scalar is measured, not refused.
            if value == "N/A" and row["Target Data Shape"] == "" and kind == "tensor":
                continue
            assert same(mine[column], value), (column, mine[column], value)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_dumps_are_found_out_by_themselves(tmp_path: pathlib.Path, kind: str) -> None:
    one = write(tmp_path / "one", False, kind == "tensor")
    two = write(tmp_path / "two", False, kind == "tensor")
    done = plumb("compare", one, two, "-o", tmp_path / "out", "--fail-on", "any")
    if kind == "tensor":
        assert done.returncode == 0 and done.stdout.startswith("no wrong call\n"), done.stdout
        return
    # ATB writes no statistics of the tensor without dimensions, which may be any number.
    assert done.returncode == 1
    assert done.stdout.startswith("not judged completely: the paired tensors show no wrong call\n")
    assert "without a verdict: 1\n" in done.stdout


def test_what_is_missing_is_no_pass(tmp_path: pathlib.Path) -> None:
    target, golden = (write(tmp_path / name, False, True) for name in ("target", "golden"))
    victim = target / "Decoder_Linear/output_0.bin"
    victim.write_bytes(victim.read_bytes()[:-1])
    (target / "Decoder_Norm/input_0.bin").unlink()
    lines = (golden / "statistic.csv").read_text().splitlines()
    del lines[2]
    (golden / "statistic.csv").write_text("\n".join(lines) + "\nshort,row\n")
    done = plumb("compare", target, golden, "-o", tmp_path / "out", "--fail-on", "unmatched")
    assert done.returncode == 1
    assert done.stdout.startswith("not judged completely")
    assert "unreadable files: 2" in done.stdout and "left out: 1" in done.stdout
    [path] = (tmp_path / "out").glob("*.xlsx")
    rows = {row["Target Data Name"]: row for row in table(path)}
    assert rows["0_Decoder/1_Linear/output.0"]["Reason"] == "unreadable"
    assert "the file may be cut" in rows["0_Decoder/1_Linear/output.0"]["Problem"]
    assert rows["0_Decoder/0_Norm/output.0"]["Reason"] == "only-target"


def test_values_that_are_no_numbers(tmp_path: pathlib.Path) -> None:
    """NaN in the printed statistics, on one side and on both."""
    target, golden = (write(tmp_path / name, False, False) for name in ("target", "golden"))
    for root, bad in ((target, ("input,0", "output,0")), (golden, ("input,0",))):
        text = (root / "statistic.csv").read_text().splitlines()
        for i, line in enumerate(text):
            if "Decoder/Norm" in line and any(place in line for place in bad):
                text[i] = ",".join([*line.split(",")[:-5], "nan", "nan", "nan", "nan", "N/A"])
        (root / "statistic.csv").write_text("\n".join(text) + "\n")
    done = plumb("compare", target, golden, "-o", tmp_path / "out", "--fail-on", "broken")
    assert done.returncode == 1 and done.stdout.startswith("first wrong call: 0_Decoder/0_Norm\n")
    [path] = (tmp_path / "out").glob("*.xlsx")
    reasons = {row["Target Data Name"]: row["Reason"] for row in table(path)}
    assert reasons["0_Decoder/0_Norm/input.0"] == "nonfinite-both"
    assert reasons["0_Decoder/0_Norm/output.0"] == "nonfinite-position"


def test_bad_input_is_one_line(tmp_path: pathlib.Path) -> None:
    good = write(tmp_path / "good", False, False)
    tensors = write(tmp_path / "tensors", False, True)
    for name, text in (("empty", ""), ("header", (good / "statistic.csv").read_text().split("\n")[0]
                                       + "\n"), ("other", "a,b\n1,2\n"), ("cut", '"a,b')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "statistic.csv").write_text(text)
    for target, status in ((tmp_path / "empty", 5), (tmp_path / "header", 3),
                           (tmp_path / "other", 5), (tmp_path / "cut", 5), (tensors, 2),
                           (tmp_path / "missing", 3), (tmp_path, 3)):
        done = plumb("compare", "-m", "atb", target, good, "-o", tmp_path / "out")
        assert done.returncode == status, (target, done.stderr)
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "out").exists()
