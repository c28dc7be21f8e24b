"""A gradient whose elements were put in another order has the statistics that it had before."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from recording import PLUMB, config, run

# Noise: the columns of an unrecorded product are summed in another order.
TRAIN = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
configured, has_noise, reordered = sys.argv[1:]
torch.manual_seed(0)
x, w = torch.randn(8, 64), torch.randn(12, 64)
if has_noise == "True":
    order = torch.randperm(64)
    x, w = x[:, order].contiguous(), w[:, order].contiguous()
x = x @ w.T
torch.manual_seed(1)
net, y = torch.nn.Linear(12, 6), torch.randint(0, 6, (8,))
debugger = PrecisionDebugger(config_path=configured)
debugger.start(torch.nn.Identity())
torch.nn.functional.cross_entropy(torch.tanh(net(x)), y).backward()
if reordered:
    gradient = net.get_parameter(reordered).grad.numpy()
    gradient[:] = gradient[::-1].copy()
torch.optim.SGD(net.parameters(), lr=0.1).step()
debugger.stop()
debugger.step()
"""


def record(directory: Path, has_noise: bool, reordered: str) -> Path:
    directory.mkdir()
    run(TRAIN, config(directory, task="tensor"), has_noise, reordered)
    return directory / "out" / "step0"


def first_line(target: Path, golden: Path, out: Path) -> str:
    words = [PLUMB, "compare", target, golden, "-o", out]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0]


@pytest.mark.parametrize(("reordered", "line"), [
    ("", "no wrong call"),
    ("bias", "first wrong call: Tensor.add_.1.forward"),
    ("weight", "first wrong call: Tensor.add_.0.forward"),
])
def test_it_is_named_beside_noise(tmp_path: Path, reordered: str, line: str) -> None:
    golden = record(tmp_path / "golden", False, "")
    target = record(tmp_path / "target", True, reordered)
    assert first_line(target, golden, tmp_path / "result") == line
