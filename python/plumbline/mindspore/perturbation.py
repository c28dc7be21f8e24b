"""Second runs of calls in MindSpore: `plumbline.watch.perturbation.SecondRuns`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import mindspore as ms
from mindspore import ops
from mindspore.common import _no_grad

from plumbline.mindspore.executor import api
from plumbline.mindspore.values import to_host

_NARROW = tuple(getattr(ms, name) for name in ("float16", "bfloat16", "float8_e4m3fn",
                                               "float8_e5m2") if hasattr(ms, name))
_FLOATING = (ms.float32, ms.float64, *_NARROW)
# Kernels keep generators of their own, which nobody can put back.
_RANDOM = ("attention", "bernoulli", "dropout", "exponential", "gamma", "gumbel", "laplace",
           "multinomial", "normal_", "poisson", "rand", "rrelu", "sampler", "uniform")


class MindSporeRuns:
    """Everything is called inside `quiet()`."""

    has_backward_hooks = False

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, ms.Tensor)

    def is_floating(self, tensor: ms.Tensor) -> bool:
        return tensor.dtype in _FLOATING

    def is_narrow(self, tensor: ms.Tensor) -> bool:
        return tensor.dtype in _NARROW

    def is_double(self, tensor: ms.Tensor) -> bool:
        return bool(tensor.dtype == ms.float64)

    def elements(self, tensor: ms.Tensor) -> int:
        return int(tensor.size)

    def needs_grad(self, tensor: ms.Tensor) -> bool:
        """Gradients are computed for this check alone."""
        return True

    def version(self, tensor: ms.Tensor) -> int:
        return int(tensor._version)

    def may_be_written(self, api: str, tensor: ms.Tensor) -> bool:
        """Older operators write to parameters, and nothing in their names says so."""
        is_writer = api.rpartition(".")[2].startswith(("assign", "scatter", "index_add"))
        return is_writer or isinstance(tensor, ms.Parameter)

    def memory(self, tensor: ms.Tensor) -> int:
        return int(tensor.untyped_storage().data_ptr())

    def obstacle(self, api: str, tensors: list[ms.Tensor]) -> str:
        name = api.rpartition(".")[2].lower()
        if any(word in name for word in _RANDOM) or name == "normal":
            return "it may draw random numbers, whose generator cannot be put back"
        for tensor in tensors:
            if type(tensor) is not ms.Tensor and not isinstance(tensor, ms.Parameter):
                return f"an input is of class {type(tensor).__name__}"
        return ""

    def quiet(self) -> AbstractContextManager[Any]:
        no_grad: AbstractContextManager[Any] = _no_grad()
        return no_grad

    def random(self, tensors: list[ms.Tensor], values: Iterable[Any]) -> None:
        """Calls that draw are left out."""

    def same_random(self, one: Any, other: Any) -> bool:
        return True

    def set_random(self, state: Any) -> None:
        """Nothing was drawn."""

    def precise(self, is_precise: bool) -> AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def rounds_by_itself(self) -> bool:
        return False

    def copy(self, tensor: ms.Tensor) -> ms.Tensor:
        return ops.deepcopy(tensor)

    def detached(self, tensor: ms.Tensor) -> ms.Tensor:
        return tensor

    def perturbed(
        self, tensor: ms.Tensor, change: Callable[[Any, Any], str]
    ) -> tuple[ms.Tensor, str]:
        device = ms.get_context("device_target")
        host = tensor if device == "CPU" else to_host(tensor)
        target = ops.deepcopy(host)
        obstacle = change(host, target)
        return (target if device == "CPU" else target.move_to(device)), obstacle

    def single(self, tensor: ms.Tensor) -> ms.Tensor:
        return tensor.astype(ms.float32)

    def double(self, tensor: ms.Tensor) -> ms.Tensor:
        return tensor.astype(ms.float64)

    def cast_as(self, tensor: ms.Tensor, other: ms.Tensor) -> ms.Tensor:
        return tensor.astype(other.dtype)

    def on_cpu(self, tensor: ms.Tensor) -> ms.Tensor:
        raise NotImplementedError("MindSpore has no to_cpu")

    def replaced(self, output: ms.Tensor, second: ms.Tensor, aliases: str) -> ms.Tensor:
        """A tensor of the original's type; as upstream, without its graph."""
        return output if aliases else second.astype(output.dtype)

    def gradient_hook(self, output: Any, run: Callable[[Any], None]) -> list[int]:
        return []

    def gradients(
        self, run: Callable[[list[Any]], list[Any]], leaves: list[ms.Tensor], cotangents: Any
    ) -> list[Any]:
        """Of all outputs together, with ones in place of the gradients that arrive."""
        api._pynative_executor.set_enable_grad(True)
        try:
            way_back = ops.GradOperation(get_all=True)(lambda *inputs: tuple(run(list(inputs))))
            return list(way_back(*leaves))
        finally:
            api._pynative_executor.set_enable_grad(False)
