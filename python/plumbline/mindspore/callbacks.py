"""Callbacks for `mindspore.train.Model.train`."""

from __future__ import annotations

from typing import Any

from mindspore.train import Callback

from plumbline.debugger import DebuggerBase
from plumbline.mindspore import graph_mode
from plumbline.mindspore.graph_window import GraphWindow


class MsprobeStep(Callback):  # type: ignore[misc]
    """Records each training step of `Model.train`.

    Args:
        debugger: the PrecisionDebugger. For cells (levels L0 and mix) and primitives call its
            `start(model)` once before training: the callback does not know the model.

    Example:
        >>> debugger.start(model=network)                          # doctest: +SKIP
        >>> model.train(1, data, callbacks=[MsprobeStep(debugger)])  # doctest: +SKIP
    """

    def __init__(self, debugger: DebuggerBase) -> None:
        super().__init__()
        self._debugger = debugger

    def on_train_step_begin(self, run_context: Any) -> None:
        """Opens the window."""
        self._debugger.start()

    def on_train_step_end(self, run_context: Any) -> None:
        """Closes it and ends the step."""
        self._debugger.stop()
        self._debugger.step()


class MsprobeInitStep(Callback):  # type: ignore[misc]
    """Numbers the steps of a resumed training on from where it stopped, in static-graph dumps.

    Without `Model.train`, and in PyNative mode, use `PrecisionDebugger.set_init_step()`.
    """

    def on_train_begin(self, run_context: Any) -> None:
        """Tells MindSpore the number of the first step."""
        resumed = int(getattr(run_context.original_args(), "cur_step_num", 0) or 0)
        if DebuggerBase._instance is None:
            graph_mode.set_first_iteration(resumed)
        elif isinstance(DebuggerBase._instance._window, GraphWindow):
            DebuggerBase.set_init_step(resumed)
