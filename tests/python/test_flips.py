"""Choices that noise alone flips are noise, and what follows from them is told as such."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from compare_cases import Dump
from recording import PLUMB, config, run
from test_number_extremes import compare
from warm_python import server

ROWS, EXPERTS = 64, 8
NOISE = 2.0**-23


def scores(is_target: bool) -> torch.Tensor:
    """Shares of experts; those of row 5 are so near to each other that rounding decides."""
    torch.manual_seed(0)
    values = torch.rand(ROWS, EXPERTS) + torch.arange(EXPERTS) / EXPERTS
    values[5] = torch.tensor([0.0, 0.125, 0.25, 1.0, 1.5, 1.75, 1.75 * (1 + NOISE), 0.5])
    if is_target:
        values[5, 5] *= 1 + 2 * NOISE
    return values


def route(dump: Dump, is_target: bool, choose: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Multiplies, chooses an expert in each row, takes its weights and multiplies with them."""
    shares = scores(is_target)
    dump.forward("Torch.mul.0.forward", [scores(False), 1.0], [shares])
    chosen = choose(shares)
    weights = torch.arange(1.0, EXPERTS * 4 + 1).reshape(EXPERTS, 4).cos()
    taken = weights[chosen]
    if chosen.dim() > 1:
        dump.forward("Torch.topk.0.forward", [shares, 1], [shares.gather(1, chosen), chosen])
    else:
        dump.forward("Torch.argmax.0.forward", [shares, -1], [chosen])
    dump.forward("Tensor.__getitem__.0.forward", [weights, chosen], [taken])
    dump.forward("Torch.tanh.0.forward", [taken], [taken.tanh()])


CHOICES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "topk": lambda shares: shares.topk(1)[1], "argmax": lambda shares: shares.argmax(-1)}


@pytest.mark.parametrize("api", CHOICES)
def test_one_flip_of_a_choice(api: str, tmp_path: Path) -> None:
    sides = Dump(task="tensor"), Dump(task="tensor")
    for side, is_target in zip(sides, (True, False), strict=True):
        route(side, is_target, CHOICES[api])
    text, rows, status = compare(*sides, tmp_path)
    call = f"Torch.{api}.0.forward"
    assert f"routing flip: 1 of {ROWS} rows in {call}" in text.splitlines()[0], text
    assert "first wrong call" not in text
    assert status == 1  # what follows is not judged
    flips = [row for row in rows if row["call"] == call and row["reason"] == "flip"]
    assert [row["verdict"] for row in flips] == ["within noise"]
    behind = [row for row in rows if row["call"] == "Torch.tanh.0.forward"]
    assert {(row["verdict"], row["reason"]) for row in behind} == {
        ("not comparable", "follows-flip")}


@pytest.mark.parametrize("api", CHOICES)
def test_a_wrong_choice_is_named(api: str, tmp_path: Path) -> None:
    sides = Dump(task="tensor"), Dump(task="tensor")
    for side, is_target in zip(sides, (True, False), strict=True):
        def choose(shares: torch.Tensor, is_target: bool = is_target) -> torch.Tensor:
            chosen = CHOICES[api](shares)
            if is_target:
                chosen.view(-1)[9] = (chosen.view(-1)[9] + 1) % EXPERTS
            return chosen
        route(side, is_target, choose)
    text, _, status = compare(*sides, tmp_path)
    assert f"first wrong call: Torch.{api}.0.forward" in text
    assert status == 1


STEPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "round": torch.round, "floor": torch.floor, "__gt__": lambda x: x > 0.5}


@pytest.mark.parametrize("api", STEPS)
def test_one_flip_of_a_step(api: str, tmp_path: Path) -> None:
    sides = Dump(task="tensor"), Dump(task="tensor")
    for side, is_target in zip(sides, (True, False), strict=True):
        golden = torch.linspace(0.1, 7.3, 128)
        golden[3], golden[4] = 0.5, 1 - NOISE / 2
        values = golden * (1 + NOISE) if is_target else golden
        side.forward("Torch.mul.0.forward", [golden, 1.0], [values])
        more = [0.5] if api == "__gt__" else []
        side.forward(f"Tensor.{api}.0.forward", [values, *more], [STEPS[api](values)])
    text, rows, status = compare(*sides, tmp_path)
    assert text.startswith("no wrong call"), text
    assert "flip: " in text
    assert "of 128 elements" in text
    assert status == 0
    assert rows[-1]["reason"] == "flip"


def test_a_wrong_step_is_named(tmp_path: Path) -> None:
    sides = Dump(task="tensor"), Dump(task="tensor")
    for side, is_target in zip(sides, (True, False), strict=True):
        values = torch.linspace(0.1, 7.3, 128)
        made = values.round()
        if is_target:
            made[7] += 1
        side.forward("Torch.round.0.forward", [values], [made])
    text, _, status = compare(*sides, tmp_path)
    assert "first wrong call: Torch.round.0.forward" in text
    assert status == 1


# What is left of a product when its rounded value is taken away is as small as the step.
COMMITTED = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
torch.set_num_threads(1)
torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(64, 64) / 8)
x, step = torch.randn(128, 64), 1e-5
if sys.argv[2] == "target":
    x = torch.nextafter(x, x + torch.randint(0, 2, x.shape) * 2.0 - 1)
debugger = PrecisionDebugger(sys.argv[1])
debugger.start()
made = torch.nn.functional.linear(x, weight)
rounded = torch.round(made / step)
(made - (rounded * step).detach()).pow(2).mean().backward()
debugger.stop()
debugger.step()
"""


def test_a_gradient_whose_flips_hide_in_the_noise(tmp_path: Path) -> None:
    """What forward makes of them is within the noise, so that nothing before it follows a flip."""
    sides = []
    for side in ("target", "golden"):
        (tmp_path / side).mkdir()
        run(COMMITTED, config(tmp_path / side, task="tensor"), side)
        sides.append(tmp_path / side / "out" / "step0" / "rank")
    command = [PLUMB, "compare", *sides, "-o", tmp_path / "out"]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert text.startswith("not judged completely: flip: "), text


# One step of a mixture of experts on each side, whose embeddings differ by one unit in the last
# place. The router of the first layer is moved until that chooses another expert for one token.
# `fault`: the target's router adds a bias that golden has not.
MIXTRAL = """
import json, os, sys, types, torch
import torch.nn.functional as F
from transformers import MixtralConfig, MixtralForCausalLM
from plumbline.pytorch import PrecisionDebugger

out, experts, fault = sys.argv[1:4]
torch.set_num_threads(1)
torch.manual_seed(3)
tokens = torch.randint(0, 64, (2, 16))

def make(is_target):
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
        experts_implementation=experts))
    if is_target:
        weight = model.model.embed_tokens.weight.data
        weight.copy_(torch.nextafter(weight, weight + torch.randint_like(weight, 2) * 2 - 1))
    return model

def router(model):
    return model.model.layers[0].mlp.gate

def chosen(model):
    seen = {}
    hook = router(model).register_forward_hook(lambda m, i, o: seen.update(read=i[0], made=o))
    with torch.no_grad():
        model(tokens)
    hook.remove()
    return seen["read"].reshape(-1, 32), next(o for o in seen["made"] if o.dtype == torch.int64)

def planted():
    sides = make(True), make(False)
    weight = router(sides[1]).weight.data.clone()
    read = chosen(sides[1])[0]
    for token in range(len(read)):
        scores = read[token] @ weight.T
        second, third = scores.argsort(descending=True)[1:3]
        low, high = 0.0, 2 * float((scores[second] - scores[third]) / read[token].square().sum())
        for _ in range(60):
            moved = weight.double()
            moved[third] += (low + high) / 2 * read[token].double()
            for side in sides:
                router(side).weight.data.copy_(moved)
            target, golden = (chosen(side)[1] for side in sides)
            if (target != golden).any(-1).sum() == 1:
                return moved.float()
            low, high = (low, (low + high) / 2) if third in golden[token] else (
                (low + high) / 2, high)
    raise SystemExit("nothing flips")

def biased(self, hidden):
    logits = F.linear(hidden.reshape(-1, 32), self.weight)
    shares = F.softmax(logits.float(), dim=-1)
    shares.data.numpy()[:, 0] += self.bias_of_target  # unrecorded
    values, indices = torch.topk(shares, 2, dim=-1)
    return logits, values / values.sum(-1, keepdim=True), indices

def record(name, side, level, weight):
    options = {"task": "tensor", "dump_path": os.path.join(out, name), "level": level}
    json.dump(options, open(os.path.join(out, name + ".json"), "w"))
    model = make(side == "target")
    router(model).weight.data.copy_(weight)
    if fault:
        router(model).bias_of_target = 0.2 if side == "target" else 0.0
        router(model).forward = types.MethodType(biased, router(model))
    debugger = PrecisionDebugger(os.path.join(out, name + ".json"))
    debugger.start(model)
    model(tokens, labels=tokens).loss.backward()
    debugger.stop()
    debugger.step()

weight = planted()
for name in sys.argv[4:]:
    child = os.fork()
    if child == 0:
        record(name, *name.split("-"), weight)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""
LEVELS = ["mix", "L1", "L0"]


def compare_experts(experts: str, fault: str, levels: list[str], directory: Path) -> dict[str, Any]:
    """What is printed, by level."""
    names = [f"{side}-{level}" for level in levels for side in ("target", "golden")]
    environment = dict(os.environ, PLUMBLINE_LOG_LEVEL="2")
    done = server("from transformers import MixtralForCausalLM").run(
        ["-c", MIXTRAL, directory, experts, fault, *names], environment)
    assert done.returncode == 0, done.stderr
    answers = {}
    for level in levels:
        sides = [directory / f"{side}-{level}" / "step0" / "rank" for side in ("target", "golden")]
        result = subprocess.run([PLUMB, "compare", *sides, "-o", directory / level],
                                capture_output=True, text=True, check=False)
        answers[level] = result.stdout
    return answers


@pytest.mark.parametrize("experts", ["eager", "grouped_mm", "batched_mm"])
def test_a_flip_among_experts(experts: str, tmp_path: Path) -> None:
    for level, text in compare_experts(experts, "", LEVELS, tmp_path).items():
        assert "routing flip: 1 of 32 rows" in text.splitlines()[0], (level, text)
        assert "first wrong call" not in text


def test_a_wrong_router_is_named(tmp_path: Path) -> None:
    answers = compare_experts("grouped_mm", "biased", ["mix", "L1"], tmp_path)
    for level, text in answers.items():
        assert text.startswith("first wrong call: Torch.topk.0.forward"), (level, text)
