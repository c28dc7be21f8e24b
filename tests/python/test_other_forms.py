"""Pairs that differ in the form of the same mathematics: another optimizer, attention or type.

What leaves such a region is judged where both sides have it. A wrong value inside or behind it is
named, or said to be not judged.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB, config, run

# One step of the recording for each variant.
RECORD = """
import json, math, sys, torch
from torch import nn
from plumbline.pytorch import PrecisionDebugger

class Net(nn.Module):
    def __init__(self, attention="none", factor=1.0):
        super().__init__()
        self.enter, self.norm, self.leave = nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 8)
        self.qkv = nn.Linear(32, 96)
        self.attention, self.factor = attention, factor

    def attend(self, x):
        q, k, v = (each.view(4, 6, 4, 8).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        scale = self.factor / math.sqrt(8)
        if self.attention == "sdpa":
            x = nn.functional.scaled_dot_product_attention(q, k, v, scale=scale)
        else:
            x = torch.matmul(torch.softmax(torch.matmul(q, k.transpose(2, 3)) * scale, -1), v)
        return x.transpose(1, 2).reshape(4, 6, 32)

    def forward(self, x):
        x = torch.relu(self.norm(self.enter(x)))
        return self.leave(x if self.attention == "none" else x + self.attend(x))

class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.one, self.two, self.leave = nn.BatchNorm2d(8), nn.BatchNorm2d(16), nn.Linear(16, 8)

    def forward(self, x):
        x = torch.relu(self.two(self.second(torch.relu(self.one(self.first(x))))))
        return self.leave(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))

class Router(nn.Module):
    def __init__(self, normed=True):
        super().__init__()
        self.gate, self.normed = nn.Linear(16, 8), normed

    def forward(self, x):
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2)
        if self.normed:
            weights.div_(weights.sum(-1, keepdim=True))
        return torch.zeros(4, 6, 8).scatter(-1, chosen, weights) * 1.5

def record(debugger, model="Net", optimizer=None, autocast=False, steps=1, epsilon=None,
           compiled=False, evaluated=True, **build):
    torch.manual_seed(0)
    x = torch.randn(4, 3, 12, 12) if model == "Images" else torch.randn(4, 6, 16)
    torch.manual_seed(1)
    net = globals()[model](**build)
    if epsilon:
        net.norm.eps = epsilon
    called = torch.compile(net, backend="aot_eager") if compiled else net
    make = None
    if optimizer:
        options = {"lr": 1e-3, **optimizer}
        make = getattr(torch.optim, options.pop("name", "AdamW"))(net.parameters(), **options)
    debugger.start(net)
    for _ in range(steps):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            y = called(x).float()
            is_one = y.dim() == 2
            loss = nn.functional.cross_entropy(y, torch.arange(4)) if is_one else y.pow(2).mean()
        if make:
            make.zero_grad()
        loss.backward()
        if make:
            make.step()
    if make and evaluated:
        with torch.no_grad():
            net(x)
    debugger.stop()
    debugger.step()

debugger = PrecisionDebugger(config_path=sys.argv[1])
for variant in json.loads(sys.argv[2]):
    record(debugger, **variant)
"""


def updated(**options: Any) -> dict[str, Any]:
    return {"steps": 3, "optimizer": options}


ADAM, SLOW = {"foreach": False}, {"foreach": False, "lr": 1e-4}
MOMENTUM = {"name": "SGD", "momentum": 0.9, "weight_decay": 0.01, "foreach": False}
EAGER, SDPA = {"attention": "eager"}, {"attention": "sdpa"}
IMAGES = {"model": "Images"}
SAME = [  # target, golden
    (updated(foreach=True), updated(**ADAM)),
    (updated(**ADAM), updated(foreach=True)),
    (updated(**MOMENTUM | {"foreach": True}), updated(**MOMENTUM)),
    (SDPA, EAGER),
    (EAGER, SDPA),
]
WRONG = [
    (updated(foreach=True, lr=1.01e-3), updated(**ADAM)),
    (updated(foreach=True, betas=(0.89, 0.999)), updated(**ADAM)),
    (updated(foreach=True, betas=(0.9, 0.998)), updated(**ADAM)),
    (updated(**MOMENTUM | {"foreach": True, "momentum": 0.89}), updated(**MOMENTUM)),
    (updated(**MOMENTUM | {"foreach": True, "weight_decay": 0.02}), updated(**MOMENTUM)),
    (updated(**SLOW | {"foreach": True, "weight_decay": 0}), updated(**SLOW)),
    (updated(**SLOW), updated(**SLOW | {"foreach": True, "weight_decay": 0})),
    ({"attention": "sdpa", "factor": 1.01}, EAGER),
    (EAGER, {"attention": "sdpa", "factor": 1.01}),
    (SDPA | {"epsilon": 1e-2}, EAGER),
]
ROUTERS = [{"model": "Router", "normed": normed} for normed in (False, True)]
VARIANTS = [*(each for pair in SAME + WRONG for each in pair), *ROUTERS]


def recorded_steps(directory: Path, variants: list[dict[str, Any]], **options: Any) -> Path:
    run(RECORD, config(directory, **options), json.dumps(variants))
    return directory


@pytest.fixture(scope="module", params=["statistics", "tensor"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded_steps(tmp_path_factory.mktemp("forms"), VARIANTS, task=request.param,
                          level="mix")


def answer(recorded: Path, target: int, golden: int, *words: str) -> tuple[list[str], int]:
    """The lines of the answer and the exit status."""
    steps = recorded / "out"
    done = subprocess.run([PLUMB, "compare", steps / f"step{target}", steps / f"step{golden}", "-o",
                           recorded / "result", "--format", "csv", *words],
                          capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines(), done.returncode


def pair(recorded: Path, which: tuple[dict[str, Any], dict[str, Any]],
         *words: str) -> tuple[list[str], int]:
    target, golden = which
    return answer(recorded, VARIANTS.index(target), VARIANTS.index(golden), *words)


@pytest.mark.parametrize("which", SAME, ids=range(len(SAME)))
def test_another_way_to_the_same_results_is_judged_where_the_sides_meet(
    recorded: Path, which: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    lines, status = pair(recorded, which, "--fail-on", "wrong,unjudged")
    assert lines[0].startswith("same results by another way: "), lines
    assert lines[0].endswith("; no wrong call")
    assert ("calls of the optimizer" in lines[0]) == ("optimizer" in which[0]), lines
    assert status == 0
    lines, status = pair(recorded, which, "--fail-on", "any", "--json")
    assert status == 1
    result = json.loads("\n".join(lines))
    assert result["complete"] and result["other_way"] and not result["narrowed"]


@pytest.mark.parametrize("which", WRONG, ids=range(len(WRONG)))
def test_a_wrong_value_in_another_form_is_named_or_not_judged(
    recorded: Path, which: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    lines, status = pair(recorded, which, "--fail-on", "wrong,unjudged")
    assert lines[0].startswith(("first wrong call: ", "not judged completely: ")), lines
    assert status == 1
    is_named = lines[0].startswith("first wrong call")
    assert (pair(recorded, which, "--fail-on", "wrong")[1] == 1) == is_named


def test_what_the_last_step_leaves_is_not_judged(tmp_path: Path) -> None:
    code = RECORD.replace("            net(x)\n    debugger.stop()",
                          "            pass\n    debugger.stop()")
    variants = [{"optimizer": options} for options in (ADAM, {"foreach": True})]
    run(code, config(tmp_path), json.dumps(variants))
    lines, status = answer(tmp_path, 1, 0, "--fail-on", "unjudged")
    assert lines[0].startswith("not judged completely: "), lines
    assert any("what the optimizer leaves is read by no recorded call" in line for line in lines)
    assert status == 1


def test_a_missing_call_is_the_headline(recorded: Path) -> None:
    missing, more = (VARIANTS.index(each) for each in ROUTERS)
    lines, _ = answer(recorded, missing, more)
    assert lines[0].startswith("first wrong call: "), lines
    assert lines[1] == "  missing call: Tensor.div_.0.forward after Torch.topk.0.forward", lines
    assert not any("cause: stale" in line or "cause: scale" in line for line in lines)
    lines, _ = answer(recorded, more, missing)
    assert lines[1] == "  additional call: Tensor.div_.0.forward after Torch.topk.0.forward", lines


def test_no_line_is_said_twice(recorded: Path) -> None:
    for which in WRONG:
        lines, _ = pair(recorded, which)
        facts = [line for line in lines if line.startswith("  ")]
        assert len(facts) == len(set(facts)), facts
        assert not any(";" in fact for fact in facts if not fact.startswith("  certainty")), facts


@pytest.mark.parametrize(("level", "task"), [("L0", "statistics"), ("L1", "statistics"),
                                             ("mix", "statistics"), ("L0", "tensor"),
                                             ("L1", "tensor"), ("mix", "tensor")])
def test_autocast_has_one_answer_at_every_level(level: str, task: str, tmp_path: Path) -> None:
    trained = IMAGES | updated(**MOMENTUM) | {"steps": 2}
    variants = [IMAGES, IMAGES | {"autocast": True}, {}, {"autocast": True, "epsilon": 1e-1},
                trained, trained | {"autocast": True}]
    recorded_steps(tmp_path, variants, level=level, task=task)
    first = "Module.first.Conv2d.forward.0" if level == "L0" else "Functional.conv2d.0.forward"
    for target, golden in ((1, 0), (5, 4)):
        lines, status = answer(tmp_path, target, golden, "--fail-on", "any")
        assert lines[0].startswith(f"narrowed: bfloat16 from {first} on ("), lines
        assert lines[0].endswith(" calls); no wrong call"), lines
        assert "--noise RUN" in lines[1]
        assert status == 0
    # A fault beside it is named still.
    lines, _ = answer(tmp_path, 3, 2)
    assert lines[0].startswith("first wrong call: "), lines
    assert any(line.startswith("  narrowed: bfloat16 from ") for line in lines), lines


def test_a_compiled_region_is_another_way(tmp_path: Path) -> None:
    """What the recorder cannot see inside is no loss where what leaves it agrees."""
    trained = updated(**MOMENTUM) | {"evaluated": False}  # each result is read again
    compiled = trained | {"compiled": True}
    variants = [trained, compiled, compiled | {"epsilon": 1e-1}]
    recorded_steps(tmp_path, variants, level="mix", task="statistics")
    lines, status = answer(tmp_path, 1, 0, "--fail-on", "unjudged")
    assert lines[0].startswith("same results by another way: "), lines
    assert lines[0].endswith("; no wrong call") and status == 0
    lines, _ = answer(tmp_path, 2, 0)
    assert "no wrong call" not in lines[0], lines
