"""Ways to change a model or its kernels, for cases of many models."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import through
from fault_cases import Setup
from torch import nn

BASELINE = (("ATEN_CPU_CAPABILITY", "default"),)  # environment of a recording
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
# A recorder may have put its own functions in place of Tensor's.
_CAT = torch.ops.aten.cat.default
_SPLIT = torch.ops.aten.split.Tensor


def kernel(name: str, change: object) -> object:
    """A case's change that changes one kernel."""
    def apply(s: Setup) -> None:
        s.changes[name] = change  # type: ignore[assignment]
    return apply


def at_uses(owner: Any, name: str, which: tuple[int, ...], wrong: Any) -> None:
    """Replaces some uses of an instance's method."""
    right, count = getattr(owner, name), [0]

    def replaced(*args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        return (wrong if count[0] - 1 in which else right)(*args, **kwargs)
    setattr(owner, name, replaced)


def to_int8(weight: nn.Parameter) -> None:
    """Rounds to 8-bit integers with one scale, and back."""
    scale = weight.data.abs().max() / 127
    weight.data = (weight.data / scale).round() * scale


def threads(s: Setup) -> None:
    torch.set_num_threads(3)
    s.stack.callback(torch.set_num_threads, 1)


def changed(name: str, change: Any) -> Any:
    """A parameter or buffer, by its path, replaced by what `change` makes of it."""
    def apply(s: Setup) -> None:
        owner, last = s.model, name.rsplit(".", 1)[-1]
        for part in name.split(".")[:-1]:
            owner = owner[int(part)] if part.isdigit() else getattr(owner, part)
        tensor = getattr(owner, last)
        tensor.data = change(tensor.data).contiguous()
    return apply


def attribute(name: str, value: Any) -> Any:
    """An attribute, by its path, with another value."""
    def apply(s: Setup) -> None:
        owner = s.model
        for part in name.split(".")[:-1]:
            owner = owner[int(part)] if part.isdigit() else getattr(owner, part)
        setattr(owner, name.rsplit(".", 1)[-1], value)
    return apply


def wide(*kernels: str) -> Any:
    """These kernels in float64, rounded once."""
    return lambda s: s.changes.update(dict.fromkeys(kernels, through(torch.float64)))


def in_rows(kernel_of: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """A product whose rows are computed in groups of five."""
    place = len(args) - 2
    return _CAT([kernel_of(*args[:place], part, args[-1], **kwargs)
                 for part in _SPLIT(args[place], 5)])


def method(name: str, value: Any) -> Any:
    """A method of the model, as a function of the model and the arguments."""
    def apply(s: Setup) -> None:
        model = s.model
        setattr(model, name, lambda *args: value(model, *args))
    return apply


def method_at(name: str, which: tuple[int, ...], value: Any) -> Any:
    """Some uses of a method."""
    return lambda s: at_uses(s.model, name, which, lambda *args: value(s.model, *args))


def whole(dtype: torch.dtype) -> Any:
    """Parameters and buffers in another type."""
    return lambda s: s.model.to(dtype) and None
