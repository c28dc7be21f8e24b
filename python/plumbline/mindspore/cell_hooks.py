"""Recording calls of cells (mindspore.nn.Cell) and the gradients of their parameters."""

from __future__ import annotations

import operator
from typing import Any

from mindspore.common.hook_handle import HookHandle, _update_hook_version

from plumbline import _core
from plumbline.guards import CopyableHook
from plumbline.mindspore.executor import api
from plumbline.mindspore.jit import JitCalls
from plumbline.module_hooks import ModuleHooksBase


def _add(left: Any, right: Any) -> Any:
    with api._no_grad():
        return operator.add(left, right)


def new_autograd() -> _core.Autograd:
    """What following gradients needs of MindSpore."""
    return _core.Autograd(
        is_grad_enabled=api._pynative_executor.requires_grad,
        sequence_number=None,
        gradient_edge=None,  # a tensor that requires grad always has a node
        queue_callback=api._pynative_executor.queue_backward_final_callback,
        watch_all=None,
        add=_add,
        reduces_in_place=lambda: None,
        opens_containers=True,
    )


def register_after(module: Any, after: CopyableHook) -> Any:
    """MindSpore registers none for a cell with a bprop of its own, yet runs what is there."""
    if not getattr(module, "has_bprop", False):
        return module.register_forward_hook(after, with_kwargs=True, always_call=True)
    tables = (module._forward_hook_with_kwargs, module._forward_hook_always_called)
    handle = HookHandle(module._forward_hook, extra_dict=list(tables))
    module._forward_hook[handle.handle_id] = after
    for table in tables:
        table[handle.handle_id] = True
    _update_hook_version()
    return handle


class CellHooks(ModuleHooksBase):
    """The hooks of one process; installed while a window is open."""

    def __init__(self, jit: JitCalls) -> None:
        super().__init__(new_autograd)
        self._jit = jit

    def _register_after(self, module: Any, after: CopyableHook) -> Any:
        return register_after(module, after)

    def _begin(self, recorder: _core.Recorder) -> None:
        if self._modules:
            self._jit.join(self, None)

    def _end(self) -> None:
        if self._modules:
            self._jit.leave(self)
