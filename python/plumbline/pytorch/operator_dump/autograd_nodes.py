"""Operators of the backward pass: what PyTorch's graph of nodes shows of them."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import torch
from torch.utils import _python_dispatch as dispatch

from plumbline.pytorch.operator_dump.call_arguments import RunningCall

_MARK = "plumbline.dumper"


class NodeCalls(Protocol):
    """What is done around a node of the backward pass."""

    def begin_node(self, name: str, gradients: tuple[Any, ...]) -> RunningCall | None:
        """Before it runs."""

    def end(self, call: RunningCall | None, result: Any) -> None:
        """After it ran."""


class NodeHooks:
    """Hooks the nodes that functions leave behind.

    Their saved tensors are not looked at: to unpack them may run code of the training.
    """

    def __init__(self, calls: NodeCalls) -> None:
        self._calls = calls
        self._is_active = False
        self._threads = threading.local()

    def start(self) -> None:
        self._is_active = True

    def stop(self) -> None:
        self._is_active = False  # hooks of nodes that are still there do nothing

    def is_inside(self) -> bool:
        """Whether a node runs on this thread."""
        return bool(getattr(self._threads, "running", None))

    def hook(self, result: Any) -> None:
        """The nodes behind the tensors of `result` that have no hooks yet."""
        if isinstance(result, list) and result and not isinstance(result[0], torch.Tensor):
            return  # tolist() of a large tensor
        flat = result if isinstance(result, (tuple, list)) else (result,)
        nodes: list[Any] = [one.grad_fn for one in flat if isinstance(one, torch.Tensor)]
        while nodes:
            node = nodes.pop()
            if node is None or node.metadata.get(_MARK) is self:
                continue
            node.metadata[_MARK] = self
            name = node.name()
            if name != "torch::autograd::AccumulateGrad":
                self._hook_node(node, name)
            nodes.extend(following for following, _ in node.next_functions)

    def _hook_node(self, node: Any, name: str) -> None:
        # Not `node` itself: it would keep itself alive.
        def before(gradients: tuple[Any, ...]) -> None:
            if self._is_active:
                self._begin(name, gradients)

        def after(results: tuple[Any, ...], gradients: tuple[Any, ...]) -> None:
            if self._is_active:
                self._end(name, results)

        node.register_prehook(before)
        node.register_hook(after)

    def _begin(self, name: str, gradients: tuple[Any, ...]) -> None:
        running: list[tuple[str, RunningCall | None]] = self._running()
        call = None
        if not running:
            with torch._C.DisableTorchFunction(), dispatch._disable_current_modes():
                call = self._calls.begin_node(name.rsplit("::", 1)[-1], gradients)
        running.append((name, call))

    def _end(self, name: str, results: tuple[Any, ...]) -> None:
        running = self._running()
        # Above it: nodes that raised an error that somebody caught.
        while running:
            begun, call = running.pop()
            if begun == name:
                with torch._C.DisableTorchFunction(), dispatch._disable_current_modes():
                    self._calls.end(call, results)
                return

    def _running(self) -> list[tuple[str, RunningCall | None]]:
        if not hasattr(self._threads, "running"):
            self._threads.running = []
        running: list[tuple[str, RunningCall | None]] = self._threads.running
        return running
