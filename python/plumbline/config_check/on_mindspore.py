"""What plumbline.config_check.checker needs to know about MindSpore."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import zlib
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy
from mindspore import context, mint, ops
from mindspore.communication import management

from plumbline import _core
from plumbline.config_check.pack import RandomStacks
from plumbline.mindspore.executor import api

MODEL_TYPE = "mindspore.nn.Cell"

_CHUNK_ELEMS = 1 << 20


def is_module(value: object) -> bool:
    """Whether `value` is a model."""
    return isinstance(value, ms.nn.Cell)


def unseen_calls() -> str:
    """Which calls of a model `watch` cannot see; empty: none."""
    if context.get_context("mode") != context.GRAPH_MODE:
        return ""
    return (
        "GRAPH_MODE: calls of the model from inside a compiled graph are not seen (expected "
        "PYNATIVE_MODE); data, weights and random calls are collected where Python calls the model"
    )


def is_compiling() -> bool:
    """False: the compiler does not see what `watch` installs."""
    return False


class _Watch:
    def __init__(self, patches: _core.PatchSet) -> None:
        self._patches = patches

    def remove(self) -> None:
        """Puts the original back."""
        self._patches.restore()


def watch(model: ms.nn.Cell, before: Callable[..., None]) -> _Watch:
    """Calls `before(model, args, kwargs)` ahead of every call; `remove()` of the result ends it.

    No pre-hook: in GRAPH_MODE a cell is compiled with its hooks.
    """
    owner: Any = next(each for each in type(model).__mro__ if "__call__" in vars(each))
    original = owner.__call__

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self is model:
            before(model, args, kwargs)
        return original(self, *args, **kwargs)

    patches = _core.PatchSet()
    patches.add(owner, "__call__", call)
    patches.apply()
    return _Watch(patches)


def parameters(model: ms.nn.Cell) -> Any:
    """Parameters with their names."""
    return model.parameters_and_names()


def rank() -> int:
    """Global rank; 0 where there is only one."""
    if management.GlobalComm.INITED:
        return int(management.get_rank())
    text = os.environ.get("RANK_ID", "")
    return int(text) if text.isdigit() else 0


def random_owners() -> dict[str, Any]:
    """Where the random functions are."""
    return {"mindspore": ms, "mindspore.ops": ops, "mindspore.mint": mint}


def unseen() -> contextlib.AbstractContextManager[None]:
    """Nothing: what is done inside calls no function that a recorder replaces."""
    return contextlib.nullcontext()


def step_aside(stacks: RandomStacks) -> None:
    """Ends the counting before something is compiled: the compiler reads what is called."""
    patches = _core.PatchSet()

    def add(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def begins(*args: Any, **kwargs: Any) -> Any:
            stacks.finish()
            patches.restore()
            return original(*args, **kwargs)

        patches.add(owner, name, begins)

    add(api._JitExecutor, "__call__")
    add(api._CellGraphExecutor, "compile")
    patches.apply()


def _values(value: Any) -> Any:
    """The elements of a tensor on the host, or None."""
    return value.asnumpy() if isinstance(value, ms.Tensor) else None


def statistics(value: Any, _widen: bool = True) -> Any:
    """max, min, mean and norm of the elements as float32; "" where there are none.

    Sums are taken in float64: machines that add in another order agree on the result.
    """
    values = _values(value)
    if values is None or values.size == 0 or values.dtype.kind == "c":
        return ""
    flat = values.reshape(-1)
    total = squares = 0.0
    high, low = -math.inf, math.inf
    with numpy.errstate(all="ignore"):
        for begin in range(0, flat.size, _CHUNK_ELEMS):
            chunk = flat[begin : begin + _CHUNK_ELEMS].astype(numpy.float32).astype(numpy.float64)
            total += float(chunk.sum())
            squares += float(numpy.dot(chunk, chunk))
            high, low = numpy.maximum(high, chunk.max()), numpy.minimum(low, chunk.min())
        numbers = {"max": high, "min": low, "mean": total / flat.size, "norm": math.sqrt(squares)}
        return {name: float(numpy.float32(number)) for name, number in numbers.items()}


def digest(value: Any) -> str:
    """dtype, shape and CRC-32 of the elements."""
    values = _values(value)
    if values is None:
        return ""
    crc = zlib.crc32(numpy.ascontiguousarray(values).reshape(-1).view(numpy.uint8).data)
    return f"{values.dtype.name}{list(values.shape)}:{crc:08x}"
