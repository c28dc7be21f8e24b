"""Recordings that differ, or that miss something, are never called good."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import page_data
import pytest
import torch
from compare_cases import Dump
from recording import run

import plumbline

# Records torch.where(ones, v, v) and a sound call; one step per value of the last argument.
SCRIPT = """
import json, sys, torch
from plumbline.pytorch import PrecisionDebugger
inf, nan = float("inf"), float("nan")
out, task, mode, values = sys.argv[1:]
config = {"task": task, "dump_path": out, "level": "L1", task: {"summary_mode": mode}}
json.dump(config, open(out + ".json", "w"))
d = PrecisionDebugger(out + ".json")
torch.manual_seed(0)
sound = torch.randn(4, 4)
for value in map(eval, json.loads(values)):
    ones = torch.ones_like(value, dtype=torch.bool)
    d.start()
    torch.tanh(sound)
    torch.where(ones, value, value)
    d.stop(); d.step()
"""

MASK = "torch.tensor([1.0, 2, 3, -inf, 4, 5, 6, 7])"
PAIRS = [
    (MASK, "torch.full((8,), nan)"),
    ("torch.full((8,), -inf)", "torch.full((8,), inf)"),
    (MASK, "torch.tensor([100.0, 2, 3, -inf, 4, 5, 6, 700])"),
    ("torch.tensor([2**25] * 8)", "torch.tensor([2**25 + 1] * 8)"),
    ("torch.tensor(2**25)", "torch.tensor(2**25 + 1)"),
    ("torch.tensor(0.1, dtype=torch.float64)", "torch.tensor(0.1).double()"),
    ("torch.zeros(8)", "torch.ones(8)"),
]


VALUES = list(dict.fromkeys([*(value for pair in PAIRS for value in pair), "torch.arange(8.0)"]))


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Records every value, once per (task, mode)."""
    root = tmp_path_factory.mktemp("values")

    def make(task: str, mode: str, what: str) -> Path:
        out = root / f"{task}_{mode}"
        if not out.is_dir():
            run(SCRIPT, out, task, mode, json.dumps(VALUES))
        return out / f"step{VALUES.index(what)}" / "rank"

    return make


@pytest.mark.parametrize(
    ("task", "mode"), [("statistics", "statistics"), ("statistics", "md5"), ("tensor", "md5")]
)
@pytest.mark.parametrize(("golden", "target"), PAIRS)
def test_other_numbers(
    golden: str, target: str, task: str, mode: str, record: Callable[..., Path]
) -> None:
    result = plumbline.compare(record(task, mode, target), record(task, mode, golden))
    assert result.answer == "first wrong call: Torch.where.0.forward"
    assert result.exit_code == 1


def test_a_masked_tensor_agrees_with_itself(record: Callable[..., Path]) -> None:
    for task, mode in (("statistics", "statistics"), ("statistics", "md5"), ("tensor", "md5")):
        run = record(task, mode, MASK)
        result = plumbline.compare(run, run)
        assert result.answer == "no wrong call"
        assert result.exit_code == 0
        assert {row["reason"] for row in result.rows} <= {"", "nonfinite-both"}


@pytest.mark.parametrize(
    ("task", "mode"), [("statistics", "statistics"), ("statistics", "md5"), ("tensor", "md5")]
)
def test_nan_does_not_agree_with_itself(
    task: str, mode: str, record: Callable[..., Path], tmp_path: Path
) -> None:
    run = record(task, mode, "torch.full((8,), nan)")
    result = plumbline.compare(run, run)
    assert result.answer.startswith("not judged completely: 3 values are NaN on both sides")
    assert (result.complete, result.exit_code, result.counts["missing values"]) == (False, 1, 3)
    assert any("Torch.where.0.forward.input.1 is NaN" in text for text in result.warnings)
    of_ranks = plumbline.compare_ranks(run.parent, run.parent, tmp_path / "out")
    assert of_ranks.answer.startswith("not judged completely")
    assert (of_ranks.complete, of_ranks.exit_code) == (False, 1)


def edit(source: Path, target: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a recording whose output of `where` is changed."""
    target.mkdir()
    for file in source.iterdir():
        if file.is_file():
            (target / file.name).write_bytes(file.read_bytes())
    if (source / "dump_tensor_data").is_dir():
        (target / "dump_tensor_data").symlink_to(source / "dump_tensor_data")
    dump = json.loads((target / "dump.json").read_text())
    change(dump["data"]["Torch.where.0.forward"]["output"][0])
    (target / "dump.json").write_text(json.dumps(dump))
    return target


def drop(*keys: str) -> Callable[[dict[str, Any]], None]:
    return lambda tensor: [tensor.pop(key, None) for key in keys] and None


def nulls(tensor: dict[str, Any]) -> None:
    tensor.update(dict.fromkeys(("Max", "Min", "Mean", "Norm")))


EDITS = [
    ("statistics", "statistics", nulls),
    ("statistics", "statistics", drop("Max", "Min", "Mean", "Norm")),
    ("statistics", "statistics", drop("Max", "Mean", "Norm")),
    ("statistics", "md5", drop("md5")),
    ("tensor", "md5", drop("data_name")),
]


@pytest.mark.parametrize("side", ["target", "golden"])
@pytest.mark.parametrize(("task", "mode", "change"), EDITS)
def test_missing_numbers(
    task: str, mode: str, change: Any, side: str, record: Callable[..., Path], tmp_path: Path
) -> None:
    whole = record(task, mode, "torch.arange(8.0)")
    part = edit(whole, tmp_path / "part", change)
    pair = (part, whole) if side == "target" else (whole, part)
    result = plumbline.compare(*pair)
    assert result.answer.startswith("not judged completely: 1 value without data")
    assert not result.complete
    assert result.exit_code == 1


def test_losses_of_the_recorder(record: Callable[..., Path], tmp_path: Path) -> None:
    whole = record("statistics", "statistics", "torch.arange(8.0)")
    part = edit(whole, tmp_path / "part", lambda tensor: None)
    line = "[2026-01-01 12:00:00 +0000] [ERROR] tensors_dropped: 9 (disk full)\n"
    (part / "dump_error_info.log").write_text(line)
    result = plumbline.compare(part, whole)
    assert result.answer.startswith("not judged completely: 9 losses")
    assert any("dump_error_info.log" in warning for warning in result.warnings)


def product_dump(directory: Path, dtype: torch.dtype, factor: float) -> Path:
    """A tensor dump of one product, whose result is multiplied by `factor`."""
    torch.manual_seed(0)
    x, w = torch.randn(16, 4096).to(dtype), torch.randn(64, 4096).to(dtype)
    result = ((x.double() @ w.double().T).to(dtype) * factor).to(dtype)
    folder = directory / "dump_tensor_data"
    folder.mkdir(parents=True)
    name = "Functional.linear.0.forward"
    tensors = []
    for part, tensor in (("input.0", x), ("input.1", w), ("output.0", result)):
        torch.save(tensor, folder / f"{name}.{part}.pt")
        values = tensor.double()
        tensors.append({
            "type": "torch.Tensor", "dtype": str(dtype), "shape": list(tensor.shape),
            "Max": values.max().item(), "Min": values.min().item(), "Mean": values.mean().item(),
            "Norm": values.norm().item(), "requires_grad": False,
            "data_name": f"{name}.{part}.pt",
        })
    entry = {"input_args": tensors[:2], "input_kwargs": {}, "output": tensors[2:]}
    header = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
    (directory / "dump.json").write_text(json.dumps({**header, "data": {name: entry}}))
    return directory


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("factor", [-1, 1.9, 1.2])
def test_wrong_products_of_half_precision(
    dtype: torch.dtype, factor: float, tmp_path: Path
) -> None:
    golden = product_dump(tmp_path / "golden", dtype, 1)
    result = plumbline.compare(product_dump(tmp_path / "target", dtype, factor), golden)
    assert result.first_wrong_call == "Functional.linear.0.forward"
    assert plumbline.compare(golden, golden).answer == "no wrong call"


def chain_of_errors(growth: float, directory: Path, first: float) -> Path:
    """A statistics dump of 12 multiplications, each worse than the one before."""
    calls = {}
    value, error = 1.0, first
    for index in range(12):
        tensors = []
        for size in (value, value * (1 + error)):
            tensors.append({
                "type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": size,
                "Min": size, "Mean": size, "Norm": 2 * size, "requires_grad": False,
            })
        calls[f"Torch.mul.{index}.forward"] = {
            "input_args": [tensors[0]], "input_kwargs": {}, "output": [tensors[1]]
        }
        value, error = value * (1 + error), error * growth
    header = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
    directory.mkdir()
    (directory / "dump.json").write_text(json.dumps({**header, "data": calls}))
    return directory


def test_noise_does_not_grow_without_bound(tmp_path: Path) -> None:
    golden = chain_of_errors(1, tmp_path / "golden", 0)
    target = chain_of_errors(7.9, tmp_path / "target", 4e-8)
    result = plumbline.compare(target, golden)
    assert result.first_wrong_call is not None
    assert result.exit_code == 1


@pytest.mark.parametrize("task", ["statistics", "md5", "tensor"])
def test_the_answer_says_how_certain_it_is(task: str, tmp_path: Path) -> None:
    """A permuted batch keeps max, min, mean and norm: without tensors it cannot be seen."""
    batch = torch.arange(12.0).reshape(4, 3)
    for name, value in (("good", batch), ("permuted", batch[[2, 0, 3, 1]])):
        dump = Dump("tensor" if task == "tensor" else "statistics", md5=task == "md5")
        dump.forward("Torch.relu.0.forward", [batch], [value])
        dump.write(tmp_path / name)
    result = plumbline.compare(tmp_path / "permuted", tmp_path / "good", tmp_path / "out",
                               formats="json,html")
    assert (result.first_wrong_call is None) == (task == "statistics")
    assert result.certainty["level"] == ("high" if task == "tensor" else "medium")
    written = json.loads(Path(result.files[0]).read_text())
    assert written["certainty"] == result.certainty
    lines = [line for line in result.summary.splitlines()[:5] if "certainty" in line]
    assert [result.certainty["text"] in line for line in lines] == [True] * (task != "tensor")
    assert ("permuted" in result.certainty["text"]) == (task == "statistics")
    [part] = page_data.read(Path(result.files[1]))["parts"]
    assert part["part"]["header"]["certainty"] == result.certainty
