"""Recording for MindSpore: the same names as upstream's `msprobe.mindspore`."""

from __future__ import annotations

from typing import Any

import mindspore as ms

from plumbline import _compare, _core
from plumbline.call_window import Settings, Window
from plumbline.debugger import DebuggerBase
from plumbline.mindspore import graph_mode
from plumbline.mindspore.adapter import MindSporeAdapter
from plumbline.mindspore.callbacks import MsprobeInitStep, MsprobeStep
from plumbline.mindspore.graph_window import GraphWindow, set_dump
from plumbline.mindspore.monitor import MindSporeMonitorParts
from plumbline.mindspore.point_saves import save, save_grad, step
from plumbline.module_dump import module_dump, module_dump_end
from plumbline.random_calls import check_seed
from plumbline.watch.trainer_mon import TrainerMonBase

__all__ = [
    "MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "TrainerMon", "module_dump",
    "module_dump_end", "save", "save_grad", "seed_all", "set_dump", "step",
]  # fmt: skip

_adapter = MindSporeAdapter()


class PrecisionDebugger(DebuggerBase):
    __doc__ = DebuggerBase.__doc__

    _adapter = _adapter

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        step: list[int | str] | None = None,
    ) -> None:
        super().__init__(config_path, task, dump_path, level, None, step)

    def _new_window(self, settings: Settings, model: Any) -> Window:
        """Graphs are dumped by MindSpore itself; calls are recorded."""
        if _core.asks_for_grad_probe(*settings):
            return super()._new_window(settings, model)
        if GraphWindow.is_asked_for(settings) and not self._has_kernels_of_api(settings):
            return GraphWindow(settings)
        window = super()._new_window(settings, model)
        # Each tensor is read as soon as it is made. On a CPU that takes 12 us where operators run
        # when they are called and 600 us where other threads run them; said before the first one.
        if ms.get_context("device_target") == "CPU":
            ms.runtime.launch_blocking()
        return window

    def _has_kernels_of_api(self, settings: Settings) -> bool:
        """Level L2 of one API: while it runs the device dumps, which the library here tells it."""
        if graph_mode.execution_mode() != "pynative" or not _compare.asks_for_api(*settings):
            return False
        _compare.plan_graph_dump(*settings, graph_mode.place())  # refuses what is wrong
        return self._adapter.kernel_dump_device() is not None


class TrainerMon(TrainerMonBase):
    __doc__ = TrainerMonBase.__doc__
    _parts = MindSporeMonitorParts(_adapter)


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = True) -> None:
    """Fixes the random generators of Python, NumPy and MindSpore.

    Args:
        seed: 0 to 4294967295.
        mode: also demand deterministic algorithms.
        rm_dropout: make dropout keep everything from now on, so that two runs are comparable.

    Raises:
        ValueError: an argument is of the wrong type or out of range.

    Example:
        >>> seed_all(1234)  # doctest: +SKIP
    """
    check_seed(seed, mode, rm_dropout)
    _adapter.seed(seed, mode, rm_dropout)
