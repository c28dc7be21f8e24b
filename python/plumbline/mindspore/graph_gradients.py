"""Gradients inside static graphs, handed out of the graph before the optimizer uses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
import numpy as np

from plumbline import _core
from plumbline.mindspore.gradients import parameter_names


class _Watched:
    """An optimizer whose `construct` is another one, which hands out each gradient and goes on."""

    def __init__(self, optimizer: Any, numbers: list[int]) -> None:
        self.optimizer = optimizer
        self.numbers = numbers
        self._arrived: dict[int, Any] = {}
        self._replaced: Any = None

    def install(self, before_step: Callable[[Any, Any], None]) -> None:
        """The graphs that are compiled from here on hand out gradients."""
        hands = tuple(self._hand(number, before_step) for number in self.numbers)
        original = self.optimizer.construct

        def construct(self, gradients):  # type: ignore[no-untyped-def]  # compiled by MindSpore
            done = ()
            for hand, gradient in zip(hands, gradients):  # noqa: B905 -- no keyword in a graph
                done += (hand(ms.ops.cast(gradient, ms.float32)),)  # type: ignore[assignment]
            return original(ms.ops.depend(gradients, done))

        self._replaced = vars(self.optimizer).get("construct")
        self.optimizer.construct = construct.__get__(self.optimizer, type(self.optimizer))

    def restore(self) -> None:
        """The optimizer as it was; graphs that are compiled already stay as they are."""
        if self._replaced is None:
            del self.optimizer.construct
        else:
            self.optimizer.construct = self._replaced

    def _hand(self, number: int, before_step: Callable[[Any, Any], None]) -> Any:
        def take(gradient: Any) -> Any:
            # The memory is used again by the kernels that follow.
            self._arrived[number] = ms.Tensor.from_numpy(np.array(gradient))
            if len(self._arrived) == len(self.numbers):
                arrived, self._arrived = self._arrived, {}
                before_step(self.optimizer, arrived)
            return np.zeros(1, np.float32)

        return ms.ops.Custom(take, lambda _shape: [1], lambda _dtype: ms.float32, "pyfunc")


class GraphGradients:
    """`plumbline.watch.grad_probe.Gradients` for MindSpore in graph mode, on CPU."""

    def __init__(self) -> None:
        self._watched: list[_Watched] = []
        self._installed = 0
        self._count = 0

    def add(self, model: Any) -> list[str]:
        """Parameters of an optimizer; before the graph that it is in is compiled."""
        names = parameter_names(model)
        device = ms.get_context("device_target")
        if device != "CPU":
            raise _core.UnsupportedError(f"monitor(): GRAPH_MODE on {device}: gradients cannot be "
                                         "recorded yet. Use PYNATIVE_MODE")
        if any(one.optimizer is model for one in self._watched):
            return []
        self._watched.append(_Watched(model, list(range(self._count, self._count + len(names)))))
        self._count += len(names)
        return names

    def watch(self, before_step: Callable[[Any, Any], None]) -> None:
        """Replaces `construct` of the optimizers that were added."""
        for one in self._watched[self._installed:]:
            one.install(before_step)
        self._installed = len(self._watched)

    def unwatch(self) -> None:
        """Restores them."""
        for one in self._watched[: self._installed]:
            one.restore()
        self._installed = 0
        self._watched = []

    def of(self, numbers: Sequence[int], given: Any) -> list[Any]:
        """Of those that arrived, by number."""
        return [given.get(number) for number in numbers]

    def held_by(self, optimizer: Any) -> list[int]:
        """Those that came in with it."""
        return [number for one in self._watched if one.optimizer is optimizer
                for number in one.numbers]
