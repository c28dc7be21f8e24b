"""Recording module calls, their gradients and the gradients of their parameters.

Gradients are observed without touching the autograd graph (docs/design/interception.md): PyTorch's
own full backward hooks put identity nodes around every module, which changes the order in which
gradients are added up and forbids in-place operations on the module's result.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.autograd.graph import Node

from plumbline import _core

Edge = tuple[Node, int]


class ModuleHooks:
    """The hooks of one process; installed while a window is open."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self._hooks: dict[str, _ModuleHook] = {}

    def install(
        self, recorder: _core.Recorder, modules: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Hooks modules given as (entry prefix, module); idempotent."""
        if self._handles:
            return
        for prefix, module in modules:
            hook = self._hooks.get(prefix)
            if hook is None or hook.recorder is not recorder:
                hook = self._hooks[prefix] = _ModuleHook(recorder, prefix, wants_backward)
            self._handles.append(module.register_forward_pre_hook(hook.before, with_kwargs=True))
            # always_call: a module that raises, or is left early by activation checkpointing, must
            # not stay the parent of later calls.
            self._handles.append(
                module.register_forward_hook(hook.after, with_kwargs=True, always_call=True)
            )

    def uninstall(self) -> None:
        """Removes the module hooks; idempotent."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end_step(self) -> None:
        """Removes the parameter hooks of the step."""
        for hook in self._hooks.values():
            hook.forget_parameters()


class _ModuleHook:
    """Hooks of one module and the state of its calls."""

    def __init__(self, recorder: _core.Recorder, prefix: str, wants_backward: bool) -> None:
        self.recorder = recorder
        self._prefix = prefix
        self._wants_backward = wants_backward
        self._id = recorder.register(prefix)
        self._calls = threading.local()
        self._parameter_handles: list[Any] = []
        self._parameters_epoch = 0

    def before(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        recorder = self.recorder
        if not recorder.is_collecting:
            return
        token, number = recorder.enter_module(self._id, args, kwargs)
        if token == 0:
            return
        backward = None
        if self._wants_backward and torch.is_grad_enabled():
            recorder.enter_tool()
            try:
                backward = _BackwardCall(recorder, f"{self._prefix}.backward.{number}", args)
            finally:
                recorder.leave_tool()
        _stack(self._calls).append((token, backward))

    def after(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        calls = _stack(self._calls)
        if not calls:
            return
        token, backward = calls.pop()
        recorder = self.recorder
        parameters = dict(module.named_parameters(recurse=False))
        raised = output is None and _is_raising()
        recorder.leave_module(token, output, raised, parameters)
        if raised:
            return
        recorder.enter_tool()
        try:
            if self._wants_backward:
                self._watch_parameters(parameters)
            if backward is not None:
                backward.watch(output)
        finally:
            recorder.leave_tool()

    def forget_parameters(self) -> None:
        for handle in self._parameter_handles:
            handle.remove()
        self._parameter_handles = []

    def _watch_parameters(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        """At the first call of a step: reserves the entry and hooks the parameters."""
        epoch = self.recorder.epoch
        if self._parameters_epoch == epoch:
            return
        self._parameters_epoch = epoch
        self.forget_parameters()
        trained = [name for name, value in parameters.items() if value.requires_grad]
        if not trained:
            return
        entry = f"{self._prefix}.parameters_grad"
        self.recorder.reserve_parameter_gradients(entry, trained)
        for name in trained:
            record = functools.partial(self._record_parameter, entry, name)
            self._parameter_handles.append(parameters[name].register_hook(record))

    def _record_parameter(self, entry: str, name: str, grad: torch.Tensor) -> None:
        self.recorder.record_parameter_gradient(entry, name, grad)


class _BackwardCall:
    """One call's way back: collects the gradients of its results and of its inputs.

    The gradient of an input *through this module* is what the nodes inside the module send along
    their edges to the input's node. Those nodes are found once, when the call ends, by walking the
    graph from the results back to the inputs; each gets a post hook. Nothing here refers to a
    tensor or node after `watch`, so no reference cycle runs through the graph.
    """

    def __init__(self, recorder: _core.Recorder, name: str, args: tuple[Any, ...]) -> None:
        self._recorder = recorder
        self._name = name
        self._epoch = recorder.epoch
        self._parent = _backward_name(recorder.parent_module())
        self._arguments = len(args)
        self._inputs: dict[Edge, list[int]] = {}
        for index, value in enumerate(args):
            if isinstance(value, torch.Tensor) and value.requires_grad:
                self._inputs.setdefault(_edge_of(value), []).append(index)
        self._first_sequence = torch._C._autograd._get_sequence_nr()
        self._passed: list[tuple[int, list[int]]] = []  # results that are inputs themselves
        self._expected = 0
        self._arrived = 0
        self._grad_outputs: list[torch.Tensor | None] | None = None
        self._grad_inputs: list[torch.Tensor | None] = []

    def watch(self, output: Any) -> None:
        """Registers the hooks for the results of the finished call."""
        outputs = output if isinstance(output, tuple) else (output,)
        tracked = [
            (index, value)
            for index, value in enumerate(outputs)
            if isinstance(value, torch.Tensor) and value.requires_grad
        ]
        if tracked:
            edges = [_edge_of(value) for _, value in tracked]
            self._hook_consumers(edges)
            positions = [index for index, _ in tracked]
            ready = functools.partial(self._outputs_ready, positions, len(outputs))
            if len(tracked) == 1:
                _hook_result(tracked[0][1], ready)
            else:
                torch.autograd.graph.register_multi_grad_hook(
                    [value for _, value in tracked], ready, mode="all"
                )
        self._inputs = {}

    def _hook_consumers(self, results: list[Edge]) -> None:
        """Hooks every node inside the call that sends a gradient to an input."""
        self._passed = [(i, self._inputs[e]) for i, e in enumerate(results) if e in self._inputs]
        waiting = [node for node, number in results if (node, number) not in self._inputs]
        seen: set[Node] = set()
        while waiting and self._inputs:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            sends = []
            for position, edge in enumerate(node.next_functions):
                if edge[0] is None:
                    continue
                if edge in self._inputs:
                    sends.append((position, self._inputs[edge]))
                elif edge[0]._sequence_nr() >= self._first_sequence:
                    waiting.append(edge[0])
            if sends:
                node.register_hook(functools.partial(self._input_ready, sends))
                self._expected += 1

    def _outputs_ready(self, positions: list[int], count: int, grads: Any) -> None:
        if self._epoch != self._recorder.epoch:
            return
        values = grads if isinstance(grads, (list, tuple)) else [grads]
        self._grad_outputs = [None] * count
        for position, grad in zip(positions, values, strict=True):
            self._grad_outputs[position] = grad
        self._grad_inputs = [None] * self._arguments
        self._arrived = 0
        for result, arguments in self._passed:
            for argument in arguments:
                self._grad_inputs[argument] = values[result]
        self._recorder.enter_backward(self._name)
        if self._expected == 0:
            self._record()
        else:
            # Some consumers may not take part in this backward pass.
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)

    def _input_ready(
        self, sends: list[tuple[int, list[int]]], grad_inputs: Any, grad_outputs: Any
    ) -> None:
        if self._grad_outputs is None or self._epoch != self._recorder.epoch:
            return
        for position, arguments in sends:
            grad = grad_inputs[position]
            if grad is None:
                continue
            for argument in arguments:
                known = self._grad_inputs[argument]
                self._grad_inputs[argument] = grad if known is None else self._add(known, grad)
        self._arrived += 1
        if self._arrived == self._expected:
            self._record()

    def _add(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        self._recorder.enter_tool()
        try:
            with torch.no_grad():
                return first + second
        finally:
            self._recorder.leave_tool()

    def _finish(self) -> None:
        if self._grad_outputs is not None:
            self._record()

    def _record(self) -> None:
        grad_outputs, self._grad_outputs = self._grad_outputs, None
        grad_inputs, self._grad_inputs = self._grad_inputs, []
        if self._recorder.leave_backward(self._name):
            self._recorder.record_backward(
                self._name, self._parent, tuple(grad_outputs or ()), tuple(grad_inputs)
            )


def _stack(calls: Any) -> list[Any]:
    if not hasattr(calls, "open"):
        calls.open = []
    open_calls: list[Any] = calls.open
    return open_calls


def _is_raising() -> bool:
    """Whether a forward hook runs because the module raised (always_call)."""
    return sys.exc_info()[0] is not None


def _backward_name(parent: str | None) -> str | None:
    if parent is None:
        return None
    head, _, tail = parent.rpartition(".forward.")
    return f"{head}.backward.{tail}"


def _edge_of(tensor: torch.Tensor) -> Edge:
    """The edge along which gradients reach `tensor`."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn, tensor.output_nr
    edge = torch.autograd.graph.get_gradient_edge(tensor)
    return edge.node, edge.output_nr


# The result hooked last and its callbacks: a parent that returns its child's result is told first,
# as its backward call encloses the child's.
_last = threading.local()


def _hook_result(tensor: torch.Tensor, ready: Any) -> None:
    known = getattr(_last, "result", None)
    if known is not None and known[0]() is tensor and known[1] == tensor._version:
        known[2].insert(0, ready)
        return
    callbacks = [ready]
    node, number = _edge_of(tensor)

    def hook(grad_outputs: tuple[torch.Tensor | None, ...]) -> None:
        for callback in callbacks:
            callback([grad_outputs[number]])

    # On the node, not the tensor: a tensor's hooks stay with the node that it had when the first
    # one was registered, so after an in-place operation they would see another gradient.
    node.register_prehook(hook)
    _last.result = (weakref.ref(tensor), tensor._version, callbacks)
