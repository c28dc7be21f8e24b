"""Steps of optimizers: the same records whether a loop, foreach or fused kernels make them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB, config, dump, run

# One step of the recording for each variant: form of the optimizer and what is wrong. A fault is
# below every call that is recorded.
TRAIN = """
import json, sys, torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from plumbline.pytorch import PrecisionDebugger

class Changed(TorchDispatchMode):
    "Changes what the second use of a kernel of lists leaves in one of its arguments."
    def __init__(self, kernel, argument, parameter):
        super().__init__()
        self.kernel, self.argument, self.parameter, self.uses = kernel, argument, parameter, 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            result = func(*args, **(kwargs or {}))
            if func.overloadpacket.__name__ == self.kernel:
                self.uses += 1
                if self.uses == 2:
                    torch._foreach_mul_([args[self.argument][self.parameter]], 1.05)
            return result

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.norm, self.leave = nn.Linear(12, 24), nn.LayerNorm(24), nn.Linear(24, 6)
    def forward(self, x):
        return self.leave(torch.tanh(self.norm(self.enter(x))))

FORMS = {"loop": {"foreach": False, "fused": False}, "foreach": {"foreach": True},
         "fused": {"fused": True}}

def train(form, kind="AdamW", fault=None, lr=1e-3, frozen=None, first=0):
    torch.manual_seed(0)
    net = Net()
    optimizer = getattr(torch.optim, kind)(net.parameters(), lr=lr, **FORMS[form])
    x, y = torch.randn(16, 12), torch.randint(0, 6, (16,))
    with Changed(*(fault or ("", 0, 0))):
        for step in range(2):
            if step == first:
                debugger.start(net)
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            if frozen and step == 1:
                net.get_parameter(frozen).grad = None
            optimizer.step()
    debugger.stop()
    debugger.step()

debugger = PrecisionDebugger(config_path=sys.argv[1])
for variant in json.loads(sys.argv[2]):
    train(**variant)
"""
FORMS = ("loop", "foreach", "fused")
# Kernel, which of its lists, which parameter of the list: leave.weight is the fifth.
FAULTS = [{"form": "fused", "fault": ["_fused_adamw_", 3, 4]},
          {"form": "fused", "fault": ["_fused_adamw_", 0, 4]},
          {"form": "foreach", "fault": ["_foreach_lerp_", 0, 4]}]
SETTING = {"form": "fused", "lr": 1.1e-3}
FROZEN = {"form": "fused", "frozen": "leave.weight"}
# The second step alone.
SECOND = [{"form": "foreach", "first": 1},
          {"form": "foreach", "first": 1, "frozen": "leave.weight"}]
VARIANTS = [*({"form": form} for form in FORMS), *({"form": form, "kind": "SGD"} for form in FORMS),
            *FAULTS, SETTING, FROZEN, *SECOND]


@pytest.fixture(scope="module", params=["tensor", "statistics"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp(request.param)
    path = config(directory, task=request.param, level="mix")
    run(TRAIN, path, json.dumps(VARIANTS))
    assert not list(directory.rglob("dump_error_info.log"))
    return directory


def compared(recorded: Path, variant: dict[str, Any], golden: dict[str, Any]) -> dict[str, Any]:
    steps = [recorded / f"out/step{VARIANTS.index(one)}" for one in (variant, golden)]
    done = subprocess.run([PLUMB, "compare", *steps, "-o", recorded / "result", "--json"],
                          capture_output=True, text=True, check=False)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("kind", ["AdamW", "SGD"])
def test_forms_make_the_same_entries_and_no_alarm(recorded: Path, kind: str) -> None:
    of_kind = VARIANTS[:3] if kind == "AdamW" else VARIANTS[3:6]
    steps = [dump(recorded, VARIANTS.index(one)) for one in of_kind]
    names = [[name for name in step if name.startswith("Optimizer.")] for step in steps]
    assert names[0] == names[1] == names[2]
    assert len(names[0]) == 12 and names[0][-1] == "Optimizer.leave.bias.1.forward"
    for golden in of_kind:
        for target in of_kind:
            answer = compared(recorded, target, golden)
            assert answer["first_wrong_call"] is None and answer["complete"], (target, golden)


def test_an_entry_has_parameter_gradient_state_and_settings(recorded: Path) -> None:
    data = dump(recorded, 2)
    first, second = (data[f"Optimizer.leave.weight.{n}.forward"] for n in (0, 1))
    assert [one["shape"] for one in second["input_args"]] == [[6, 24], [6, 24]]
    assert first["input_kwargs"]["state"] == {}
    state = second["input_kwargs"]["state"]
    assert list(state) == ["step", "exp_avg", "exp_avg_sq"]
    assert [state["step"]["Max"], second["output"][1]["step"]["Max"]] == [1, 2]
    for name in state:
        assert state[name]["Norm"] == first["output"][1][name]["Norm"]
    assert second["input_args"][0]["Norm"] == first["output"][0]["Norm"]
    # Adam by its formula, in the extremes of what it leaves.
    gradient, left = second["input_args"][1], second["output"][1]
    assert left["exp_avg_sq"]["Norm"] > state["exp_avg_sq"]["Norm"] and gradient["Norm"] > 0
    settings = second["input_kwargs"]
    assert settings["lr"]["value"] == 1e-3 and settings["optimizer"]["value"] == "AdamW"
    assert not {"foreach", "fused", "params"} & set(settings)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_inside_a_kernel_of_lists_is_named(recorded: Path, fault: dict[str, Any]) -> None:
    for golden in VARIANTS[:3]:
        found = compared(recorded, fault, golden)["first_wrong_call"]
        assert found["name"] == "Optimizer.leave.weight.1.forward", (golden, found)


def test_another_setting_and_a_missing_update_are_named(recorded: Path) -> None:
    found = compared(recorded, SETTING, VARIANTS[2])["first_wrong_call"]
    assert found["name"] == "Optimizer.enter.weight.0.forward"
    found = compared(recorded, FROZEN, VARIANTS[2])["first_wrong_call"]
    assert found["name"] == "Optimizer.leave.weight.1.forward"
    for sides in (SECOND, SECOND[::-1]):
        found = compared(recorded, *sides)["first_wrong_call"]
        assert found["name"] == "Optimizer.leave.weight.0.forward"


# No entry where only the calls that meet the search are recorded, or no level mix.
@pytest.mark.parametrize(("task", "level"), [("statistics", "L1"), ("overflow_check", "mix")])
def test_only_at_mix_and_where_every_call_is_recorded(tmp_path: Path, task: str,
                                                      level: str) -> None:
    run(TRAIN, config(tmp_path, task=task, level=level), json.dumps(VARIANTS[2:3]))
    assert not [name for name in dump(tmp_path) if name.startswith("Optimizer.")]


GRADIENTS = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path=sys.argv[1])
model = torch.nn.Linear(2, 2)
main = [torch.zeros_like(p) for p in model.parameters()]
class Sum(torch.optim.SGD):
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.main_grad, alpha=-group["lr"])
class Raises(torch.optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("on purpose")
other = torch.nn.Parameter(torch.ones(3))
other.grad = torch.ones(3)
debugger.start(model)
for p, grad in zip(model.parameters(), main):
    p.main_grad = grad
    def accumulate(p):
        p.main_grad.add_(p.grad)
        p.grad = None
    p.register_post_accumulate_grad_hook(accumulate)
for _ in range(2):  # micro-batches
    model(torch.ones(3, 2)).sum().backward()
try:
    Raises([other], lr=1.0).step()
    raise SystemExit("did not raise")
except RuntimeError:
    pass
Sum(model.parameters(), lr=0.5).step()
torch.optim.SGD([other], lr=0.5, fused=True).step()
debugger.stop(); debugger.step()
"""


def test_main_grad_accumulation_and_parameters_without_a_name(tmp_path: Path) -> None:
    run(GRADIENTS, config(tmp_path, level="mix"))
    data = dump(tmp_path)
    weight = data["Optimizer.weight.0.forward"]
    assert weight["input_args"][1]["Max"] == 6, "two micro-batches of three rows of ones"
    moved = weight["input_args"][0]["Mean"] - weight["output"][0]["Mean"]
    assert moved == pytest.approx(3)
    assert "Optimizer.0.0.0.forward" not in data, "its step raised"
    assert data["Optimizer.0.0.1.forward"]["output"][0]["Max"] == 0.5
