"""What is expected of a recorded call, how far a result may be from it, and whether one is too far.

The right result is the one in float64 on the CPU. How far another may be from it is found out by
the call on this CPU in the recorded type, and is never so much that a wrong result would pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch

from plumbline.precheck_run.executor import one_line
from plumbline.precheck_run.extracted_case import CHANGED, Case, Made, Setting, Side, run

# A result may be this many times farther from the one in float64 than the same call on this CPU in
# the recorded type is, which leaves room for another order of sums.
ROOM = 8.0
# And this many units of the last place of its own value, where the CPU happens to be exact.
UNITS = 4.0
# In parts of the right value: most that is allowed where the error of every element is small beside
# it, in units of the last place and, whatever the type, altogether.
MOST_UNITS = 256.0
MOST_RELATIVE = 1 / 32
# Where it is not (sums whose parts cancel), most that is allowed in parts of the root mean square
# of the right values.
MOST_OF_TYPICAL = 1 / 16
# Devices may take results below this for zero: the smallest normal number of float32 and bfloat16.
_FLUSHED = 2.0 ** -126
# Of these types no error can be seen, as the right result has the same; all of it may be off by
# MOST_UNITS of the largest value.
_OF_THE_JUDGE = (torch.float64, torch.complex128)
# A result of few elements says little about errors: the call is made at this many points nearby
# too, whose inputs are up to some units of the last place away.
_FEW_ELEMENTS = 4096
_NEARBY, _NEARBY_UNITS = 4, 4


class NoTestError(ValueError):
    """Why no test can be made of a call."""


@dataclass(frozen=True)
class Limit:
    """How far an element may be from the right one; both zero: it is equal."""

    absolute: float = 0.0
    relative: float = 0.0  # in parts of the right value
    cut_from: float = 0.0  # what `absolute` would be if that did not let wrong results pass


@dataclass(frozen=True)
class Expected:
    """Results in float64, by name ("output.0")."""

    values: dict[str, torch.Tensor]
    limits: dict[str, Limit]  # of those that are judged
    left_out: dict[str, str] = field(default_factory=dict)  # the others, and why
    is_in_place: bool = False  # see Made


@dataclass(frozen=True)
class Judgement:
    """What came of a call on one side."""

    problem: str = ""  # "output.0 is off by 3.1e-05 (limit 2e-07)"; empty: all is within limits
    error: str = ""  # the call could not be made
    is_stuck: bool = False  # the problem is that it does not come back

    @property
    def fails(self) -> bool:
        """Whether results are too far from those expected."""
        return bool(self.problem)


def expect(case: Case) -> Expected:
    """What the right side gives in float64, and the limits.

    Raises:
        NoTestError: no test of the call could fail, or a right device would fail it too.
    Other exceptions are the call's own.
    """
    exact = _exact(case)
    plain = run(case, case.right, Setting())
    if not exact.results:
        raise NoTestError("the call returns nothing that could be compared")
    if exact.is_random or plain.is_random:
        raise NoTestError("the call draws random numbers: no two runs agree")
    pairs = [(plain, exact), *_nearby_runs(case, exact)]
    values, limits, left_out = {}, {}, {}
    for name, value in exact.results.items():
        own = plain.results.get(name)
        values[name] = value if own is None else _rounded_to_infinity(value, own.dtype)
        limit = _limit_of([(one.results[name], _rounded_to_infinity(right.results[name],
                                                                    one.results[name].dtype))
                           for one, right in pairs if name in one.results])
        reason = _why_useless(own, values[name], limit)
        if reason:
            left_out[name] = reason
        else:
            limits[name] = limit
    if not limits:
        name, reason = next(iter(left_out.items()))
        raise NoTestError(f"a test of it could not tell right from wrong: {name}: {reason}")
    return Expected(values, limits, left_out, exact.is_in_place)


def _exact(case: Case) -> Made:
    """The right side in float64; a float8 that a call makes has no arithmetic of its own."""
    made = run(case, case.right, Setting(dtype=torch.float64))
    results = {name: value.double() if _is_measured(value) and value.element_size() == 1 else value
               for name, value in made.results.items()}
    return replace(made, results=results)


def _nearby_runs(case: Case, exact: Made) -> Iterator[tuple[Made, Made]]:
    """In the recorded type and in float64, if a result has few elements."""
    if not any(0 < value.numel() <= _FEW_ELEMENTS for value in exact.results.values()):
        return
    for number in range(_NEARBY):
        near = _moved(case, number)
        try:
            yield run(near, near.right, Setting()), _exact(near)
        except Exception:  # out of the range of an argument
            continue


def _moved(case: Case, number: int) -> Case:
    generator = torch.Generator().manual_seed(number)
    tensors = dict(case.tensors)
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or tensor.element_size() == 1:
            continue
        steps = torch.randint(-_NEARBY_UNITS, _NEARBY_UNITS + 1, tensor.shape, generator=generator)
        moved = (tensor.double() * (1 + steps * torch.finfo(tensor.dtype).eps)).to(tensor.dtype)
        tensors[name] = torch.where(moved.isfinite(), moved, tensor)
    return replace(case, tensors=tensors)


def _is_measured(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _rounded_to_infinity(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What the recorded type cannot hold is infinite in it on every device."""
    if not (value.is_floating_point() and dtype.is_floating_point):
        return value
    return torch.where(value.abs() > torch.finfo(dtype).max, value.sign() * math.inf, value)


def _limit_of(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> Limit:
    """By what this CPU gives in the recorded type and in float64, once or more often."""
    if not pairs or not all(map(_is_measured, pairs[0])):
        return Limit()
    gaps, sizes = _gaps_and_sizes(pairs)
    info = torch.finfo(pairs[0][0].dtype)
    floor = max(UNITS * info.eps * info.smallest_normal, min(info.smallest_normal, _FLUSHED))
    if pairs[0][0].dtype in _OF_THE_JUDGE:
        floor = max(floor, MOST_UNITS * info.eps * _largest(sizes))
    gaps = torch.where(gaps <= floor, 0.0, gaps)
    least = min(UNITS * info.eps, max(info.eps, MOST_RELATIVE))
    most = max(least, min(MOST_UNITS * info.eps, MOST_RELATIVE))
    relative = max(least, ROOM * _largest(gaps[sizes > 0] / sizes[sizes > 0]))
    if bool((gaps[sizes == 0] > 0).any()) or relative > most:
        relative = least
    absolute = max(floor, ROOM * _largest(gaps - relative / ROOM * sizes))
    allowed = max(floor, MOST_OF_TYPICAL * _typical(_gaps_and_sizes(pairs[:1])[1]))
    if absolute > allowed:
        return Limit(_rounded_up(allowed), _rounded_up(relative), absolute)
    return Limit(_rounded_up(absolute), _rounded_up(relative))


def _rounded_up(value: float) -> float:
    """To four digits, as the program has it."""
    return float(f"{value * 1.001:.4g}")


def _gaps_and_sizes(
    pairs: list[tuple[torch.Tensor, torch.Tensor]]
) -> tuple[torch.Tensor, torch.Tensor]:
    gaps, sizes = [torch.zeros(0, dtype=torch.float64)], [torch.zeros(0, dtype=torch.float64)]
    for own, value in pairs:
        if own.shape != value.shape:
            continue
        both = own.to(value.dtype)
        finite = both.isfinite() & value.isfinite()
        gaps.append((both - value)[finite].abs().double())
        sizes.append(value[finite].abs().double())
    return torch.cat(gaps), torch.cat(sizes)


def _largest(values: torch.Tensor) -> float:
    return max(0.0, float(values.max())) if values.numel() else 0.0


def _typical(sizes: torch.Tensor) -> float:
    """The root mean square of what is not zero; 0: nothing."""
    sizes = sizes[sizes > 0]
    if sizes.numel() == 0:
        return 0.0
    largest = sizes.max()
    return float(largest * (sizes / largest).square().mean().sqrt())


def _why_useless(own: torch.Tensor | None, value: torch.Tensor, limit: Limit) -> str:
    """Why a result cannot be judged; empty: it can."""
    if value.numel() == 0:
        return "is empty"
    if own is None or own.shape != value.shape:
        return "in float64 the call returns something else"
    problem = _difference(own, value, limit)
    if problem:
        return (f"in the recorded type this CPU's own {problem}, where right values are about "
                f"{_typical(value[value.isfinite()].abs().double()):.3g}")
    if not _is_measured(own):
        return ""
    for what, wrong in _wrong_forms(value, limit):
        if not _difference(wrong, value, limit):
            return f"{what} would pass (limit {limit.absolute:.3g})"
    return ""


def _wrong_forms(value: torch.Tensor, limit: Limit) -> Iterator[tuple[str, torch.Tensor]]:
    """Results that no test may let pass."""
    finite = value.isfinite()
    if not bool((value[finite] != 0).any()):
        yield "ones", torch.ones_like(value)
        return
    yield "zeros", torch.zeros_like(value)
    for factor in (0.5, 1 + max(1 / 8, 4 * limit.relative)):
        yield f"{factor:g} times the right values", torch.where(finite, value * factor, value)


def judge(case: Case, side: Side, device: str, expected: Expected) -> Judgement:
    """Makes the call on a device, in the recorded types, and compares."""
    try:
        results = run(case, side, Setting(device)).results
    except Exception as error:
        return Judgement(error=one_line(error))
    return Judgement(first_problem(results, expected))


def judge_target(case: Case, device: str) -> Judgement:
    """Of a case of which perhaps nothing can be expected; then nothing is wrong."""
    try:
        expected = expect(case)
    except Exception:  # the right side cannot be made any more: too small, out of range
        return Judgement()
    return judge(case, case.target, device, expected)


def first_problem(results: dict[str, torch.Tensor], expected: Expected) -> str:
    """What is wrong with the first result that is; empty: nothing."""
    for name, value in expected.values.items():
        own = results.get(name)
        if own is None:
            return f"{name.removeprefix(CHANGED)} was not changed" if name.startswith(CHANGED) \
                else f"{name} is missing"
        if own.shape != value.shape:
            return f"{name} has the shape {tuple(own.shape)} (expected {tuple(value.shape)})"
        problem = "" if name in expected.left_out else \
            _difference(own, value, expected.limits[name])
        if problem:
            return f"{name} {problem}"
    return ""


def _difference(own: torch.Tensor, value: torch.Tensor, limit: Limit) -> str:
    if own.numel() == 0:
        return ""
    both = own.to(value.dtype) if _is_measured(value) else own
    same = (both == value) | (both.isnan() & value.isnan())
    if limit == Limit():
        wrong = int((~same).sum())
        return f"has {wrong} wrong of {own.numel()} elements" if wrong else ""
    gap = torch.where(same, 0.0, (both - value).abs().double())
    if bool(gap.isnan().any()):
        return "is NaN where a number is expected, or the other way round"
    allowed = limit.absolute + limit.relative * value.abs().double()
    # What is infinite is equal or wrong.
    allowed = torch.where(value.isfinite(), allowed, 0.0)
    beyond = gap / allowed.clamp(min=torch.finfo(torch.float64).smallest_normal)
    if not bool((gap > allowed).any()):
        return ""
    worst = int(torch.where(gap > allowed, beyond, 0.0).argmax())
    return f"is off by {gap.flatten()[worst]:.4g} (limit {allowed.flatten()[worst]:.4g})"
