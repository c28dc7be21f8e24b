"""Recording module calls, their gradients and the gradients of their parameters."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils import _python_dispatch as dispatch  # 1.13 lacks _disable_current_modes

from plumbline import _core
from plumbline.guards import CopyableHook
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


def _autograd() -> _core.Autograd:
    return _core.Autograd(
        is_grad_enabled=torch.is_grad_enabled,
        sequence_number=torch._C._autograd._get_sequence_nr,
        gradient_edge=functools.partial(_unseen, torch.autograd.graph.get_gradient_edge),
        queue_callback=torch.autograd.Variable._execution_engine.queue_callback,
        watch_all=functools.partial(torch.autograd.graph.register_multi_grad_hook, mode="all"),
        add=functools.partial(_unseen, operator.add),
        reduces_in_place=_reduces_in_place,
    )


class ModuleHooks:
    """The hooks of one process; installed while a window is open.

    What a hook does is native (`python/bindings/module_hook.h`); gradients are observed without
    touching the autograd graph (docs/design/interception.md).
    """

    def __init__(self, compiled: CompiledRegions) -> None:
        self._compiled = compiled
        self._modules: list[tuple[Any, _core.ModuleHook]] = []
        self._handles: list[Any] = []
        self._hooks: dict[str, _core.ModuleHook] = {}
        self._recorder: _core.Recorder | None = None
        self._autograd: Any = None  # made late: old PyTorch lacks parts of it

    def install(
        self, recorder: _core.Recorder, modules: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Hooks modules given as (entry prefix, module); idempotent."""
        if self._modules:
            return
        if self._recorder is not recorder:
            self._recorder, self._hooks, self._autograd = recorder, {}, _autograd()
        for prefix, module in modules:
            if module._compiled_call_impl is not None:
                continue  # module.compile(): its hooks would be compiled with it
            hook = self._hooks.get(prefix)
            if hook is None:
                hook = _core.ModuleHook(recorder, self._autograd, prefix, wants_backward)
                self._hooks[prefix] = hook
            self._modules.append((module, hook))
        self._compiled.join(recorder, self, is_traced=True)
        self.resume()

    def uninstall(self) -> None:
        """Removes the module hooks; idempotent."""
        self._modules = []
        self.suspend()
        self._compiled.leave(self)

    def resume(self) -> None:
        """Registers the hooks."""
        for module, hook in self._modules:
            self._handles.append(
                module.register_forward_pre_hook(CopyableHook(hook.before), with_kwargs=True)
            )
            # always_call: a module that raises, or is left early by activation checkpointing, must
            # not stay the parent of later calls.
            self._handles.append(
                module.register_forward_hook(
                    CopyableHook(hook.after), with_kwargs=True, always_call=True
                )
            )

    def suspend(self) -> None:
        """Removes them."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end_step(self) -> None:
        """Removes the parameter hooks of the step."""
        for hook in self._hooks.values():
            hook.forget_parameters()
