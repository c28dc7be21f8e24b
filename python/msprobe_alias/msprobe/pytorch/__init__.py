"""`from msprobe.pytorch import ...` for scripts written for upstream: plumbline's recorder."""

from __future__ import annotations

from typing import NoReturn

from msprobe.missing import refuse
from msprobe.pytorch.common.utils import seed_all
from msprobe.pytorch.compare.distributed_compare import compare_distributed
from msprobe.pytorch.compare.pt_compare import compare
from msprobe.pytorch.debugger.precision_debugger import (
    PrecisionDebugger,
    module_dump,
    module_dump_end,
    random_save,
)
from msprobe.pytorch.monitor.module_hook import TrainerMon
from plumbline.pytorch import OverflowTracer

__all__ = [
    "OverflowTracer",
    "PrecisionDebugger",
    "TrainerMon",
    "compare",
    "compare_distributed",
    "module_dump",
    "module_dump_end",
    "random_save",
    "seed_all",
]


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
