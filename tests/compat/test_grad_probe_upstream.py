"""Task grad_probe and GradComparator beside the real upstream tool, on one training."""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import run, upstream_python

TRAIN = """
import sys, torch
tool, jobs = sys.argv[1], sys.argv[2:]
if tool == "upstream":
    from msprobe.pytorch import PrecisionDebugger
else:
    from plumbline.pytorch import PrecisionDebugger
config, noise, dtype = jobs
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 5))
net = net.to(getattr(torch, dtype))
PrecisionDebugger(config).monitor(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    result = net(torch.randn(7, 20, dtype=getattr(torch, dtype)))
    result = result + float(noise) * (step > 1) * torch.randn(result.shape, dtype=result.dtype)
    result.square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
COMPARE = """
import sys
from msprobe import *
GradComparator.compare_distributed(*sys.argv[1:])
"""


def train(tool: str, directory: Path, level: str, noise: float = 0, dtype: str = "float32",
          **more: object) -> Path:
    directory.mkdir(parents=True)
    config = directory / "config.json"
    section = {"grad_level": level, "param_list": [], "bounds": [-0.1, 0, 2], **more}
    config.write_text(json.dumps({"task": "grad_probe", "dump_path": str(directory / "out"),
                                  "rank": [], "step": [0, "2-3"], "grad_probe": section}))
    config.chmod(0o640)
    python = upstream_python("1.2.2") if tool == "upstream" else sys.executable
    done = run([python, "-W", "ignore", "-c", TRAIN, tool, config, noise, dtype], timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return directory / "out"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(("level", "dtype"), [("L0", "bfloat16"), ("L2", "float32")])
def test_files_are_upstreams(tmp_path: Path, level: str, dtype: str) -> None:
    theirs = train("upstream", tmp_path / "theirs", level, dtype=dtype)
    ours = train("plumbline", tmp_path / "ours", level, dtype=dtype)
    found = [sorted(str(path.relative_to(root)) for path in root.rglob("*")
                    if not path.name.startswith(".")) for root in (theirs, ours)]
    assert found[0] == found[1] and len(found[0]) == (4 if level == "L0" else 19)
    for name in found[0]:
        if name.endswith(".npy"):
            assert (theirs / name).read_bytes() == (ours / name).read_bytes(), name
        elif name.endswith(".csv"):
            for their_row, our_row in zip(rows_of(theirs / name), rows_of(ours / name),
                                          strict=True):
                # Sums in another order: the last digit of a float32 norm.
                norms = [float(row.pop("norm")) for row in (their_row, our_row)]
                assert np.isclose(*norms, rtol=3e-7, atol=0)
                assert their_row == our_row, name


def test_comparisons_are_upstreams(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each side's files of the clean training against ours of the noisy one, by both tools."""
    program = os.environ.get("PLUMB") or str(request.getfixturevalue("plumb"))
    clean = {tool: train(tool, tmp_path / tool, "L1") for tool in ("upstream", "plumbline")}
    noisy = train("plumbline", tmp_path / "noisy", "L1", 1)
    packed = train("plumbline", tmp_path / "packed", "L1", 1, packed=True)
    done = run([upstream_python("1.2.2"), "-W", "ignore", "-c", COMPARE, clean["plumbline"], noisy,
                tmp_path / "theirs"], timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    theirs = (tmp_path / "theirs/rank0/similarities.csv").read_bytes()
    for number, (target, golden) in enumerate(
            [(clean["upstream"], noisy), (clean["plumbline"], noisy),
             (clean["upstream"], packed)]):
        out = tmp_path / f"ours{number}"
        done = run([program, "grad-compare", "-tp", target, "-gp", golden, "-o", out])
        assert done.returncode == 0, done.stderr
        assert " at step 2: " in done.stdout.splitlines()[0]
        assert (out / "rank0/similarities.csv").read_bytes() == theirs
    pictures = [sorted(one.name for one in (tmp_path / side / "rank0/similarities_picture")
                       .iterdir()) for side in ("theirs", "ours0")]
    assert pictures[0] == pictures[1]
