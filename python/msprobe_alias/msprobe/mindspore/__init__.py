"""`from msprobe.mindspore import ...` for scripts written for upstream: plumbline's recorder."""

from __future__ import annotations

from typing import NoReturn

from msprobe.mindspore.common.utils import MsprobeInitStep, MsprobeStep, seed_all
from msprobe.mindspore.debugger.precision_debugger import PrecisionDebugger
from msprobe.mindspore.monitor.module_hook import TrainerMon
from msprobe.missing import refuse
from plumbline.mindspore import save, save_grad, step

__all__ = ["MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "TrainerMon", "save", "save_grad",
           "seed_all", "step"]  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
