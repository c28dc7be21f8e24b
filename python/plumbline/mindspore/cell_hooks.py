"""Recording calls of cells (mindspore.nn.Cell) and the gradients of their parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from mindspore.common.api import _no_grad, _pynative_executor

from plumbline import _core
from plumbline.mindspore.jit import JitCalls


def _add(left: Any, right: Any) -> Any:
    with _no_grad():
        return operator.add(left, right)


def _autograd() -> _core.Autograd:
    return _core.Autograd(
        is_grad_enabled=_pynative_executor.requires_grad,
        sequence_number=None,
        gradient_edge=None,  # a tensor that requires grad always has a node
        queue_callback=_pynative_executor.queue_backward_final_callback,
        watch_all=None,
        add=_add,
        reduces_in_place=lambda: None,
        opens_containers=True,
    )


class CellHooks:
    """The hooks of one process; installed while a window is open.

    What a hook does is native, and the same as for PyTorch (`python/bindings/module_hook.h`).
    """

    def __init__(self, jit: JitCalls) -> None:
        self._jit = jit
        self._cells: list[tuple[Any, _core.ModuleHook]] = []
        self._handles: list[Any] = []
        self._hooks: dict[str, _core.ModuleHook] = {}
        self._recorder: _core.Recorder | None = None
        self._autograd: Any = None

    def install(
        self, recorder: _core.Recorder, cells: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Hooks cells given as (entry prefix, cell); idempotent."""
        if self._cells:
            return
        if self._recorder is not recorder:
            self._recorder, self._hooks, self._autograd = recorder, {}, _autograd()
        for prefix, cell in cells:
            if cell.has_bprop:
                # MindSpore runs no forward hook of it, so the end of its calls cannot be seen.
                recorder.count_loss("cells_unhooked", f"{prefix}: has a bprop of its own")
                continue
            hook = self._hooks.get(prefix)
            if hook is None:
                hook = _core.ModuleHook(recorder, self._autograd, prefix, wants_backward)
                self._hooks[prefix] = hook
            self._cells.append((cell, hook))
        if self._cells:
            self._jit.join(self, None)
        self.resume()

    def uninstall(self) -> None:
        """Removes the hooks of cells; idempotent."""
        if self._cells:
            self._jit.leave(self)
        self._cells = []
        self.suspend()

    def resume(self) -> None:
        """Registers the hooks."""
        for cell, hook in self._cells:
            self._handles.append(cell.register_forward_pre_hook(_before(hook), with_kwargs=True))
            self._handles.append(
                cell.register_forward_hook(_after(hook), with_kwargs=True, always_call=True)
            )

    def suspend(self) -> None:
        """Removes them."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end_step(self) -> None:
        """Removes the hooks of parameters."""
        for hook in self._hooks.values():
            hook.forget_parameters()


def _before(hook: _core.ModuleHook) -> Callable[..., None]:
    return lambda cell, args, kwargs: hook.before(cell, args, kwargs)


def _after(hook: _core.ModuleHook) -> Callable[..., None]:
    return lambda cell, args, kwargs, output: hook.after(cell, args, kwargs, output)
