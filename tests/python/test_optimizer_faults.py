"""Faults of an optimizer beside a gradient that is rounding alone: a bias before a batch norm."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from recording import PLUMB, config, run

# One step of a recording for each variant: noise (the columns of an unrecorded product are summed
# in another order), a change of what one use of a kernel makes, below the calls that are recorded,
# and a parameter that loses its gradient in one step.
TRAIN = """
import json, sys, torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from plumbline.pytorch import PrecisionDebugger

class Changed(TorchDispatchMode):
    def __init__(self, kernel):
        super().__init__()
        self.wanted, self.number, self.change = kernel or ("", 0, "")
        self.uses = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            result = func(*args, **(kwargs or {}))
            if func.overloadpacket.__name__ == self.wanted:
                if self.uses == self.number and self.change == "sign":
                    result.view(-1)[-1:].neg_()
                elif self.uses == self.number:
                    result.mul_(self.change)
                self.uses += 1
            return result

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.norm, self.leave = nn.Linear(12, 24), nn.BatchNorm1d(24), nn.Linear(24, 6)

    def forward(self, x):
        return self.leave(torch.tanh(self.norm(self.enter(x))))

def train(debugger, noise=False, kernel=None, skipped=None):
    torch.manual_seed(0)
    x, w, y = torch.randn(16, 64), torch.randn(12, 64), torch.randint(0, 6, (16,))
    if noise:
        order = torch.randperm(64)
        x, w = x[:, order].contiguous(), w[:, order].contiguous()
    x = x @ w.T
    torch.manual_seed(1)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=False)
    debugger.start(net)
    with Changed(kernel):
        for step in range(2):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            if skipped and step == skipped[0]:
                net.get_parameter(skipped[1]).grad = None
            optimizer.step()
    debugger.stop()
    debugger.step()

debugger = PrecisionDebugger(config_path=sys.argv[1])
for variant in json.loads(sys.argv[2]):
    train(debugger, **variant)
"""
NORM, LEAVE = "norm.bias", "leave.weight"
SKIPPED = [{"skipped": [step, name], "noise": noise}
           for noise in (False, True) for step, name in ((0, LEAVE), (1, LEAVE), (1, NORM))]
# The bias that gets rounding alone is the second parameter; six have one step each.
LONG = [{"kernel": ["addcdiv_", 1, change], "noise": noise}
        for noise in (False, True) for change in (1.05, "sign")]
FOLLOWING = [{"kernel": [kernel, 1, 1.01], "noise": True}
             for kernel in ("lerp_", "addcmul_", "sqrt")]
SHORT = [{"kernel": ["addcdiv_", 1, 1.001], "noise": True},
         {"kernel": ["addcdiv_", 7, 1.001], "noise": True},
         {"kernel": ["addcdiv_", 0, 1.00002], "noise": True}]
VARIANTS = [{}, {"noise": True}, *SKIPPED, *LONG, *FOLLOWING, *SHORT]


@pytest.fixture(scope="module", params=["tensor", "statistics"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp(request.param)
    run(TRAIN, config(directory, task=request.param), json.dumps(VARIANTS))
    return directory


def answer(recorded: Path, variant: dict[str, object]) -> tuple[str, str]:
    """The name of the first wrong call, and what is said of it; or nothing, and the first line."""
    steps = recorded / "out"
    words = [PLUMB, "compare", steps / f"step{VARIANTS.index(variant)}", steps / "step0",
             "-o", recorded / "result"]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["first_wrong_call"]
    if found:
        return found["name"], found["what"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return "", done.stdout.splitlines()[0]


def is_of_tensors(recorded: Path) -> bool:
    return recorded.name.startswith("tensor")


@pytest.mark.parametrize("variant", [*LONG, *FOLLOWING, *SHORT], ids=str)
def test_what_a_call_does_not_make_of_its_inputs_is_named(recorded: Path,
                                                          variant: dict[str, list[str]]) -> None:
    name, what = answer(recorded, variant)
    kernel, number, _ = variant["kernel"]
    # A step that is off by less than it is long does not show in four statistics.
    if variant in SHORT and not is_of_tensors(recorded):
        assert name in ("", f"Tensor.{kernel}.{number}.forward"), what
    else:
        assert name == f"Tensor.{kernel}.{number}.forward", what


@pytest.mark.parametrize("variant", SKIPPED, ids=str)
def test_a_parameter_that_is_not_updated_in_one_step_is_named(recorded: Path,
                                                              variant: dict[str, object]) -> None:
    name, what = answer(recorded, variant)
    # The first step of Adam is the same in the next one: then what reads the parameter is named.
    expected = ("golden alone updates this", "golden's of Tensor.addcdiv_.4.forward")
    assert any(each in what for each in expected), (name, what)
