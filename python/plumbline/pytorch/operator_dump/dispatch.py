"""Sees every operator of the forward and the backward pass."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from plumbline.pytorch.operator_dump.autograd_nodes import NodeHooks
from plumbline.pytorch.operator_dump.call_arguments import RunningCall


class CallSteps(Protocol):
    """What is done around an operator."""

    def begin(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[RunningCall | None, tuple[Any, ...], dict[str, Any]]:
        """Before it runs; the arguments that it gets."""

    def end(self, call: RunningCall | None, result: Any) -> None:
        """After it ran."""


class OperatorCalls:
    """The two modes of PyTorch that show operators, and functions with nodes to hook."""

    def __init__(self, steps: CallSteps, nodes: NodeHooks) -> None:
        self._modes: tuple[Any, ...] = (_Functions(nodes), _Operators(steps, nodes))

    def __enter__(self) -> None:
        for mode in self._modes:
            mode.__enter__()

    def __exit__(self, *error: Any) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(*error)


class _Functions(TorchFunctionMode):
    def __init__(self, nodes: NodeHooks) -> None:
        super().__init__()
        self._nodes = nodes

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._nodes.hook(result)
        return result


class _Operators(TorchDispatchMode):
    def __init__(self, steps: CallSteps, nodes: NodeHooks) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._steps = steps
        self._nodes = nodes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._nodes.is_inside():  # only the outermost operator counts
            return func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            call, args, kwargs = self._steps.begin(func, args, kwargs)
        result = func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            self._steps.end(call, result)
        return result
