"""data_mode: which directions and which halves of a call are recorded."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB, config, run

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


DEEPER = """
import sys
import torch
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(0)
root = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
if len(sys.argv) > 2:
    root[2].register_forward_pre_hook(lambda module, given: (given[0] * 1.5,))
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(model=root)
root(torch.ones(1, 3, requires_grad=True)).sum().backward()
debugger.stop(); debugger.step()
"""


def compared(target: Path, golden: Path) -> tuple[dict[str, Any], int]:
    words = [PLUMB, "compare", target, golden, "-o", target / "result"]
    words += ["--fail-on", "any", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    result: dict[str, Any] = json.loads(done.stdout)
    return result, done.returncode


@pytest.mark.parametrize("task", ["tensor", "statistics"])
@pytest.mark.parametrize("level", ["L1", "mix"])
def test_what_one_side_left_out_is_no_wrong_call(tmp_path: Path, level: str, task: str) -> None:
    sides = {}
    for name, mode in (("all", "all"), ("output", "output"), ("wrong", "output")):
        (tmp_path / name).mkdir()
        options = {"task": task, "level": level, "data_mode": [mode]}
        run(DEEPER, config(tmp_path / name, **options), *(["x"] if name == "wrong" else []))
        sides[name] = tmp_path / name / "out" / "step0" / "rank"
    for target, golden in (("all", "output"), ("output", "all")):
        result, status = compared(sides[target], sides[golden])
        assert result["first_wrong_call"] is None, result
        assert status == 1 and not result["complete"]
        assert any("data_mode" in warning for warning in result["warnings"])
        assert result["counts"]["missing values"] > 0 and result["counts"]["paired calls"] > 2
    # What both recorded is compared.
    wrong, _ = compared(sides["wrong"], sides["all"])
    assert "inear" in wrong["first_wrong_call"]["name"]
