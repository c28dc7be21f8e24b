"""`from msprobe.mindspore import ...` for scripts written for upstream: plumbline's recorder."""

from __future__ import annotations

from typing import Any

from msprobe.mindspore.common.utils import MsprobeInitStep, MsprobeStep, seed_all
from msprobe.mindspore.debugger.precision_debugger import PrecisionDebugger
from msprobe.missing import explain

__all__ = ["MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "seed_all"]


def __getattr__(name: str) -> Any:
    """Names that only upstream has are refused with what to do; others are not here."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # An AttributeError would be replaced by "cannot import name".
    raise ImportError(explain(f"{__name__}.{name}"))
