"""MindSpore's statistics compared, with MindSpore's and with PyTorch's: one rule for both
frameworks, which is that of PyTorch (release 1.2.2 has others for MindSpore).
"""

from __future__ import annotations

import csv
import json
import pathlib
import subprocess
from typing import Any

import pytest
from recording import PLUMB

# Dtypes of MindSpore and what they are called in PyTorch.
DTYPES = {name: f"torch.{name.lower()}" for name in (
    "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Float16", "Float32",
    "Float64", "BFloat16", "Bool", "Complex64", "Complex128")}
# Precisions that may stand against each other.
HALVES = [("Float16", "Float32"), ("Float32", "Float16"), ("Float16", "BFloat16"),
          ("BFloat16", "Float16")]


def tensor(dtype: str, statistics: tuple[Any, ...] = (1.5, -2.0, 0.5, 3.0),
           shape: tuple[int, ...] = (2, 3)) -> dict[str, Any]:
    kind = "torch.Tensor" if dtype.startswith("torch.") else "mindspore.Tensor"
    keys = ("Max", "Min", "Mean", "Norm")
    return {"type": kind, "dtype": dtype, "shape": list(shape), **dict(zip(keys, statistics,
                                                                         strict=True))}


def dump(root: pathlib.Path, outputs: dict[str, dict[str, Any]]) -> pathlib.Path:
    """A recording of calls with one output each: {"Mint.abs.0": tensor}."""
    framework = "mindspore"
    data = {}
    for name, output in outputs.items():
        data[f"{name}.forward"] = {"input_args": [], "input_kwargs": {}, "output": [output]}
        if output["type"].startswith("torch."):
            framework = "pytorch"
    root.mkdir()
    (root / "dump.json").write_text(json.dumps(
        {"task": "statistics", "level": "L1", "framework": framework, "dump_data_dir": None,
         "data": data}))
    return root


def compare(target: pathlib.Path, golden: pathlib.Path, *options: str) -> list[dict[str, str]]:
    out = target.parent / "out"
    done = subprocess.run([PLUMB, "compare", target, golden, "-o", out, "--format", "csv",
                           *options], text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = out.glob("compare_result_*.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_dtype_stands_against_its_name_in_pytorch(tmp_path: pathlib.Path) -> None:
    target = dump(tmp_path / "t", {f"Mint.abs.{i}": tensor(name) for i, name in enumerate(DTYPES)})
    golden = dump(tmp_path / "g", {f"Torch.abs.{i}": tensor(name)
                                   for i, name in enumerate(DTYPES.values())})
    rows = compare(target, golden, "-am")
    assert [(row["NPU Dtype"], row["Bench Dtype"]) for row in rows] == list(DTYPES.items())
    assert all(float(row["Max diff"]) == 0 and row["Verdict"] == "same" for row in rows), rows


@pytest.mark.parametrize("across", [False, True])
def test_half_precisions_stand_against_each_other(tmp_path: pathlib.Path, across: bool) -> None:
    prefix = "Torch" if across else "Mint"
    others = {f"{prefix}.abs.{i}": tensor(DTYPES[right] if across else right)
              for i, (_, right) in enumerate(HALVES)}
    target = dump(tmp_path / "t", {f"Mint.abs.{i}": tensor(left)
                                   for i, (left, _) in enumerate(HALVES)})
    rows = compare(target, dump(tmp_path / "g", others), *(["-am"] if across else []))
    assert len(rows) == len(HALVES) and all(float(row["Max diff"]) == 0 for row in rows), rows


@pytest.mark.parametrize("other", [tensor("Int32"), tensor("Float32", shape=(3, 2))])
def test_other_types_and_shapes_have_no_counterpart(tmp_path: pathlib.Path,
                                                    other: dict[str, Any]) -> None:
    rows = compare(dump(tmp_path / "t", {"Mint.abs.0": tensor("Float32")}),
                   dump(tmp_path / "g", {"Mint.abs.0": other}))
    mine = next(row for row in rows if row["NPU Name"] == "Mint.abs.0.forward.output.0")
    assert (mine["Bench Name"], mine["Max diff"]) == ("N/A", "N/A")
    assert all(row["Verdict"] not in ("same", "within noise") for row in rows), rows


def test_rows_come_in_the_order_of_the_target(tmp_path: pathlib.Path) -> None:
    names = [f"Mint.{name}.0" for name in ("sub", "abs", "mul", "neg")]
    target = dump(tmp_path / "t", {name: tensor("Float32") for name in names})
    golden = dump(tmp_path / "g", {name: tensor("Float32") for name in sorted(names)})
    rows = compare(target, golden)
    assert [row["NPU Name"] for row in rows] == [f"{name}.forward.output.0" for name in names]


def test_calls_of_one_side_are_rows(tmp_path: pathlib.Path) -> None:
    rows = compare(dump(tmp_path / "t", {"Mint.abs.0": tensor("Float32")}),
                   dump(tmp_path / "g", {"Mint.neg.0": tensor("Float32")}))
    assert {(row["NPU Name"], row["Bench Name"]) for row in rows} == {
        ("Mint.abs.0.forward.output.0", "N/A"), ("N/A", "Mint.neg.0.forward.output.0")}
    assert all(row["Max diff"] == "N/A" and row["Verdict"] == "not comparable"
               for row in rows), rows


@pytest.mark.parametrize(("statistics", "golden", "result"), [
    ((4.0, -2.0, 0.5, 3.0), (1.5, -2.0, 0.5, 3.0), "Warning"),   # one of four is enough
    ((-1.0, -9.0, -4.0, 3.0), (-3.0, -9.0, -4.0, 3.0), "Warning"),  # by the larger magnitude
    ((-2.9, -9.0, -4.0, 3.0), (-3.0, -9.0, -4.0, 3.0), ""),
])
def test_any_statistic_warns(tmp_path: pathlib.Path, statistics: tuple[float, ...],
                             golden: tuple[float, ...], result: str) -> None:
    [row] = compare(dump(tmp_path / "t", {"Mint.abs.0": tensor("Float32", statistics)}),
                    dump(tmp_path / "g", {"Mint.abs.0": tensor("Float32", golden)}))
    assert row["Result"] == result, row


def test_missing_statistics_and_zeros_have_no_relative_error(tmp_path: pathlib.Path) -> None:
    [row] = compare(
        dump(tmp_path / "t", {"Mint.abs.0": tensor("Float32", (None, 1.0, float("nan"), 3.0))}),
        dump(tmp_path / "g", {"Mint.abs.0": tensor("Float32", (None, 0.0, float("nan"), 3.0))}))
    assert (row["Max diff"], row["MaxRelativeErr"]) == ("N/A", "N/A")
    assert (row["Min diff"], row["MinRelativeErr"]) == ("1.0", "N/A")
    assert row["Mean diff"].strip().lower() == "nan"
    assert row["Verdict"] not in ("same", "within noise"), row
