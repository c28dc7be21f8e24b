"""Values over the steps of a training: a monitor, what it wrote, watchpoints on recordings.

The names of `mindinsight.debugger` are here; they are loaded when they are first asked for, as a
training that is monitored needs none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbline.watch.conditions import (
        ConditionBase,
        OperatorOverflowCondition,
        TensorAllZeroCondition,
        TensorChangeAboveThresholdCondition,
        TensorChangeBelowThresholdCondition,
        TensorOverflowCondition,
        TensorRangeCondition,
        TensorTooLargeCondition,
        TensorTooSmallCondition,
        TensorUnchangedCondition,
    )
    from plumbline.watch.debugger import (
        DebuggerTensor,
        DumpAnalyzer,
        Node,
        Watchpoint,
        WatchpointHit,
    )

__all__ = [
    "ConditionBase",
    "DebuggerTensor",
    "DumpAnalyzer",
    "Node",
    "OperatorOverflowCondition",
    "TensorAllZeroCondition",
    "TensorChangeAboveThresholdCondition",
    "TensorChangeBelowThresholdCondition",
    "TensorOverflowCondition",
    "TensorRangeCondition",
    "TensorTooLargeCondition",
    "TensorTooSmallCondition",
    "TensorUnchangedCondition",
    "Watchpoint",
    "WatchpointHit",
]


def __getattr__(name: str) -> Any:
    """Conditions are in one module, all else in the other."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    is_condition = name.startswith(("Condition", "Tensor", "Operator"))
    module = "plumbline.watch.conditions" if is_condition else "plumbline.watch.debugger"
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    """The lazy names are there too."""
    return sorted({*globals(), *__all__})
