"""What a module leaves in its buffers is recorded with its call, and judged."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from forked_runs import record_all
from recording import PLUMB

# `name` of a recording: <variant>_<anything>.
TRAIN = """
torch.manual_seed(0)
variant = name.split("-")[0]

class Counter(nn.Module):
    "Writes to one buffer, has one in vain, and replaces another."
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(3))
        self.register_buffer("mask", torch.ones(4, 4))
        self.register_buffer("last", torch.zeros(()))
        self.register_buffer("absent", None)

    def forward(self, x):
        self.calls.add_(1)
        self.last = x.detach().mean()
        return x

norm = nn.BatchNorm1d(5, momentum=0.2 if variant == "momentum" else 0.1)
net = nn.Sequential(nn.Linear(4, 5), norm, nn.ReLU(), Counter(), nn.Linear(5, 2))
if variant == "eval":
    net.eval()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
debugger = PrecisionDebugger(path)
for step in range(2):
    x = torch.randn(8, 4)
    if variant == "noise":  # the same mathematics in another order of summation
        order = torch.arange(7, -1, -1)
        x = x[order].contiguous()
    debugger.start(net)
    net(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    debugger.stop()
    debugger.step()
"""
LEVELS = ["L0", "mix"]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("buffers")
    names = [f"{variant}-{level}" for variant in ("first", "second", "momentum", "noise", "eval")
             for level in LEVELS]
    settings: dict[str, dict[str, Any]] = {
        name: {"level": name.split("-")[1]} for name in names}
    settings["first-tensor"] = {"level": "L0", "task": "tensor"}
    settings["second-tensor"] = {"level": "L0", "task": "tensor"}
    settings["first-overflow"] = {"level": "L0", "task": "overflow_check", "overflow_nums": -1}
    return record_all(directory, TRAIN, settings)


def entries(recordings: Path, name: str, step: int = 0) -> dict[str, Any]:
    text = (recordings / name / "out" / f"step{step}" / "rank/dump.json").read_text()
    data: dict[str, Any] = json.loads(text)["data"]
    return data


def compare(recordings: Path, target: str, golden: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PLUMB, "compare", recordings / target / "out", recordings / golden / "out",
         "-o", recordings / "result", "--fail-on", "any"],
        capture_output=True, text=True, timeout=300, check=False,
    )


def test_buffers_that_a_call_changed_are_recorded(recordings: Path) -> None:
    data = entries(recordings, "first-L0")
    norm = data["Module.1.BatchNorm1d.forward.0"]
    assert list(norm) == [
        "input_args", "input_kwargs", "output", "parameters", "buffers", "is_recompute"]
    assert list(norm["buffers"]) == ["running_mean", "running_var", "num_batches_tracked"]
    assert norm["buffers"]["num_batches_tracked"]["Max"] == 1
    assert list(data["Module.3.Counter.forward.0"]["buffers"]) == ["calls", "last"]
    assert "buffers" not in data["Module.0.Linear.forward.0"]


def test_buffers_that_no_call_changed_are_not(recordings: Path) -> None:
    assert "buffers" not in entries(recordings, "eval-L0")["Module.1.BatchNorm1d.forward.0"]


def test_tensor_files_hold_them(recordings: Path) -> None:
    buffers = entries(recordings, "first-tensor")["Module.1.BatchNorm1d.forward.0"]["buffers"]
    name = buffers["running_var"]["data_name"]
    assert name == "Module.1.BatchNorm1d.forward.0.buffers.running_var.pt"
    assert (recordings / "first-tensor/out/step0/rank/dump_tensor_data" / name).exists()


@pytest.mark.parametrize("level", [*LEVELS, "tensor"])
def test_the_same_run_is_no_wrong_call(recordings: Path, level: str) -> None:
    done = compare(recordings, f"second-{level}", f"first-{level}")
    assert done.stdout.startswith("no wrong call in 2 steps\n"), done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("level", LEVELS)
def test_a_wrong_momentum_is_named(recordings: Path, level: str) -> None:
    done = compare(recordings, f"momentum-{level}", f"first-{level}")
    name = {"L0": "Module.1.BatchNorm1d.forward.0", "mix": "Functional.batch_norm.0.forward"}
    assert done.stdout.startswith(f"first wrong call: step 0 rank 0 {name[level]}"), done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize("level", LEVELS)
def test_another_order_of_summation_is_noise(recordings: Path, level: str) -> None:
    done = compare(recordings, f"noise-{level}", f"first-{level}")
    assert "first wrong call" not in done.stdout, done.stdout


def test_an_update_that_nothing_recorded_is_said(recordings: Path) -> None:
    at_modules = compare(recordings, "second-L0", "first-L0").stdout
    with_calls = compare(recordings, "second-mix", "first-mix").stdout
    sentence = "what the optimizer made of the last gradients was not recorded"
    assert sentence in at_modules
    assert sentence not in with_calls
    assert "\n  limit: differences of a result below " in at_modules
