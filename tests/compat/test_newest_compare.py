"""The csv of `plumb msprobe compare` against that of release 26.2.0, on the same dumps, by cells.

The dumps are built by tests/golden/make_dumps.py and changed here so that every rule for Result and
every kind of statistic occurs. What differs on purpose is listed in NEWEST_TABLE of
known_differences.py.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import openpyxl
import pytest
import torch
from conftest import HERE, ROOT, run, upstream_python
from known_differences import NEWEST_TABLE

sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

PAIRS = {
    "statistics": ("wrong_scale", "sound"),
    "argument": ("wrong_eps", "sound"),
    "md5": ("wrong_scale_md5", "sound_md5"),
    "tensor": ("wrong_scale_tensor", "sound_tensor"),
    "extra_call": ("extra_call", "sound"),
    "odd": ("odd_target", "odd_golden"),
}
# With rules for tensors that are changed before they are compared.
POSTPROCESSED = {"products": ("wrong_scale_tensor", "sound_tensor"),
                 "grouped": ("grouped_target", "grouped_golden")}
WORKBOOKS = ("statistics", "md5", "tensor", "odd")
METRICS = ("Cosine", "EucDist", "MaxAbsErr", "One Thousandth Err Ratio",
           "Five Thousandths Err Ratio")
SCALED = "Torch.mul.1.forward.output.0"
INF, NAN = float("inf"), float("nan")


def odd(directory: Path, target: bool) -> None:
    """NaN, infinities, zeros, scalars and texts; calls that the rules leave out."""
    out = make_dumps.Recording(str(directory))
    x = ([1.0, 2.0], [2])
    moved = ([1.001 if target else 1.0, 2.0], [2])

    def result(name: str, ours: list[float], theirs: list[float], first: object = x) -> None:
        out.call(name, [first], [(ours if target else theirs, [2])])

    result("Torch.nan.0.forward", [NAN, 1.0], [1.0, 1.0])
    result("Torch.zero.0.forward", [0.0, 0.0], [1.0, 2.0])
    result("Torch.zeros.0.forward", [0.0, 0.0], [0.0, 0.0])
    result("Torch.inf.0.forward", [INF, 1.0], [INF, 1.0])
    result("Torch.sign.0.forward", [INF, 1.0], [-INF, 1.0])
    result("Torch.finite.0.forward", [1.0, 1.0], [INF, 1.0])
    result("Torch.negative.0.forward", [-5.001, -6.0], [-5.0, -6.0])
    result("Torch.to.0.forward", [9.0, -6.0], [-5.0, -6.0])
    result("Torch.grow.0.forward", [1.3, 2.0], [1.0, 2.0], moved)
    result("Distributed.all_to_all_single.0.forward", [19.3, 2.0], [1.0, 2.0], moved)
    out.call("Torch.some.0.forward", [x, None, "text", True, 3, 4 if target else 5, not target],
             [([], [0])])
    if target:
        changed = out.data["Torch.negative.0.forward"]["output"][0]
        changed.update(requires_grad=True, dtype="torch.float16")
    out.write()


def grouped(directory: Path, target: bool) -> None:
    """A grouped product that leaves a row of its result unwritten, with counts of rows."""
    out = make_dumps.Recording(str(directory), task="tensor")
    name = "NPU.npu_grouped_matmul.0.forward"
    out.call(name, [([1.0, 2.0, 3.0, 4.0], [2, 2])],
             [([1.5, 2.0, 7.0 if target else 0.0, 0.0], [2, 2])])
    groups = out.tensor([1.0], [1], f"{name}.kwargs.group_list") | {"dtype": "torch.int64"}
    torch.save(torch.tensor([1]), directory / "dump_tensor_data" / groups["data_name"])
    out.data[name]["input_kwargs"] = {"group_list": groups,
                                      "group_list_type": {"type": "int", "value": 1}}
    out.write()


def build(name: str, directory: Path) -> None:
    if name.startswith("odd_"):
        odd(directory, name == "odd_target")
    elif name.startswith("grouped_"):
        grouped(directory, name == "grouped_target")
    else:
        getattr(make_dumps, name)(str(directory))


def table(folder: Path) -> list[dict[str, str]]:
    [path] = folder.glob("compare_result_*.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dumps and, below `out`, upstream's table of each pair."""
    python = upstream_python("26.2.0")
    root = tmp_path_factory.mktemp("newest")
    requests = []
    make_dumps.two_thirds(str(root / "matrix"))
    (root / "rules.yaml").write_text(json.dumps({"right_matmul": {"target_tensor_map": {
        str(root / "matrix" / "back.pt"): [f"{SCALED}.pt"]}}}))
    pairs = PAIRS | POSTPROCESSED
    for name in sorted({side for pair in pairs.values() for side in pair}):
        build(name, root / name)
    cases = [(key, key, []) for key in PAIRS]
    cases += [(key, f"{key}_xlsx", ["--xlsx"]) for key in WORKBOOKS]
    cases += [(key, key, ["--config", root / "rules.yaml"]) for key in POSTPROCESSED]
    for key, out, options in cases:
        target, golden = pairs[key]
        words = ["compare", "-tp", root / target / "dump.json", "-gp", root / golden / "dump.json",
                 "-o", root / "out" / out, *options]
        requests.append({"words": [str(word) for word in words], "log": str(root / out) + ".log"})
    (root / "requests.json").write_text(json.dumps(requests))
    done = run([python, "-W", "ignore", HERE / "run_upstream_commands.py", root / "requests.json"],
               timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return root


def levels(messages: str, *, ours: bool) -> list[str]:
    """The kinds of the messages; notes of ours stand beside upstream's."""
    found = [message.split(":")[0] for message in json.loads(messages)]
    return [kind for kind in found if not ours or kind != "note"]


@pytest.mark.parametrize("key", list(PAIRS))
def test_cells_equal(key: str, theirs: Path, plumb: Path, tmp_path: Path) -> None:
    target, golden = PAIRS[key]
    done = run([plumb, "msprobe", "compare", "-tp", theirs / target / "dump.json", "-gp",
                theirs / golden / "dump.json", "-o", tmp_path], timeout=60)
    assert done.returncode == 0, done.stderr
    expected, found = table(theirs / "out" / key), table(tmp_path)
    assert list(found[0]) == [*expected[0], "Verdict", "Reason"]
    assert [row["NPU Name"] for row in found] == [row["NPU Name"] for row in expected]
    different, used = [], set()
    for a, b in zip(expected, found, strict=True):
        for column, cell in a.items():
            same = cell == b[column]
            if column == "Err_message":
                same = levels(cell, ours=False) == levels(b[column], ours=True)
            if same:
                continue
            known = [entry.key for entry in NEWEST_TABLE if entry.accepts(column, a, b)]
            used.update(known)
            if not known:
                different.append((a["NPU Name"], column, cell, b[column]))
    assert not different, different[:20]
    assert used == {entry.key for entry in NEWEST_TABLE if key in entry.occurs_in}


def test_never_a_wrong_pass(theirs: Path, plumb: Path, tmp_path: Path) -> None:
    """What upstream passes although it proves nothing is marked by plumb."""
    target, golden = PAIRS["odd"]
    done = run([plumb, "msprobe", "compare", "-tp", theirs / target / "dump.json", "-gp",
                theirs / golden / "dump.json", "-o", tmp_path], timeout=60)
    assert done.returncode == 0, done.stderr
    results = {row["NPU Name"]: row["Result"] for row in table(tmp_path)}
    for name in ("nan", "zero", "zeros", "inf", "sign", "finite", "some"):
        assert results[f"Torch.{name}.0.forward.output.0"] != "pass", name
    upstream_results = {row["NPU Name"]: row["Result"] for row in table(theirs / "out" / "odd")}
    assert upstream_results["Torch.sign.0.forward.output.0"] == "pass"
    assert re.search("warning|error", results["Torch.inf.0.forward.output.0"])


@pytest.mark.parametrize("key", list(POSTPROCESSED))
def test_changed_tensors_measure_the_same(key: str, theirs: Path, plumb: Path,
                                          tmp_path: Path) -> None:
    target, golden = POSTPROCESSED[key]
    done = run([plumb, "msprobe", "compare", "-tp", theirs / target / "dump.json", "-gp",
                theirs / golden / "dump.json", "-o", tmp_path, "--config", theirs / "rules.yaml"],
               timeout=60)
    assert done.returncode == 0, done.stderr
    expected, found = table(theirs / "out" / key), table(tmp_path)
    assert [row["NPU Name"] for row in found] == [row["NPU Name"] for row in expected]
    changed = 0
    for a, b in zip(expected, found, strict=True):
        changed += "post-processed" in b["Err_message"]
        for column in METRICS:
            try:
                wanted = float(a[column])
            except ValueError:
                assert a[column] == b[column], (a["NPU Name"], column)
                continue
            # Upstream multiplies in float32.
            assert float(b[column]) == pytest.approx(wanted, rel=1e-6, abs=3e-7), a["NPU Name"]
    assert changed == 1


def workbook(folder: Path) -> list[tuple[object, ...]]:
    [path] = folder.glob("compare_result_*.xlsx")
    sheet = openpyxl.load_workbook(path)["Sheet1"]
    return list(sheet.iter_rows(values_only=True))


@pytest.mark.parametrize("key", WORKBOOKS)
def test_workbook_is_the_csv(key: str, theirs: Path, plumb: Path, tmp_path: Path) -> None:
    """The header of upstream's workbook, numbers where it has numbers, and the cells of the csv."""
    target, golden = PAIRS[key]
    sides = ["-tp", theirs / target / "dump.json", "-gp", theirs / golden / "dump.json"]
    for words in (["-o", tmp_path, "--xlsx"], ["-o", tmp_path]):
        done = run([plumb, "msprobe", "compare", *sides, *words], timeout=60)
        assert done.returncode == 0, done.stderr
    expected, found = workbook(theirs / "out" / f"{key}_xlsx"), workbook(tmp_path)
    assert found[0] == (*expected[0], "Verdict", "Reason")
    numbers = 0
    for a, b in zip(expected[1:], found[1:], strict=True):
        for column, theirs_cell, ours in zip(expected[0], a, b[:-2], strict=True):
            is_number = isinstance(theirs_cell, (int, float)) and not isinstance(theirs_cell, bool)
            numbers += is_number
            if is_number or isinstance(ours, (int, float)):
                # Theirs are texts throughout where one cell of the column is one.
                wanted = pytest.approx(float(theirs_cell), rel=1e-6)
                assert isinstance(ours, (int, float)) and ours == wanted, (column, b[0])
    assert numbers > 0 or key == "md5"
    for row, cells in zip(table(tmp_path), found[1:], strict=True):
        for (column, text), cell in zip(row.items(), cells, strict=True):
            if isinstance(cell, (int, float)):  # of which a workbook has 16 digits
                same = float(text) == pytest.approx(cell, rel=1e-15)
            else:
                same = text.removeprefix(" ") == str(cell or "").removeprefix(" ")
            assert same, (column, text, cell)
