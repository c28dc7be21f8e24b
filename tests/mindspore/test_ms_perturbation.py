"""The perturbation check on MindSpore in PyNative mode: the same training, and what is found."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import mindspore as ms
import ms_models
import numpy as np
import pytest
from mindspore import Tensor, mint, ops
from ms_recording import new_debugger

from plumbline.debugger import DebuggerBase

CASES: list[dict[str, Any]] = [
    {"pert_mode": ["add_noise", "bit_noise", "change_value", "no_change"]},
    {"pert_mode": "bit_noise", "fuzz_stage": "backward"},
]


def table(directory: Path, name: str) -> list[dict[str, str]]:
    DebuggerBase._instance._close()  # type: ignore[union-attr]
    [path] = directory.glob(f"out/{name}")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def checked(directory: Path, **section: Any) -> Any:
    return new_debugger(directory, task="free_benchmark", **section)


@pytest.mark.parametrize(("net", "case"), [("resnet", CASES[0]), ("lstm", CASES[1])])
def test_training_is_the_same_bits(tmp_path: Path, net: str, case: dict[str, Any]) -> None:
    bare = ms_models.train(net)
    assert ms_models.train(net, checked(tmp_path, **case)) == bare
    summary = table(tmp_path, "rank/free_benchmark_summary.csv")
    assert sum(int(row["calls"]) for row in summary) > 50
    assert [row for row in summary if row["unexplained"] != "0"] == []


def test_rows_have_the_form_of_mindspore(tmp_path: Path) -> None:
    debugger = checked(tmp_path, pert_mode="bit_noise", list=["mindspore.mint.matmul", "softmax"])
    generator = np.random.default_rng(0)
    a, b = (Tensor(generator.normal(size=(16, 16)), ms.float32) for _ in range(2))
    debugger.start()
    ops.softmax((a * 20).astype(ms.float16))
    mint.matmul(a, b)
    ops.relu(a)
    debugger.stop()
    debugger.step()
    summary = table(tmp_path, "rank/free_benchmark_summary.csv")
    assert {row["api"] for row in summary} == {"Mint.matmul", "Functional.softmax"}
    rows = table(tmp_path, "step0/rank/free_benchmark.csv")
    [row] = [row for row in rows if row["api_name"] == "Functional.softmax.0.forward"]
    assert row["rank"] == "" and row["dtype"] == "Float16" and row["shape"] == "(16, 16)"
    assert float(row["max_rel"]) > 1e-3


def test_fix_returns_the_precise_result_in_the_original_type(tmp_path: Path) -> None:
    debugger = checked(tmp_path, handler_type="fix", list=["Functional.softmax"])
    values = Tensor(np.linspace(-3, 3, 32).reshape(4, 8), ms.float16)
    debugger.start()
    result = ops.softmax(values)
    debugger.stop()
    debugger.step()
    assert result.dtype == ms.float16
    exact = ops.softmax(values.astype(ms.float32)).asnumpy()
    assert np.abs(result.asnumpy() - exact).max() <= 2.0**-12
    [row] = table(tmp_path, "step0/rank/free_benchmark_fix.csv")
    assert row["api_name"] == "Functional.softmax.0.forward"


def test_what_mindspore_has_not_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="fuzz_device: is \"cpu\""):
        checked(tmp_path, pert_mode="to_cpu", fuzz_device="cpu")
