"""Pairs of dumps for the acceptance ideas of comparing, one function each.

tests/data/make_compare_fixtures.py hands them to upstream, test_compare_cells.py to plumbline. The
values are short so that statistics do not depend on the order of summation.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

INF, NAN = math.inf, math.nan
X = torch.tensor([1.0, -2.0, 4.0])


def statistics(values: list[Any]) -> dict[str, Any]:
    """Max, Min, Mean and Norm as a recorder writes them; null for nothing."""
    if not values or isinstance(values[0], complex):
        return dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    if isinstance(values[0], bool):
        return {"Max": max(values), "Min": min(values), "Mean": None, "Norm": None}
    if any(math.isnan(value) for value in values):
        return dict.fromkeys(("Max", "Min", "Mean", "Norm"), NAN)
    sums = math.inf if math.inf in values else sum(values)
    return {"Max": max(values), "Min": min(values), "Mean": sums / len(values),
            "Norm": math.sqrt(sum(value * value for value in values))}


@dataclass
class Dump:
    """One side. Values are tensors, scalars of Python, None, or dictionaries taken as they are."""

    task: str = "statistics"
    md5: bool = False
    framework: str = "pytorch"
    data: dict[str, Any] = field(default_factory=dict)
    files: dict[str, torch.Tensor] = field(default_factory=dict)

    def value(self, given: Any, name: str) -> Any:
        if isinstance(given, list):
            return [self.value(one, f"{name}.{index}") for index, one in enumerate(given)]
        if given is None or isinstance(given, dict):
            return given
        if not isinstance(given, torch.Tensor):
            return {"type": type(given).__name__, "value": given}
        flat = given.reshape(-1)
        kind, dtype = "torch.Tensor", str(given.dtype)
        if self.framework == "mindspore":
            kind, dtype = "mindspore.Tensor", dtype.removeprefix("torch.").capitalize()
        leaf = {"type": kind, "dtype": dtype, "shape": list(given.shape),
                **statistics(flat.tolist()), "requires_grad": False}
        if self.md5:
            content = flat.contiguous().view(torch.uint8).numpy().tobytes()
            leaf["md5"] = f"{zlib.crc32(content):08x}"
        if self.task == "tensor":
            leaf["data_name"] = f"{name}.pt"
            self.files[f"{name}.pt"] = given
        return leaf

    def forward(self, name: str, inputs: list[Any], outputs: list[Any], **kwargs: Any) -> None:
        self.data[name] = {
            "input_args": [self.value(v, f"{name}.input.{i}") for i, v in enumerate(inputs)],
            "input_kwargs": {k: self.value(v, f"{name}.kwargs.{k}") for k, v in kwargs.items()},
            "output": [self.value(v, f"{name}.output.{i}") for i, v in enumerate(outputs)]}

    def backward(self, name: str, inputs: list[Any], outputs: list[Any]) -> None:
        self.data[name] = {
            "input": [self.value(v, f"{name}.input.{i}") for i, v in enumerate(inputs)],
            "output": [self.value(v, f"{name}.output.{i}") for i, v in enumerate(outputs)]}

    def write(self, directory: Path) -> Path:
        """Writes the rank directory; returns its dump.json."""
        tensors = directory / "dump_tensor_data"
        (tensors if self.task == "tensor" else directory).mkdir(parents=True)
        for name, value in self.files.items():
            torch.save(value, tensors / name)
        head = {"task": self.task, "level": "mix", "framework": self.framework,
                "dump_data_dir": str(tensors) if self.task == "tensor" else None}
        stack = {name: [f"File a.py, line {line}, in f, \n x = g(y)"]
                 for line, name in enumerate(self.data) if not name.endswith("parameters_grad")}
        for name, content in (("dump", {**head, "data": self.data}), ("stack", stack),
                              ("construct", dict.fromkeys(self.data))):
            (directory / f"{name}.json").write_text(json.dumps(content))
        return directory / "dump.json"


Pair = tuple[Dump, Dump]


def each(build: Callable[[Dump, bool], None], **options: Any) -> Pair:
    """Both sides of one builder, which is told whether it makes the target."""
    sides = Dump(**options), Dump(**options)
    for side, is_target in zip(sides, (True, False), strict=True):
        build(side, is_target)
    return sides


def mlp() -> Pair:
    """Row 1: three layers; the second one's output is off on the target."""
    def build(dump: Dump, is_target: bool) -> None:
        x = torch.tensor([[1.0, -2.0], [3.0, 0.5]])
        for layer in range(3):
            weight = torch.tensor([[1.0, -0.5], [0.25, 2.0]]) * (layer + 1)
            y = x @ weight.T
            if is_target and layer == 1:
                y = y + torch.tensor([[64.0, -32.0], [0.5, 8.0]])
            leaf = dump.value(weight, "")
            dump.forward(f"Functional.linear.{layer}.forward", [x, weight, None], [y])
            name = f"Module.fc{layer}.Linear"
            dump.forward(f"{name}.forward.0", [x], [y])
            dump.data[f"{name}.forward.0"]["parameters"] = {"weight": leaf}
            x = y.clamp(min=0)
            dump.forward(f"Functional.relu.{layer}.forward", [y], [x])
        for layer in (2, 1, 0):
            name = f"Module.fc{layer}.Linear"
            grad = torch.full((2, 2), 0.5 + (layer == 0 and is_target))
            dump.backward(f"{name}.backward.0", [grad], [grad * 2])
            dump.data[f"{name}.parameters_grad"] = {"weight": [dump.value(grad * 4, "")]}
    return each(build)


def md5() -> Pair:
    """Row 2: one tensor changed, one call of the target alone."""
    def build(dump: Dump, is_target: bool) -> None:
        dump.forward("Torch.add.0.forward", [X, 1], [X + 1])
        if is_target:
            dump.forward("Torch.extra.0.forward", [X], [X])
        dump.forward("Torch.mul.0.forward", [X], [X * (3 if is_target else 2)])
    return each(build, md5=True)


def zoo_values(is_target: bool) -> dict[str, torch.Tensor]:
    shift = 0.125 if is_target else 0.0
    one = torch.tensor([1.0, 2.0, 3.0, 4.0])
    odd = {"nan_equal": [1.0, NAN, 3.0 + shift],
           "nan_other": [NAN, 1.0] if is_target else [1.0, NAN],
           "inf_equal": [INF, -INF, 2.0 + shift],
           "inf_one": [INF, 1.0] if is_target else [2.0, 1.0],
           "inf_sign": [INF if is_target else -INF, 1.0], "nan_all": [NAN, NAN],
           "zeros": [0.0, 0.0], "same": [0.5, 8.0]}
    return {
        "float32": one + shift, "float64": one.double() + shift, "float16": one.half() + shift,
        "bfloat16": one.bfloat16() + shift, "int64": one.long() + is_target,
        "int8": one.to(torch.int8) * (2 if is_target else 1),
        "bool": torch.tensor([True, is_target, False]),
        "complex64": torch.complex(one, one + shift),
        "scalar": torch.tensor(2.5 + shift), "scalar_int": torch.tensor(3 + is_target),
        "scalar_bool": torch.tensor(True), "one_element": torch.tensor([2.0 + shift]),
        "empty": torch.zeros(0, 3), "shape": one.reshape(2, 2) if is_target else one,
        **{name: torch.tensor(values) for name, values in odd.items()}}


def zoo() -> Pair:
    """Row 3: every kind of tensor, as the output of a call of its own."""
    def build(dump: Dump, is_target: bool) -> None:
        for name, value in zoo_values(is_target).items():
            dump.forward(f"Torch.{name}.0.forward", [X], [value])
    return each(build, task="tensor")


def precision() -> Pair:
    """Row 3: calls whose two sides have other floating-point types."""
    def build(dump: Dump, is_target: bool) -> None:
        for name, dtype in (("half", torch.float16), ("brain", torch.bfloat16)):
            dump.forward(f"Torch.{name}.0.forward", [X],
                         [X.to(dtype if is_target else torch.float32)])
        dump.forward("Torch.mixed.0.forward", [X],
                     [X.to(torch.float16 if is_target else torch.bfloat16)])
    return each(build, task="tensor")


def half_zero() -> Pair:
    """Row 4."""
    return each(lambda dump, _: dump.forward("Torch.f.0.forward", [X], [
        torch.tensor([0.0, 1.0, 2.0], dtype=torch.float16)]), task="tensor")


def zeros_and_ones() -> Pair:
    """Row 5."""
    return each(lambda dump, is_target: dump.forward(
        "Torch.f.0.forward", [X], [torch.zeros(4) if is_target else torch.ones(4)]), task="tensor")


def integer_zero() -> Pair:
    """Row 6."""
    return each(lambda dump, is_target: dump.forward(
        "Torch.f.0.forward", [X], [torch.tensor([1 if is_target else 0, 5])]), task="tensor")


def lost_calls() -> Pair:
    """Row 7: the golden side ends after the first call."""
    def build(dump: Dump, is_target: bool) -> None:
        for name in ("a", "x1", "x2", "x3", "x4") if is_target else ("a",):
            dump.forward(f"Torch.{name}.0.forward", [X], [X])
    return each(build)


def other_order() -> Pair:
    """Row 8."""
    def build(dump: Dump, is_target: bool) -> None:
        for name in ("a", "b") if is_target else ("b", "a"):
            dump.forward(f"Torch.{name}.0.forward", [X, name], [X])
    return each(build)


def recomputation() -> Pair:
    """Row 9: recomputed calls make the target's numbers jump."""
    def build(dump: Dump, is_target: bool) -> None:
        for place, number in enumerate((0, 2, 4) if is_target else (0, 1, 2)):
            dump.backward(f"Functional.linear.{number}.backward", [X * (place + 1)], [X])
    return each(build)


def fuzzy() -> Pair:
    """Row 10: another call number of an API and of a module."""
    def build(dump: Dump, is_target: bool) -> None:
        number = 3 if is_target else 0
        dump.forward(f"Torch.add.{number}.forward", [X], [X])
        dump.forward(f"Module.fc.Linear.forward.{number}", [X], [X * 2])
    return each(build)


def brain_float() -> Pair:
    """Row 11: float32 against bfloat16."""
    return each(lambda dump, is_target: dump.forward(
        "Torch.f.0.forward", [X], [X if is_target else X.bfloat16()]))


def scalars() -> Pair:
    """Row 12: arguments that are no tensors."""
    def build(dump: Dump, is_target: bool) -> None:
        group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1 if is_target else 2]}
        values = [True, not is_target, 1, 3.5 if is_target else 2.5, 1e-05, "text", None,
                  {"type": "slice", "value": [None, 2, None]},
                  {"type": "ellipsis", "value": "..."}, {"type": "torch.Size", "value": [2, 3]},
                  group, [1, 2]]
        dump.forward("Torch.f.0.forward", [X, *values], [X], flag=True)
    return each(build)


def scalar_types() -> Pair:
    """Row 12: 1 against 1.0."""
    return each(lambda dump, is_target: dump.forward(
        "Torch.f.0.forward", [X, 1 if is_target else 1.0], [X]))


def kwargs_statistics() -> Pair:
    """Row 13: a keyword tensor and a keyword scalar."""
    return each(lambda dump, _: dump.forward("Torch.f.0.forward", [X], [X], other=X, alpha=2))


def kwargs_tensor() -> Pair:
    """Row 13, with tensors."""
    return each(lambda dump, _: dump.forward("Torch.f.0.forward", [X], [X], other=X, alpha=2),
                task="tensor")


def infinite() -> Pair:
    """Row 14."""
    def build(dump: Dump, is_target: bool) -> None:
        dump.forward("Torch.one.0.forward", [X], [torch.tensor([INF if is_target else 3.0, 1.0])])
        dump.forward("Torch.both.0.forward", [X], [torch.tensor([INF, 1.0])])
        dump.forward("Torch.low.0.forward", [X], [torch.tensor([-INF if is_target else 3.0, 1.0])])
    return each(build)


def negative_max() -> Pair:
    """Row 15: a tiny difference of a negative maximum."""
    return each(lambda dump, is_target: dump.forward(
        "Torch.f.0.forward", [X], [torch.tensor([-5.0 - 0.0009765625 * is_target, -6.0])]))


CASES: dict[str, Callable[[], Pair]] = {
    function.__name__: function for function in (
        mlp, md5, zoo, precision, half_zero, zeros_and_ones, integer_zero, lost_calls, other_order,
        recomputation, fuzzy, brain_float, scalars, scalar_types, kwargs_statistics, kwargs_tensor,
        infinite, negative_max)}
FUZZY = ("fuzzy",)
