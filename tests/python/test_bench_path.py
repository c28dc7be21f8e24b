"""tensor.bench_path: while it runs, a recording is held against an earlier one by checksums."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from recording import config, dump, run

# argv: config, what goes wrong, steps. The reference and the run differ by one argument.
TRAIN = """
import os, sys
os.environ["PLUMBLINE_LOG_LEVEL"] = "1"
import torch
from torch.nn import functional as F
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(0)
torch.set_num_threads(1)
debugger = PrecisionDebugger(sys.argv[1])
bad, steps = sys.argv[2], int(sys.argv[3])
weight = torch.randn(4, 4, requires_grad=True)
x = torch.randn(3, 4)
for step in range(steps):
    debugger.start()
    h = F.linear(x, weight)
    h = F.leaky_relu(h, 0.02 if bad == "slope" else 0.01, inplace=True)
    h = torch.tanh(h)
    if bad == "twice":
        h.add_(1e-3)
    loss = torch.mean(h, dim=-1, keepdim=bad == "shape").sum()
    loss.backward()
    debugger.stop()
    debugger.step()
    weight.grad = None
print("trained")
"""


def reference(directory: Path) -> Path:
    """A recording with checksums."""
    directory.mkdir()
    run(TRAIN, config(directory, task="statistics", summary_mode="md5"), "none", 2)
    return directory / "out"


def files(directory: Path, step: int = 0) -> list[str]:
    """The tensor files of a step."""
    data = directory / "out" / f"step{step}" / "rank" / "dump_tensor_data"
    return sorted(path.name for path in data.iterdir())


def options(path: Path, **more: object) -> dict[str, object]:
    """The settings of a run that is held against `path`."""
    return {"task": "tensor", "summary_mode": "md5", "bench_path": str(path), **more}


def test_only_the_call_that_differs_is_stored(tmp_path: Path) -> None:
    base = reference(tmp_path / "base")
    done = run(TRAIN, config(tmp_path, **options(base)), "slope", 2)
    log = done.stdout + done.stderr
    assert "trained" in log and log.count("Reached the preset difference times") == 1
    assert log.count("ends successfully") == 1
    entries = dump(tmp_path)
    name = "Functional.leaky_relu.0.forward"
    assert list(entries) == ["Functional.linear.0.forward", name]
    assert files(tmp_path) == [f"{name}.input.0.pt", f"{name}.output.0.pt"]
    data = tmp_path / "out" / "step0" / "rank" / "dump_tensor_data"
    before = torch.load(data / f"{name}.input.0.pt")
    after = torch.load(data / f"{name}.output.0.pt")
    assert torch.equal(after, torch.nn.functional.leaky_relu(before, 0.02)), "before the call"
    assert (before < 0).any()
    linear = entries["Functional.linear.0.forward"]["output"][0]
    assert linear["md5"] and "data_name" not in linear
    header = json.loads((tmp_path / "out" / "step0" / "rank" / "dump.json").read_text())
    assert header["task"] == "diff_check" and header["dump_data_dir"]
    assert not (tmp_path / "out" / "step1").exists()


def test_without_limit_and_without_difference(tmp_path: Path) -> None:
    base = reference(tmp_path / "base")
    (tmp_path / "same").mkdir()
    run(TRAIN, config(tmp_path / "same", **options(base, diff_nums=-1)), "none", 2)
    for step in (0, 1):
        assert files(tmp_path / "same", step) == []
        assert dump(tmp_path / "same", step).keys() == dump(tmp_path / "base", step).keys()
    (tmp_path / "shape").mkdir()
    run(TRAIN, config(tmp_path / "shape", **options(base, diff_nums=-1)), "shape", 2)
    for step in (0, 1):
        assert [name for name in files(tmp_path / "shape", step) if ".forward" in name] == [
            "Torch.mean.0.forward.input.0.pt", "Torch.mean.0.forward.output.0.pt"]


@pytest.mark.parametrize("missing", ["step", "several"])
def test_a_reference_that_is_not_there(tmp_path: Path, missing: str) -> None:
    base = tmp_path / "base"
    if missing == "several":
        (base / "step0" / "proc1").mkdir(parents=True)
        (base / "step0" / "proc2").mkdir()
    else:
        base.mkdir()
    done = run(TRAIN, config(tmp_path, **options(base)), "none", 1, check=False)
    assert done.returncode == 1
    assert "ValueError: tensor.bench_path: " in done.stderr and "step0" in done.stderr
