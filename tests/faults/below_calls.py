"""Changes what PyTorch's kernels do below the calls that a recorder sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

Change = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class Kernels(TorchDispatchMode):
    """Replaces chosen calls of chosen kernels, forward and backward.

    `changes` maps "addmm" or, for its k-th use only, "addmm:3" to a function of (kernel, arguments,
    keyword arguments) that returns the result.
    """

    def __init__(self, changes: dict[str, Change]):
        super().__init__()
        self._changes = changes
        self._uses: Counter[str] = Counter()
        self.applied: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        numbered = f"{name}:{self._uses[name]}"
        self._uses[name] += 1
        # What happens here must not be recorded: kernels have no calls inside.
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            for key in (numbered, name):
                if key in self._changes:
                    self.applied[key] += 1
                    return self._changes[key](func, args, kwargs)
            return func(*args, **kwargs)


def afterwards(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """The kernel as it is, and `change` of its (first) result."""
    def changed(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = kernel(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            return change(result)
        return (change(result[0]), *result[1:])
    return changed


def with_inputs(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """The kernel on changed floating-point inputs."""
    def changed(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return kernel(*[change(arg) if isinstance(arg, torch.Tensor) and arg.is_floating_point()
                        else arg for arg in args], **kwargs)
    return changed


def in_parts(parts: int, partial: torch.dtype | None = None) -> Change:
    """Products whose inner dimension is cut into parts that are summed afterwards.

    `partial`: the type the running sum is rounded to; none: that of the result.
    """
    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        size = -(-a.shape[-1] // parts)
        total = None
        for start in range(0, a.shape[-1], size):
            part = _MATMUL(a[..., start:start + size], b[..., start:start + size, :])
            total = part if total is None else _ADD(total, part)
            if partial is not None:
                total = total.to(partial).to(a.dtype)
        assert total is not None
        return total

    def changed(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kernel.overloadpacket.__name__ in ("addmm", "baddbmm"):
            return _ADD(args[0], product(args[1], args[2]))
        return product(args[0], args[1])
    return changed


def through(dtype: torch.dtype) -> Change:
    """The kernel computed in another type and rounded once."""
    def convert(value: Any, to: torch.dtype) -> Any:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.to(to)
        return value

    def changed(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = next(arg.dtype for arg in args if isinstance(arg, torch.Tensor))
        result = kernel(*[convert(arg, dtype) for arg in args], **kwargs)
        if isinstance(result, torch.Tensor):
            return convert(result, own)
        return tuple(convert(part, own) for part in result)
    return changed


def rounded_to(bits: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """float32 values with so many explicit bits of mantissa (tf32 has 10, bfloat16 7)."""
    drop = 23 - bits

    def rounded(values: torch.Tensor) -> torch.Tensor:
        if values.dtype != torch.float32:
            return values
        # NumPy: calls of torch would be recorded.
        words = numpy.ascontiguousarray(values.detach().numpy()).view(numpy.int32)
        words = (words + (1 << (drop - 1)) - 1 + ((words >> drop) & 1)) & -(1 << drop)
        return torch.from_numpy(words.view(numpy.float32))
    return rounded


# The operators themselves: a recorder may have put its own functions in place of Tensor's.
_MATMUL, _ADD = torch.ops.aten.matmul.default, torch.ops.aten.add.Tensor

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")


def all_products(change: Change) -> dict[str, Change]:
    """The same change for every kind of matrix product."""
    return dict.fromkeys(PRODUCTS, change)
