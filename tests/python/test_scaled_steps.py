"""A gradient that nothing recorded scales before a step, beside noise that hides the difference."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from recording import PLUMB, config, run

# One step of a recording for each variant. The noise sums an unrecorded product in another order.
TRAIN = """
import json, sys, torch
from torch import nn
from plumbline.pytorch import PrecisionDebugger

def train(debugger, optimizer="sgd", noise=True, factor=1, clip=0):
    torch.manual_seed(0)
    x, w = torch.randn(32, 64), torch.randn(16, 64)
    y = torch.randint(0, 8, (32,))
    if noise:
        order = torch.randperm(64)
        x, w = x[:, order].contiguous(), w[:, order].contiguous()
    x = x @ w.T
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))
    made = {"sgd": lambda: torch.optim.SGD(net.parameters(), lr=0.01, foreach=True),
            "momentum": lambda: torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9,
                                                foreach=True),
            "decay": lambda: torch.optim.SGD(net.parameters(), lr=0.01, weight_decay=0.01,
                                             foreach=True),
            "adamw": lambda: torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=True)}
    optimizer = made[optimizer]()
    for _ in range(3):
        optimizer.zero_grad()
        debugger.start(net)
        nn.functional.cross_entropy(net(x), y).backward()
        debugger.stop()
        net[2].weight.grad.mul_(factor)
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
    debugger.step()

debugger = PrecisionDebugger(config_path=sys.argv[1])
for variant in json.loads(sys.argv[2]):
    train(debugger, **variant)
"""
OPTIMIZERS = ("sgd", "decay", "momentum", "adamw")
GOLDEN = [{"optimizer": each, "noise": False} for each in OPTIMIZERS]
FAULTS = [{"optimizer": each, "factor": factor} for each in OPTIMIZERS[:3]
          for factor in (1.01, 0.999)]
NOISE = [{"optimizer": each, **more} for each in OPTIMIZERS for more in ({}, {"clip": 0.1})]
LIMITED = [{"optimizer": each, "noise": False, "clip": 0.1} for each in OPTIMIZERS]
# A step of Adam does not depend on the size of the gradient.
HARMLESS = [{"optimizer": "adamw", "factor": 1.01}]
VARIANTS = [*GOLDEN, *LIMITED, *FAULTS, *NOISE, *HARMLESS]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("steps")
    run(TRAIN, config(directory, task="tensor"), json.dumps(VARIANTS))
    return directory


def answer(recorded: Path, variant: dict[str, object]) -> dict[str, str]:
    """The first wrong call, or nothing."""
    steps = recorded / "out"
    golden = {key: value for key, value in variant.items() if key in ("optimizer", "clip")}
    place = VARIANTS.index({"noise": False, **golden})
    words = [PLUMB, "compare", steps / f"step{VARIANTS.index(variant)}", steps / f"step{place}",
             "-o", recorded / "result", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["first_wrong_call"] or {}


@pytest.mark.parametrize("variant", FAULTS, ids=str)
def test_a_scaled_step_is_named(recorded: Path, variant: dict[str, object]) -> None:
    named = answer(recorded, variant)
    assert named.get("name") == "Functional.layer_norm.1.forward", named
    assert named["cause"] == "scale" and "the step of this parameter" in named["cause_text"]


@pytest.mark.parametrize("variant", [*NOISE, *HARMLESS], ids=str)
def test_noise_is_none(recorded: Path, variant: dict[str, object]) -> None:
    assert not answer(recorded, variant)
