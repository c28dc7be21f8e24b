"""Recording module calls, their gradients and the gradients of their parameters."""

from __future__ import annotations

import contextlib
import functools
import operator
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils import _python_dispatch as dispatch  # 1.13 lacks _disable_current_modes

from plumbline import _core
from plumbline.module_hooks import ModuleHooksBase
from plumbline.pytorch.compiled import CompiledRegions


def _unseen(function: Any, *args: Any) -> Any:
    """`function(*args)`, unseen by dispatch modes of the user; sums are outside the graph."""
    with contextlib.ExitStack() as stack:
        if torch._C._len_torch_dispatch_stack() > 0:
            stack.enter_context(dispatch._disable_current_modes())
        if function is operator.add:
            stack.enter_context(torch.no_grad())
        return function(*args)


def _reduces_in_place() -> bool | None:
    has_ranks = dist.is_available() and dist.is_initialized()
    return DistributedDataParallel._active_ddp_module is not None if has_ranks else None


def new_autograd() -> _core.Autograd:
    """What following gradients needs of PyTorch."""
    return _core.Autograd(
        is_grad_enabled=torch.is_grad_enabled,
        sequence_number=torch._C._autograd._get_sequence_nr,
        gradient_edge=functools.partial(_unseen, torch.autograd.graph.get_gradient_edge),
        queue_callback=torch.autograd.Variable._execution_engine.queue_callback,
        watch_all=functools.partial(torch.autograd.graph.register_multi_grad_hook, mode="all"),
        add=functools.partial(_unseen, operator.add),
        reduces_in_place=_reduces_in_place,
    )


class ModuleHooks(ModuleHooksBase):
    """The hooks of one process; installed while a window is open.

    Gradients are observed without touching the autograd graph (docs/design/interception.md).
    """

    def __init__(self, compiled: CompiledRegions) -> None:
        super().__init__(new_autograd)
        self._compiled = compiled

    def _takes_hooks(self, recorder: _core.Recorder, prefix: str, module: Any) -> bool:
        """The hooks of a module that is compiled (module.compile()) would be compiled with it."""
        return module._compiled_call_impl is None

    def _begin(self, recorder: _core.Recorder) -> None:
        self._compiled.join(recorder, self, is_traced=True)

    def _end(self) -> None:
        self._compiled.leave(self)
