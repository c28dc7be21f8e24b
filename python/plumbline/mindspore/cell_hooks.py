"""Recording calls of cells (mindspore.nn.Cell) and the gradients of their parameters."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from mindspore.common.api import _no_grad, _pynative_executor

from plumbline import _core
from plumbline.mindspore.jit import JitCalls
from plumbline.module_hooks import ModuleHookTable


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
    """The hooks of one process; installed while a window is open."""

    def __init__(self, jit: JitCalls) -> None:
        self._jit = jit
        self._table = ModuleHookTable(_autograd)
        self.resume, self.suspend = self._table.resume, self._table.suspend
        self.end_step = self._table.end_step

    def install(
        self, recorder: _core.Recorder, cells: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Hooks cells given as (entry prefix, cell); idempotent."""
        if len(self._table) > 0:
            return
        plain = []
        for prefix, cell in cells:
            if cell.has_bprop:
                # MindSpore runs no forward hook of it, so the end of its calls cannot be seen.
                recorder.count_loss("cells_unhooked", f"{prefix}: has a bprop of its own")
            else:
                plain.append((prefix, cell))
        self._table.fill(recorder, plain, wants_backward)
        if plain:
            self._jit.join(self, None)
        self.resume()

    def uninstall(self) -> None:
        """Removes the hooks of cells; idempotent."""
        if len(self._table) > 0:
            self._jit.leave(self)
        self._table.clear()
