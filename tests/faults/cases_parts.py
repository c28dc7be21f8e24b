"""Micro batches: runs that cut one batch otherwise, right and with a fault in one of the parts."""

from __future__ import annotations

from typing import Any

import torch
from fault_cases import Case, Setup, fault, noise
from torch.nn import functional

GROUP = "parts"


def into(*sizes: int) -> Any:
    """The batch in parts of so many samples."""
    return lambda s: setattr(s.model, "sizes", list(sizes))


def part(change: Any, *sizes: int) -> Any:
    """The same with a change of the model in its last part."""
    def applied(s: Setup) -> None:
        into(*sizes)(s)
        last = len(sizes) - 1

        def starts(number: int) -> None:
            if number == last:
                change(s)
        s.model.starts = starts
    return applied


def heavier(s: Setup) -> None:
    into(4, 4)(s)
    right = s.model.weight
    s.model.weight = lambda number: right(number) * (1.02 if number == 1 else 1)


def not_averaged(s: Setup) -> None:
    into(4, 4)(s)
    right = s.model.weight
    s.model.weight = lambda number: 2 * right(number)


def rolled(s: Setup) -> None:
    into(4, 4)(s)
    s.model.labels = lambda number, wanted: wanted.roll(1, 0) if number == 1 else wanted


def cleared(s: Setup) -> None:
    into(4, 4)(s)
    s.model.derived = lambda number: s.model.zero_grad()


def left_out(name: str, *sizes: int) -> Any:
    """A parameter that is not updated."""
    def applied(s: Setup) -> None:
        into(*sizes)(s)
        s.model.left_out = (name,)
    return applied


def large_addend(s: Setup) -> None:
    s.model.layers[1].small = 0.1


def other_activation(s: Setup) -> None:
    m = s.model.layers[0]
    m.gated = lambda values: functional.relu(m.gate(values)) * m.up(values)


def exchanged(s: Setup) -> None:
    for m in s.model.layers:
        m.gated = lambda x, m=m: torch.mul(m.up(x), functional.silu(m.gate(x)))


def wrong(name: str, culprits: str, cause: str, change: Any) -> Case:
    """A fault of this group."""
    return fault(name, culprits, cause, change, group=GROUP)


def cuts(model: str) -> list[Case]:
    """The right ones of a model."""
    return [noise(f"{model}-{name}", into(*sizes), group=GROUP) for name, sizes in (
        ("two", (4, 4)), ("four", (2,) * 4), ("eight", (1,) * 8), ("uneven", (5, 3)),
        ("one-and-seven", (1, 7)))]


CASES = [
    *cuts("cut"), *cuts("half"), *cuts("bare"),
    noise("cut-exchanged", part(exchanged, 2, 2, 2, 2), group=GROUP),
    wrong("cut-one-heavier", "__mul__.13", "scale", heavier),
    wrong("half-one-heavier", "__mul__.13", "scale", heavier),
    wrong("bare-one-heavier", "__mul__.13", "scale", heavier),
    wrong("cut-not-averaged", "__mul__.6 __mul__.13", "scale", not_averaged),
    wrong("bare-not-averaged", "__mul__.6 __mul__.13", "scale", not_averaged),
    wrong("cut-labels-rolled", "cross_entropy.0 cross_entropy.1", "", rolled),
    wrong("bare-labels-rolled", "cross_entropy.0 cross_entropy.1", "", rolled),
    wrong("cut-cleared", "lerp_.0", "missing-addend stale", cleared),
    wrong("cut-left-out", "add_.3", "missing-call", left_out("layers.0.mix.weight", 8)),
    wrong("cut-two-left-out", "add_.3", "missing-call", left_out("layers.0.mix.weight", 4, 4)),
    wrong("cut-large-addend", "__add__.4 __add__.11 __add__.18 __add__.25", "",
          part(large_addend, 2, 2, 2, 2)),
    wrong("cut-other-activation", "__mul__.2 __mul__.9 relu.0", "",
          part(other_activation, 4, 4)),
]
