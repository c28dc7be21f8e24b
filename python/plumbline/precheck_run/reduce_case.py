"""Makes a failing case smaller while it still fails: delta debugging on the sizes of dimensions, on
optional arguments and on the backward."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from plumbline.precheck_run.extracted_case import (
    GOLDEN,
    Case,
    Side,
    names_in,
    used_names,
    with_sides,
)


@dataclass
class Reduction:
    """What was tried."""

    tried: int = 0
    kept: int = 0
    is_out_of_time: bool = False


def kind_of(problem: str) -> str:
    """Which result fails and how, without the numbers; empty: it does not fail."""
    return " ".join(word for word in problem.split("(")[0].split() if word[0].isalpha())


def reduce_case(case: Case, seconds: float,
                problem_of: Callable[[Case, float], str]) -> tuple[Case, Reduction]:
    """The smallest case found within `seconds` that fails in the same way.

    Args:
        case: it fails.
        seconds: altogether.
        problem_of: what is wrong with a case, found out within a number of seconds; empty: nothing,
            or it was not found out.
    """
    reduction = Reduction()
    end = time.monotonic() + seconds
    problem = kind_of(problem_of(case, seconds))
    changed = bool(problem)
    while changed and not reduction.is_out_of_time:
        changed = False
        for candidate in _smaller(case):
            left = end - time.monotonic()
            if left <= 0:
                reduction.is_out_of_time = True
                break
            reduction.tried += 1
            if kind_of(problem_of(candidate, left)) == problem:
                reduction.kept += 1
                case, changed = candidate, True
                break
    return _without_unused(case), reduction


def _smaller(case: Case) -> Iterator[Case]:
    """Candidates, those that may save most first."""
    if case.grads:
        yield replace(case, grads=[])
    sizes = sorted({size for tensor in case.tensors.values() for size in tensor.shape if size > 1},
                   reverse=True)
    for size in sizes:
        for start, length in _parts(size):
            yield _cut_everywhere(case, size, start, length)
    for name in sorted(used_names(case)):
        tensor = case.tensors[name]
        for dimension, size in enumerate(tensor.shape):
            for start, length in _parts(size):
                yield _cut_one(case, name, dimension, (start, length))
    yield from _fewer_arguments(case)


def _parts(size: int) -> Iterator[tuple[int, int]]:
    """Pieces of a dimension: one element, then eighths and halves, from either end."""
    lengths = sorted({1, size // 8, size // 4, size // 2} - {0, size})
    for length in lengths:
        for start in sorted({0, (size - length) // 2, size - length}):
            yield start, length


def _cut_everywhere(case: Case, size: int, start: int, length: int) -> Case:
    """Every dimension of this size, of all tensors, and every plain integer that is this size."""
    tensors = {}
    for name, tensor in case.tensors.items():
        for dimension in range(tensor.dim()):
            if tensor.shape[dimension] == size:
                tensor = tensor.narrow(dimension, start, length)
        tensors[name] = tensor.clone()
    changed = with_sides(case, lambda side: Side(
        [_replaced(value, size, length) for value in side.args],
        {name: _replaced(value, size, length) for name, value in side.kwargs.items()}))
    return replace(changed, tensors=tensors)


def _replaced(value: Any, size: int, length: int) -> Any:
    if type(value) is int and value == size:
        return length
    if isinstance(value, torch.Size):
        return torch.Size([length if item == size else item for item in value])
    if type(value) in (list, tuple):
        return type(value)(_replaced(item, size, length) for item in value)
    return value


def _cut_one(case: Case, name: str, dimension: int, part: tuple[int, int]) -> Case:
    cut = {}
    for one in (name, GOLDEN + name, name.removeprefix(GOLDEN)):  # both sides of one argument
        tensor = case.tensors.get(one)
        if tensor is not None and tensor.shape == case.tensors[name].shape:
            cut[one] = tensor.narrow(dimension, *part).clone()
    return replace(case, tensors={**case.tensors, **cut})


def _fewer_arguments(case: Case) -> Iterator[Case]:
    for name in sorted(set(case.target.kwargs) | set(case.right.kwargs)):
        yield with_sides(case, lambda side, name=name: Side(
            side.args, {key: value for key, value in side.kwargs.items() if key != name}))
    if len(case.target.args) > 1:
        yield with_sides(case, lambda side: Side(side.args[:-1], side.kwargs))


def _without_unused(case: Case) -> Case:
    used = used_names(case)
    kept = {name: tensor for name, tensor in case.tensors.items() if name in used}
    passed = set(names_in([case.target.args, case.target.kwargs]))
    return replace(case, tensors=kept, wants_grad=case.wants_grad & (passed | set(kept)))
