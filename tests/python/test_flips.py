"""Choices that noise alone flips are noise, and what follows from them is told as such."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from compare_cases import Dump
from test_number_extremes import compare

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
