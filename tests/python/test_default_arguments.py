"""An argument that one side passes by keyword and the other leaves to its default."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB, config, run

# One step of a recording for each set of arguments.
TRAIN = """
import json, sys, torch
from torch import nn
from torch.nn import functional
from plumbline.pytorch import PrecisionDebugger

def train(debugger, norm={}, gelu={}):
    torch.manual_seed(0)
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    first, last = nn.Linear(16, 32), nn.Linear(32, 4)
    debugger.start(nn.ModuleList([first, last]))
    hidden = functional.layer_norm(functional.gelu(first(x), **gelu), (32,), **norm)
    functional.cross_entropy(last(hidden), y).backward()
    debugger.stop()
    debugger.step()

debugger = PrecisionDebugger(config_path=sys.argv[1])
for arguments in json.loads(sys.argv[2]):
    train(debugger, **arguments)
"""
PLAIN: dict[str, Any] = {}
SPELLED = [{"norm": {"eps": 1e-5}}, {"gelu": {"approximate": "none"}},
           {"norm": {"weight": None, "eps": 1e-5}}]
OTHER = [({"norm": {"eps": 1e-6}}, "layer_norm", "eps=1e-06"),
         ({"norm": {"eps": 1e-4}}, "layer_norm", "eps=0.0001"),
         ({"gelu": {"approximate": "tanh"}}, "gelu", "approximate=tanh")]
STEPS = [PLAIN, *SPELLED, *(each[0] for each in OTHER)]


@pytest.fixture(scope="module", params=["tensor", "statistics"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("defaults")
    run(TRAIN, config(directory, task=request.param), json.dumps(STEPS))
    return directory


def answer(recorded: Path, target: dict[str, Any], golden: dict[str, Any]) -> dict[str, Any]:
    steps = [recorded / "out" / f"step{STEPS.index(each)}" / "rank" for each in (target, golden)]
    words = [PLUMB, "compare", *steps, "-o", recorded / "result", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("arguments", SPELLED, ids=str)
def test_a_default_spelled_out_is_no_alarm(recorded: Path, arguments: dict[str, Any]) -> None:
    for target, golden in ((arguments, PLAIN), (PLAIN, arguments)):
        found = answer(recorded, target, golden)
        assert found["first_wrong_call"] is None
        assert found["complete"]


@pytest.mark.parametrize(("arguments", "api", "given"), OTHER, ids=str)
def test_another_value_is_named(recorded: Path, arguments: dict[str, Any], api: str,
                                given: str) -> None:
    for target, golden, side in ((arguments, PLAIN, "the target"), (PLAIN, arguments, "golden")):
        found = answer(recorded, target, golden)["first_wrong_call"]
        assert found["name"] == f"Functional.{api}.0.forward"
        assert found["cause"] == "argument"
        assert f"only {side} passes {given}" in found["cause_text"]
