"""Gradients that optimizers are called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms

from plumbline import _core


def parameter_names(optimizer: Any) -> list[str]:
    """Names of the parameters of an optimizer, in the order of the gradients that it is given.

    Raises:
        ValueError: it is no optimizer.
    """
    held = getattr(optimizer, "_parameters", None) or getattr(optimizer, "parameters", None)
    if not isinstance(optimizer, ms.nn.Cell) or not isinstance(held, (list, tuple)):
        raise ValueError("monitor(): an optimizer is expected, which has parameters "
                         f"(got {type(optimizer).__name__})")
    return [parameter.name for parameter in held]


class OptimizerGradients:
    """`plumbline.watch.grad_probe.Gradients` for MindSpore in PyNative mode."""

    def __init__(self) -> None:
        self._held: dict[int, list[int]] = {}  # numbers of parameters, by id of their optimizer
        self._optimizers: list[Any] = []
        self._handles: list[Any] = []
        self._count = 0

    def add(self, model: Any) -> list[str]:
        """Parameters of an optimizer; an optimizer that is there already has no new ones."""
        names = parameter_names(model)
        if id(model) in self._held:
            return []
        self._held[id(model)] = list(range(self._count, self._count + len(names)))
        self._count += len(names)
        self._optimizers.append(model)
        return names

    def watch(self, before_step: Callable[[Any, Any], None]) -> None:
        """Of the optimizers that were added."""
        def before(optimizer: Any, inputs: Any) -> None:
            gradients = inputs[0] if len(inputs) == 1 else inputs
            before_step(optimizer, (optimizer, gradients))

        for optimizer in self._optimizers[len(self._handles):]:
            self._handles.append(optimizer.register_forward_pre_hook(before))
            if ms.get_context("mode") == ms.GRAPH_MODE:
                _core.log_warning("monitor(): GRAPH_MODE was set after the debugger was made; "
                                  "nothing will be recorded")

    def unwatch(self) -> None:
        """Removes the hooks."""
        while self._handles:
            self._handles.pop().remove()

    def of(self, numbers: Sequence[int], given: Any) -> list[Any]:
        """Of `given`, which is (optimizer, its gradients)."""
        optimizer, gradients = given
        held = dict(zip(self._held[id(optimizer)], gradients, strict=False))
        return [held.get(number) for number in numbers]

    def held_by(self, optimizer: Any) -> list[int]:
        """Those that came in with it."""
        return self._held.get(id(optimizer), [])
