"""data_mode: which directions and which halves of a call are recorded."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from recording import config, run

CODE = """
import sys
import torch
from plumbline.pytorch import PrecisionDebugger
root = torch.nn.Sequential(torch.nn.Linear(3, 2))
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(model=root)
root(torch.ones(1, 3, requires_grad=True)).sum().backward()
debugger.stop(); debugger.step()
"""
NAMES = ("forward", "backward", "input", "output")
SUBSETS = [
    subset for length in range(5) for subset in itertools.combinations(NAMES, length)
]


@pytest.mark.parametrize("subset", SUBSETS, ids=lambda subset: "-".join(subset) or "none")
def test_every_subset(tmp_path: Path, subset: tuple[str, ...]) -> None:
    options = {"level": "mix", "data_mode": list(subset), "summary_mode": "md5"}
    run(CODE, config(tmp_path, **options))
    text = (tmp_path / "out" / "step0" / "rank" / "dump.json").read_text()
    data = json.loads(text)["data"]
    chosen = set(subset)
    directions = chosen & {"forward", "backward"} or {"forward", "backward"}
    halves = chosen & {"input", "output"} or {"input", "output"}
    entries = {
        name: entry for name, entry in data.items()
        if "inear" in name and "parameters_grad" not in name
    }
    expected = {
        "forward": ["Functional.linear.0.forward", "Module.0.Linear.forward.0"],
        "backward": ["Functional.linear.0.backward", "Module.0.Linear.backward.0"],
    }
    for direction in ("forward", "backward"):
        names = {name for name in entries if f".{direction}" in name}
        assert names == (set(expected[direction]) if direction in directions else set())
    for name, entry in entries.items():
        if ".backward" in name:
            assert set(entry) == halves, name
        else:
            assert ("input_args" in entry) == ("input_kwargs" in entry) == ("input" in halves), name
            assert ("output" in entry) == ("output" in halves), name
            assert ("parameters" in entry) == name.startswith("Module."), name
