"""Recording module calls, their gradients and the gradients of their parameters."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from typing import Any

import torch

from plumbline import _core


def _add(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return first + second


class _Hook(functools.partial):  # type: ignore[type-arg]
    """A hook that stays behind when its module is copied or saved inside the window.

    The copy gets a callable of the standard library that does nothing, so that it neither records
    nor needs plumbline to be loaded.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")


def _autograd() -> _core.Autograd:
    return _core.Autograd(
        is_grad_enabled=torch.is_grad_enabled,
        sequence_number=torch._C._autograd._get_sequence_nr,
        gradient_edge=torch.autograd.graph.get_gradient_edge,
        queue_callback=torch.autograd.Variable._execution_engine.queue_callback,
        watch_all=functools.partial(torch.autograd.graph.register_multi_grad_hook, mode="all"),
        add=_add,
    )


class ModuleHooks:
    """The hooks of one process; installed while a window is open.

    What a hook does is native (`python/bindings/module_hook.h`); gradients are observed without
    touching the autograd graph (docs/design/interception.md).
    """

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self._hooks: dict[str, _core.ModuleHook] = {}
        self._recorder: _core.Recorder | None = None
        self._autograd: Any = None  # made late: old PyTorch lacks parts of it

    def install(
        self, recorder: _core.Recorder, modules: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Hooks modules given as (entry prefix, module); idempotent."""
        if self._handles:
            return
        if self._recorder is not recorder:
            self._recorder, self._hooks, self._autograd = recorder, {}, _autograd()
        for prefix, module in modules:
            hook = self._hooks.get(prefix)
            if hook is None:
                hook = _core.ModuleHook(recorder, self._autograd, prefix, wants_backward)
                self._hooks[prefix] = hook
            self._handles.append(
                module.register_forward_pre_hook(_Hook(hook.before), with_kwargs=True)
            )
            # always_call: a module that raises, or is left early by activation checkpointing, must
            # not stay the parent of later calls.
            self._handles.append(
                module.register_forward_hook(_Hook(hook.after), with_kwargs=True, always_call=True)
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
